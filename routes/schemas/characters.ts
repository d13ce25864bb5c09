/** Characters, the search of card sites, and characters written by a model. Unknown fields of a card are preserved. */
import { createRoute, z } from "@hono/zod-openapi";
import { ATTACHMENT_NAME } from "../../services/attachments/attachment_names.ts";
import type { Card as StoredCard } from "../../services/characters/card/card.ts";
import { CARD_FORMATS } from "../../services/characters/card/card_export.ts";
import { CARD_SORTS } from "../../services/characters/sites/card_site.ts";
import { BINARY, ERRORS, Id, IdParams, IfMatch, json, jsonBody, oneFile, Time } from "./common.ts";
import { Job } from "./jobs.ts";
import {
  createRestoreVersionRoute,
  createVersionAvatarRoute,
  createVersionRoute,
  createVersionsRoute,
  VersionNumber,
} from "./versions.ts";

const tags = ["Characters"];

const Card = z.looseObject({
  spec: z.string(),
  spec_version: z.string(),
  data: z.looseObject({ name: z.string() }),
}).openapi("Card", { description: "A character card, version 3 whatever it came as" });

const CharacterItem = z.object({
  id: Id,
  name: z.string(),
  external: z.boolean().openapi({ description: "Lies in another program's folder and is read-only" }),
  has_avatar: z.boolean(),
  updated_at: Time,
  tags: z.array(z.string()),
  creator: z.string(),
}).openapi("CharacterItem");

/** A character with its card. */
export const Character = CharacterItem.extend({
  has_assets: z.boolean().openapi({
    description: "Came in a CHARX with other files, which an export as CHARX has again",
  }),
  card: Card,
}).openapi("Character");

/** A card of any version, bare or under `card`. The service reads it, since it alone knows all versions. */
const CardBody = z.unknown().refine(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "a card is an object",
).openapi({
  type: "object",
  description: "A V1, V2 or V3 card, bare or as {card}",
  example: { card: { name: "Fox", description: "{{char}} is a fox.", first_mes: "Hello {{user}}." } },
});

/** All characters, or a page of them. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/characters",
  tags,
  summary: "List characters, those of card_dirs among them: all as an array, or with limit one page",
  request: {
    query: z.object({
      view: z.enum(["summary", "full"]).default("summary").openapi({ description: "full: with their cards" }),
      limit: z.coerce.number().int().min(1).max(500).optional(),
      cursor: z.string().max(4000).optional(),
      q: z.string().max(200).optional().openapi({ description: "Words in name, creator or tags" }),
      tag: z.string().max(500).optional(),
      sort: z.enum(["name", "updated"]).default("name"),
    }),
  },
  responses: {
    200: json(
      z.union([
        z.array(z.union([CharacterItem, Character])),
        z.object({
          items: z.array(z.union([CharacterItem, Character])),
          next_cursor: z.string().nullable(),
        }),
      ]),
      "An array of characters, or a page",
    ),
    ...ERRORS,
  },
});

/** One card. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}",
  tags,
  summary: "One character with its card",
  request: { params: IdParams },
  responses: { 200: json(Character, "The character; its ETag is a hash of the card"), ...ERRORS },
});

/** Save a card. */
export const putRoute = createRoute({
  method: "put",
  path: "/api/characters/{id}",
  tags,
  summary: "Save a character's card, into its picture where it has one",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(CardBody) },
  responses: { 200: json(Character, "Saved"), 201: json(Character, "Created"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: "/api/characters/{id}",
  tags,
  summary: "Move a character to the trash",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** The picture. */
export const avatarRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/avatar",
  tags,
  summary: "A character's picture",
  request: {
    params: IdParams,
    query: z.object({
      w: z.string().regex(/^\d{1,9}$/, "a width is a whole number of pixels").optional().openapi({
        description: "Width in pixels, brought into 16 to 2048; a smaller picture comes as it is",
        example: "256",
      }),
    }),
  },
  responses: {
    200: { description: "The picture", content: { "image/png": { schema: z.string().openapi(BINARY) } } },
    ...ERRORS,
  },
});

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/** Replace the picture. */
export const putAvatarRoute = createRoute({
  method: "put",
  path: "/api/characters/{id}/avatar",
  tags,
  summary: "Replace a character's picture, which keeps its card",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: { required: true, content: Object.fromEntries(IMAGE_TYPES.map((type) => [type, { schema: BINARY }])) },
  },
  responses: { 200: json(Character, "Replaced"), ...ERRORS },
});

