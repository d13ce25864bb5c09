/** Characters, the search of card sites, and characters written by a model. Unknown fields of a card are preserved. */
import { createRoute, z } from "@hono/zod-openapi";
import { ATTACHMENT_NAME } from "../../services/attachments/attachment_rows.ts";
import { type Card as StoredCard, MAX_FOLDER_LENGTH } from "../../services/characters/card/card.ts";
import { CARD_FORMATS } from "../../services/characters/card/card_export.ts";
import { CARD_SORTS } from "../../services/characters/sites/card_site.ts";
import {
  BINARY,
  ERRORS,
  eventStream,
  Id,
  IdempotencyKey,
  IdParams,
  IfMatch,
  ImageMetadata,
  json,
  jsonBody,
  LedgerSchema,
  oneFile,
  Time,
} from "./common.ts";
import { DocumentUsesSchema, toDocumentUses } from "./documents.ts";
import type { ErrorBody } from "../errors.ts";
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
}).openapi("Card", { description: "A character card, converted to version 3" });

const CharacterItem = z.object({
  id: Id,
  name: z.string(),
  external: z.boolean().openapi({ description: "The card is in another program's folder and read-only" }),
  has_avatar: z.boolean(),
  updated_at: Time,
  tags: z.array(z.string()),
  creator: z.string(),
  favorite: z.boolean().openapi({ description: "data.extensions.fav of the card; save the card to change it" }),
  folder: z.string().nullable().openapi({
    description: "data.extensions.parlor.folder of the card; save the card to change it",
  }),
  unreadable: z.literal(true).optional().openapi({
    description: "Its file can't be read. name is the last known one; restore a version or POST /api/data/unreadable",
  }),
}).openapi("CharacterItem");

/** A character with its card. */
const Character = CharacterItem.extend({
  has_assets: z.boolean().openapi({
    description: "Imported from a CHARX file with additional files, which a CHARX export also contains",
  }),
  card: Card,
  documents: DocumentUsesSchema.optional().openapi({
    description: "Documents that are available in all chats with the character",
  }),
  ledger: LedgerSchema.optional(),
}).openapi("Character");

/** Returns the documents sent with a card, or `undefined` if there are none or the body is only a card. */
function omitDocuments(body: unknown): unknown {
  const { card, documents } = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  return typeof card === "object" && card !== null ? documents : undefined;
}

/** Converts the documents sent with a card; `undefined` keeps the stored ones. */
export function toCharacterDocuments(body: unknown) {
  const documents = omitDocuments(body);
  return documents === undefined ? undefined : toDocumentUses(DocumentUsesSchema.parse(documents ?? []));
}

/** A card of any version, bare or as `card`. The service validates it, because only it knows all versions. */
export const CardBody = z.unknown().refine(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "a card must be an object",
).superRefine((body, context) => {
  const documents = omitDocuments(body);
  if (documents === undefined || documents === null) return;
  for (const issue of DocumentUsesSchema.safeParse(documents).error?.issues ?? []) {
    context.addIssue({ code: "custom", message: issue.message, path: ["documents", ...issue.path] });
  }
}).openapi({
  type: "object",
  description: "A V1, V2 or V3 card, bare or as {card}",
  example: { card: { name: "Fox", description: "{{char}} is a fox.", first_mes: "Hello {{user}}." } },
});

/** All characters, or a page of them. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/characters",
  tags,
  summary: "List characters, including those of card_dirs: all as an array, or one page if limit is set",
  request: {
    query: z.object({
      view: z.enum(["summary", "full"]).default("summary").openapi({ description: "full includes the cards" }),
      limit: z.coerce.number().int().min(1).max(500).optional(),
      cursor: z.string().max(4000).optional(),
      q: z.string().max(200).optional().openapi({ description: "Searches name, creator and tags" }),
      tag: z.string().max(500).optional(),
      favorite: z.enum(["true", "false"]).transform((text) => text === "true").optional().openapi({
        type: "string",
        enum: ["true", "false"],
        description: "Only favorites, or only others",
      }),
      folder: z.string().max(MAX_FOLDER_LENGTH).optional().openapi({
        description: "Only characters in this folder; empty for characters without a folder",
      }),
      sort: z.enum(["name", "favorites", "updated"]).default("name").openapi({
        description: "favorites: favorites first, then the others, both sorted by name",
      }),
      ids: z.string().max(10_000).transform((ids) => ids.split(",")).optional().openapi({
        type: "string",
        description: "Only these characters, separated by commas; unknown IDs are ignored",
      }),
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

const CharacterFolder = z.object({ name: z.string(), count: z.number().int() }).openapi("CharacterFolder");

/** A folder with its number of characters. */
export type CharacterFolderJson = z.output<typeof CharacterFolder>;

