/** The card site on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { CARD_SORTS } from "../../services/characters/sites/card_site.ts";
import { Character } from "./characters.ts";
import { ERRORS, json, jsonBody, Time } from "./common.ts";

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

const tags = ["Characters"];

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