/** Import a file. */
export const importRoute = createRoute({
  method: "post",
  path: "/api/characters/import",
  tags,
  summary: "Import a card file: PNG, JSON or CHARX",
  request: {
    body: oneFile,
  },
  responses: { 201: json(Character, "Imported, under an id of the server's"), ...ERRORS },
});

/** Bring the built-in character back. */
export const restoreAppRoute = createRoute({
  method: "post",
  path: "/api/characters/restore-app",
  tags,
  summary: "Install the built-in character again; one that was changed goes to the trash first",
  responses: { 200: json(Character, "It is there as it came"), ...ERRORS },
});

/** Hand out as a file. */
export const exportRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/export",
  tags,
  summary: "A character as a file for other programs",
  request: { params: IdParams, query: z.object({ format: z.enum(CARD_FORMATS).default("png") }) },
  responses: {
    200: {
      description: "The file; X-Parlor-Warning: larger_than_import_limit when the import would refuse its size",
      content: Object.fromEntries(
        ["image/png", "application/json", "application/zip"].map((type) => [type, { schema: BINARY }]),
      ),
    },
    ...ERRORS,
  },
});

const Portrait = z.object({
  state: z.enum(["none", "pending", "running", "done", "failed"]),
  progress: z.number().min(0).max(1).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  started_at: Time.optional(),
  finished_at: Time.optional(),
}).openapi("Portrait");

/** Where the portrait job stands. */
export const portraitRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/avatar/status",
  tags,
  summary: "State of the portrait job",
  request: { params: IdParams },
  responses: { 200: json(Portrait, "The last portrait job of this character"), ...ERRORS },
});

/** Draw a portrait. */
export const generateRoute = createRoute({
  method: "post",
  path: "/api/characters/{id}/avatar/generate",
  tags,
  summary: "Start drawing a portrait with the active image backend",
  request: { params: IdParams },
  responses: { 202: json(Job, "The job; the same one while one is under way"), ...ERRORS },
});

const versioned = {
  path: "/api/characters/{id}",
  what: "a character",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  answer: Character,
};

/** Earlier versions. */
export const versionsRoute = createVersionsRoute(versioned);

/** One of them. */
export const versionRoute = createVersionRoute(
  versioned,
  z.object({ card: Card, has_avatar: z.boolean() }).openapi("CharacterVersion"),
);

/** Its picture. */
export const versionAvatarRoute = createVersionAvatarRoute(versioned);

/** Restore one. */
export const restoreVersionRoute = createRestoreVersionRoute(versioned);

/** A character card, version 3. */
export type { Card as CardJson, CardData as CardDataJson } from "../../services/characters/card/card.ts";

/** A character without its card. */
export type CharacterItemJson = z.output<typeof CharacterItem>;

/** A character with its card. */
export type CharacterJson = Omit<z.output<typeof Character>, "card"> & { card: StoredCard };

/** The state of a portrait job. */
export type PortraitJson = z.output<typeof Portrait>;

const FoundCard = z.object({
  id: z.string().openapi({ example: "creator/slug" }),
  name: z.string(),
  tagline: z.string(),
  creator: z.string(),
  tags: z.array(z.string()),
  avatar_url: z.string().openapi({ description: "An address of this server" }),
  page_url: z.string(),
  downloads: z.number().nullable(),
  stars: z.number().nullable(),
  updated_at: Time.nullable(),
}).openapi("FoundCard");