/** List the folders of characters */
export const foldersRoute = createRoute({
  method: "get",
  path: "/api/characters/folders",
  tags,
  summary: "List the folders that characters are in",
  responses: {
    200: json(
      z.array(CharacterFolder),
      "By name; a folder without characters doesn't exist",
    ),
    ...ERRORS,
  },
});

/** One card. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}",
  tags,
  summary: "Get a character with its card",
  request: { params: IdParams },
  responses: { 200: json(Character, "The character; its ETag is a hash of the card"), ...ERRORS },
});

/** Save a card. */
export const putRoute = createRoute({
  method: "put",
  path: "/api/characters/{id}",
  tags,
  summary: "Save a character's card; it is stored in the character's image if it has one",
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

/** The image. */
export const avatarRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/avatar",
  tags,
  summary: "Get a character's image",
  request: {
    params: IdParams,
    query: z.object({
      w: z.string().regex(/^\d{1,9}$/, "a width must be a whole number of pixels").optional().openapi({
        description: "Width in pixels, clamped to 16–2048; a smaller image isn't enlarged",
        example: "256",
      }),
    }),
  },
  responses: {
    200: { description: "The image", content: { "image/png": { schema: z.string().openapi(BINARY) } } },
    ...ERRORS,
  },
});

const Expression = z.object({
  n: z.number().int().openapi({ description: "Position in the card; it may change when the card changes" }),
  name: z.string().openapi({ description: `As in the card: "joy", or with a costume "beach/joy"` }),
}).openapi("Expression");

/** A mood image of a card. */
export type ExpressionJson = z.output<typeof Expression>;

/** The mood images of a card. */
export const expressionsRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/expressions",
  tags,
  summary: "List the mood images (expressions) in a character's card",
  request: { params: IdParams },
  responses: {
    200: json(z.array(Expression), "The expressions, in the order of the card"),
    ...ERRORS,
  },
});

/** One of them. */
export const expressionRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/expressions/{n}",
  tags,
  summary: "Get a mood image",
  request: { params: IdParams.extend({ n: z.coerce.number().int().min(0).max(10_000) }) },
  responses: {
    200: {
      description: "The image",
      content: Object.fromEntries(
        ["image/png", "image/jpeg", "image/webp", "image/gif"].map((type) => [type, {
          schema: z.string().openapi(BINARY),
        }]),
      ),
    },
    ...ERRORS,
  },
});

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/** Replace the image. */
export const putAvatarRoute = createRoute({
  method: "put",
  path: "/api/characters/{id}/avatar",
  tags,
  summary: "Replace a character's image; the card doesn't change",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: { required: true, content: Object.fromEntries(IMAGE_TYPES.map((type) => [type, { schema: BINARY }])) },
  },
  responses: { 200: json(Character, "Replaced"), ...ERRORS },
});

const Reuse = z.enum(["true", "false"]).default("false").transform((text) => text === "true").openapi({
  type: "string",
  enum: ["true", "false"],
  description: "Whether a character that is the same already is returned, instead of creating another one",
});

/** Import a file. */
export const importRoute = createRoute({
  method: "post",
  path: "/api/characters/import",
  tags,
  summary: "Import a card file: PNG, JSON or CHARX",
  request: { headers: IdempotencyKey, query: z.object({ reuse: Reuse }), body: oneFile },
  responses: {
    200: json(Character, "With `reuse`: the character that is the same already"),
    201: json(Character, "The imported character, with an ID that the server assigned"),
    ...ERRORS,
  },
});

/** Bring the built-in character back. */
export const restoreAppRoute = createRoute({
  method: "post",
  path: "/api/characters/restore-app",
  tags,
  summary: "Reinstall the built-in character; a changed one is moved to the trash first",
  responses: { 200: json(Character, "The built-in character in its original state"), ...ERRORS },
});

