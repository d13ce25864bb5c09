/** Search on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, Id, json, Time } from "./common.ts";

/** A place that a search found. */
export const SearchHit = z.object({
  conversation_id: Id,
  message_id: Id.nullable().openapi({ description: "null where the title was found" }),
  title: z.string(),
  role: z.string().nullable(),
  snippet: z.string().openapi({ description: "The text around the hit" }),
  created_at: Time,
}).openapi("SearchHit");

const DocumentHit = z.object({
  document_id: Id,
  page: z.number().int(),
  title: z.string().openapi({ description: "Name of the document" }),
  snippet: z.string(),
  created_at: Time,
}).openapi("DocumentHit");

const Page = z.object({
  items: z.array(z.union([SearchHit, DocumentHit])).openapi({ description: "Documents come after all conversations" }),
  next_cursor: z.string().nullable().openapi({ description: "null when everything has been searched" }),
  unreadable: z.array(Id).optional().openapi({
    description: "Conversations of which something can't be read, and wasn't searched",
  }),
}).openapi("SearchPage");

/** `GET /api/search` */
export const searchRoute = createRoute({
  method: "get",
  path: "/api/search",
  tags: ["Search"],
  summary: "Find messages, titles and pages of documents that hold all words of a query, newest conversations first",
  request: {
    query: z.object({
      q: z.string().openapi({ description: 'Words, and "quoted phrases" as a whole; 1 to 500 characters' }),
      conversation_id: Id.optional(),
      character_id: Id.optional(),
      cursor: z.string().optional(),
    }),
  },
  responses: { 200: json(Page, "At most 20 hits; a page may be short and still have a next one"), ...ERRORS },
});

/** A place that a search found. */
export type SearchHitJson = z.output<typeof SearchHit>;

/** A page of a document that a search found. */
export type DocumentHitJson = z.output<typeof DocumentHit>;