/** Search. */
export const searchRoute = createRoute({
  method: "get",
  path: "/api/characters/search",
  tags,
  summary: "Search the public card site",
  request: {
    query: z.object({
      q: z.string().max(200).default(""),
      tags: z.string().max(500).default("").openapi({ description: "Comma-separated; all have to be there" }),
      sort: z.enum(CARD_SORTS).default("relevance"),
      page: z.coerce.number().int().min(1).max(10_000).default(1),
      nsfw: z.enum(["true", "false"]).default("false"),
    }),
  },
  responses: {
    200: json(
      z.object({ items: z.array(FoundCard), next_cursor: z.string().nullable() }).openapi("CardSearchPage"),
      "One page; next_cursor is the number of the next",
    ),
    ...ERRORS,
  },
});

/** A picture among the results. */
export const pictureRoute = createRoute({
  method: "get",
  path: "/api/characters/search/{creator}/{slug}/avatar",
  tags,
  summary: "Fetch the picture of a search result, by its names alone",
  request: { params: z.object({ creator: z.string().min(1).max(128), slug: z.string().min(1).max(128) }) },
  responses: {
    200: {
      description: "The picture, under the type of its content",
      content: { "image/*": { schema: z.string().openapi({ format: "binary" }) } },
    },
    ...ERRORS,
  },
});

/** Import. */
export const importUrlRoute = createRoute({
  method: "post",
  path: "/api/characters/import-url",
  tags,
  summary: "Import a character from its page at a card site, or from a direct link to a card file",
  request: { body: jsonBody(z.object({ url: z.string().min(1).max(4096) })) },
  responses: { 201: json(Character, "The new character"), ...ERRORS },
});

/** A card that the card site offers. */
export type FoundCardJson = z.output<typeof FoundCard>;

const Creation = z.object({
  idea: z.string().max(20_000).default("").openapi({ example: "A lighthouse keeper who collects storms" }),
  picture: z.string().regex(ATTACHMENT_NAME, "this is no name of an attachment").optional().openapi({
    description: "Name of an attachment that shows the character; the model has to understand pictures",
  }),
  language: z.string().max(60).optional().openapi({
    description: "Language to write in; the idea's own where left out",
    example: "Deutsch",
  }),
  background: z.boolean().default(false).openapi({ description: "A job writes and stores the character" }),
  portrait: z.boolean().default(true).openapi({
    description: "Whether the job takes the picture as the character's portrait",
  }),
}).refine(({ idea, picture }) => idea.trim() !== "" || picture !== undefined, {
  path: ["idea"],
  message: "an idea or a picture is needed",
}).openapi("Creation");

/** `POST /api/characters/create` */
export const createCharacterRoute = createRoute({
  method: "post",
  path: "/api/characters/create",
  tags: ["Characters"],
  summary: "Let the active model write a character of an idea or a picture",
  request: { body: jsonBody(Creation) },
  responses: {
    200: {
      description:
        "Events as it is written, nothing is stored: start {model}; field {field, append} or {field, value} for texts " +
        "of a card and its tags; then done {is_cut} or error. The client's leaving ends the model",
      content: { "text/event-stream": { schema: z.string() } },
    },
    202: json(Job, "With background: the job; its detail is {character_id?, name?, is_cut?}"),
    ...ERRORS,
  },
});

const encoder = new TextEncoder();

/** Makes one event of a character's stream. */
export function toCreationFrame(
  event: "start" | "field" | "done" | "error",
  data: unknown,
): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Makes the bytes of events that go out together. */
export function encodeFrames(frames: readonly string[]): Uint8Array<ArrayBuffer> {
  return encoder.encode(frames.join(""));
}

/** The body that starts the generation of a character. */
export type CharacterGenerationJson = z.input<typeof Creation>;