/** Hand out as a file. */
export const exportRoute = createRoute({
  method: "get",
  path: "/api/characters/{id}/export",
  tags,
  summary: "Export a character as a file",
  request: {
    params: IdParams,
    query: z.object({
      format: z.enum(CARD_FORMATS).default("png"),
      image_metadata: ImageMetadata,
    }),
  },
  responses: {
    200: {
      description: "The file. With X-Parlor-Warning: larger_than_import_limit, it is too large to import again",
      content: {
        "image/png": { schema: BINARY },
        "application/json": { schema: z.looseObject({ spec: z.string(), data: z.looseObject({}) }) },
        "application/zip": { schema: BINARY },
      },
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
  summary: "Get the state of the portrait job",
  request: { params: IdParams },
  responses: { 200: json(Portrait, "The last portrait job of this character"), ...ERRORS },
});

/** Draw a portrait. */
export const generateRoute = createRoute({
  method: "post",
  path: "/api/characters/{id}/avatar/generate",
  tags,
  summary: "Start generating a portrait with the active image backend",
  request: { params: IdParams },
  responses: { 202: json(Job, "The job; if one is already running, that one"), ...ERRORS },
});

const versioned = {
  path: "/api/characters/{id}",
  what: "a character",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  response: Character,
};

/** Earlier versions. */
export const versionsRoute = createVersionsRoute(versioned);

/** One of them. */
export const versionRoute = createVersionRoute(
  versioned,
  z.object({ card: Card, has_avatar: z.boolean() }).openapi("CharacterVersion"),
);

/** Its image. */
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
  avatar_url: z.string().openapi({ description: "A URL of this server" }),
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
      tags: z.string().max(500).default("").openapi({ description: "Comma-separated; all must match" }),
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

/** An image among the results. */
export const resultImageRoute = createRoute({
  method: "get",
  path: "/api/characters/search/{creator}/{slug}/avatar",
  tags,
  summary: "Fetch the image of a search result",
  request: { params: z.object({ creator: z.string().min(1).max(128), slug: z.string().min(1).max(128) }) },
  responses: {
    200: {
      description: "The image",
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
  request: { query: z.object({ reuse: Reuse }), body: jsonBody(z.object({ url: z.string().min(1).max(4096) })) },
  responses: {
    200: json(Character, "With `reuse`: the character that is the same already"),
    201: json(Character, "The new character"),
    ...ERRORS,
  },
});

/** A card that the card site offers. */
export type FoundCardJson = z.output<typeof FoundCard>;

const Creation = z.object({
  idea: z.string().max(20_000).default("").openapi({ example: "A lighthouse keeper who collects storms" }),
  picture: z.string().regex(ATTACHMENT_NAME, "this isn't the name of an attachment").optional().openapi({
    description: "Name of an attachment that shows the character; requires a model with image input",
  }),
  language: z.string().max(60).optional().openapi({
    description: "Language to write in; by default the language of the idea",
    example: "Deutsch",
  }),
  background: z.boolean().default(false).openapi({ description: "Whether a job writes and stores the character" }),
  portrait: z.boolean().default(true).openapi({
    description: "Whether the job uses the image as the character's portrait",
  }),
}).refine(({ idea, picture }) => idea.trim() !== "" || picture !== undefined, {
  path: ["idea"],
  message: "an idea or an image is required",
}).openapi("Creation");

const CardFieldUpdate = z.union([
  z.object({ field: z.string(), append: z.string() }),
  z.object({ field: z.string(), value: z.union([z.string(), z.array(z.string())]) }),
]).openapi("CardFieldUpdate", { description: "How a field of the card changes: appended text, or a new value" });

/** `POST /api/characters/create` */
export const createCharacterRoute = createRoute({
  method: "post",
  path: "/api/characters/create",
  tags: ["Characters"],
  summary: "Generate a character from an idea or an image with the active model",
  request: { body: jsonBody(Creation) },
  responses: {
    200: {
      description:
        "Events while the character is written; nothing is stored: start {model}; field with a CardFieldUpdate; then done " +
        "{is_cut} or error. If the client disconnects, the model stops",
      content: eventStream("A change of a field: {field, append} or {field, value}"),
    },
    202: json(Job, "With background: the job; its detail is {character_id?, name?, is_cut?}"),
    ...ERRORS,
  },
});

const encoder = new TextEncoder();

/** How a field changes while a model writes a character. */
export type CardFieldUpdateJson = z.output<typeof CardFieldUpdate>;

/** The events of a character's stream by name. */
interface CreationEvents {
  start: { model: string };
  field: CardFieldUpdateJson;
  done: { is_cut: boolean };
  error: ErrorBody;
}

/** Creates one event of a character's stream. */
export function toCreationFrame<Name extends keyof CreationEvents>(event: Name, data: CreationEvents[Name]): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Encodes events that are sent together. */
export function encodeFrames(frames: readonly string[]): Uint8Array<ArrayBuffer> {
  return encoder.encode(frames.join(""));
}

/** The body that starts the generation of a character. */
export type CharacterGenerationJson = z.input<typeof Creation>;
