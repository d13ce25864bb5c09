/** Personas in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import {
  MAX_PERSONA_CHARACTERS,
  MAX_PERSONA_DEPTH,
  MAX_PERSONA_DESCRIPTION,
  MAX_PERSONA_NAME,
  PERSONA_POSITIONS,
  PERSONA_ROLES,
} from "../../services/personas/persona_card.ts";
import { BINARY, ERRORS, Id, IdParams, IfMatch, ImageMetadata, json, jsonBody, oneFile, Time } from "./common.ts";
import { DocumentUsesSchema } from "./documents.ts";
import {
  createRestoreVersionRoute,
  createVersionAvatarRoute,
  createVersionRoute,
  createVersionsRoute,
  VersionNumber,
} from "./versions.ts";

const Placement = z.object({
  position: z.enum(PERSONA_POSITIONS).openapi({
    description: "Around the author's note, in the chat, or only where a macro names it",
  }),
  depth: z.number().int().min(0).max(MAX_PERSONA_DEPTH).default(2).openapi({
    description: "Number of messages after it; only at_depth",
  }),
  role: z.enum(PERSONA_ROLES).default("system").openapi({ description: "Only at_depth" }),
}).openapi("PersonaPlacement");

const PersonaResponse = z.object({
  id: Id,
  name: z.string(),
  description: z.string(),
  placement: Placement.optional().openapi({
    description: "Where prompts have the description; if absent, where the preset has it",
  }),
  character_ids: z.array(Id).optional().openapi({
    description: "The characters whose new chats have it; absent for none",
  }),
  has_avatar: z.boolean(),
  updated_at: Time,
  unreadable: z.literal(true).optional().openapi({
    description: "In lists: its file can't be read. name is that of its latest version, or its ID",
  }),
  documents: DocumentUsesSchema.optional().openapi({
    description: "Documents that are available in all chats with the persona",
  }),
}).openapi("Persona");

const imageContent = { "image/*": { schema: z.string().openapi({ format: "binary" }) } };
const tags = ["Personas"];

/** All. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/personas",
  tags,
  summary: "List personas by name",
  responses: { 200: json(z.array(PersonaResponse), "The personas"), ...ERRORS },
});

/** One. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/personas/{id}",
  tags,
  summary: "Get a persona",
  request: { params: IdParams },
  responses: { 200: json(PersonaResponse, "The persona; its ETag is its version"), ...ERRORS },
});

/** Create or change. */
export const putRoute = createRoute({
  method: "put",
  path: "/api/personas/{id}",
  tags,
  summary: "Create or update a persona; its image doesn't change",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: jsonBody(z.object({
      name: z.string().trim().min(1).max(MAX_PERSONA_NAME),
      description: z.string().max(MAX_PERSONA_DESCRIPTION).nullish().openapi({
        description: "If absent, the stored description is kept; null clears it",
      }),
      placement: Placement.nullish().openapi({
        description: "If absent, the stored placement is kept; null is where the preset has it",
      }),
      character_ids: z.array(Id).max(MAX_PERSONA_CHARACTERS).nullish().openapi({
        description: "Characters whose new chats have it. If absent, they stay; null removes them",
      }),
      documents: DocumentUsesSchema.nullish().openapi({
        description: "If absent, the stored documents are kept; null removes them",
      }),
    })),
  },
  responses: { 200: json(PersonaResponse, "Saved"), 201: json(PersonaResponse, "Created"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: "/api/personas/{id}",
  tags,
  summary: "Move a persona to the trash",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Its image. */
export const avatarRoute = createRoute({
  method: "get",
  path: "/api/personas/{id}/avatar",
  tags,
  summary: "Get the image of a persona as PNG",
  request: { params: IdParams },
  responses: {
    200: { description: "The image", content: { "image/png": { schema: z.string().openapi({ format: "binary" }) } } },
    ...ERRORS,
  },
});

/** Replace its image. */
export const putAvatarRoute = createRoute({
  method: "put",
  path: "/api/personas/{id}/avatar",
  tags,
  summary: "Replace the image of a persona: PNG, JPEG, WebP or GIF",
  request: { params: IdParams, headers: IfMatch, body: { required: true, content: imageContent } },
  responses: { 200: json(PersonaResponse, "The persona"), ...ERRORS },
});

/** Import. */
export const importRoute = createRoute({
  method: "post",
  path: "/api/personas/import",
  tags,
  summary:
    "Import a persona from a card file; a character's card becomes a persona with its name, description and image",
  request: {
    query: z.object({
      swap_names: z.enum(["true", "false"]).default("true").openapi({
        description: "For a character's card: whether to swap {{char}} and {{user}} in its description",
      }),
    }),
    body: oneFile,
  },
  responses: { 201: json(PersonaResponse, "The imported persona, with an ID that the server assigned"), ...ERRORS },
});

/** Export as a file. */
export const exportRoute = createRoute({
  method: "get",
  path: "/api/personas/{id}/export",
  tags,
  summary: "Export a persona as a Tavern V2 card: PNG if it has an image, otherwise JSON",
  request: { params: IdParams, query: z.object({ image_metadata: ImageMetadata }) },
  responses: {
    200: {
      description: "The file. With X-Parlor-Warning: larger_than_import_limit, it is too large to import again",
      content: { "image/png": { schema: BINARY }, "application/json": { schema: { type: "object" } } },
    },
    ...ERRORS,
  },
});

const versioned = {
  path: "/api/personas/{id}",
  what: "a persona",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  response: PersonaResponse,
};

/** Earlier versions. */
export const versionsRoute = createVersionsRoute(versioned);

/** One of them. */
export const versionRoute = createVersionRoute(
  versioned,
  z.object({ name: z.string(), description: z.string(), has_avatar: z.boolean() }).openapi("PersonaVersion"),
);

/** Its image. */
export const versionAvatarRoute = createVersionAvatarRoute(versioned);

/** Restore one. */
export const restoreVersionRoute = createRestoreVersionRoute(versioned);

/** A persona, as the API returns it. */
export type PersonaJson = z.output<typeof PersonaResponse>;
