/** The library in the API: documents and images with the chats that use them. */
import { createRoute, z } from "@hono/zod-openapi";
import { Document } from "./documents.ts";
import { ERRORS, Id, IdParams, json, Time } from "./common.ts";

const tags = ["Library"];

const LibraryDocument = Document.extend({
  conversations: z.array(z.object({ id: Id, title: z.string() })).openapi({
    description: "The chats that use it, the most recently changed first. Other versions of messages count, too",
  }),
}).openapi("LibraryDocument");

/** All documents. */
export const libraryDocumentsRoute = createRoute({
  method: "get",
  path: "/api/library/documents",
  tags,
  summary: "List documents with the chats that use them, newest first",
  request: {
    query: z.object({
      cursor: z.string().max(100).optional(),
      limit: z.coerce.number().int().min(1).max(200).default(50),
      q: z.string().max(500).optional().openapi({ description: "Only documents whose name has this text" }),
      conversation_id: Id.optional().openapi({ description: "Only the documents of this chat" }),
    }),
  },
  responses: {
    200: json(
      z.object({ items: z.array(LibraryDocument), next_cursor: z.string().nullable() }).openapi("LibraryPage"),
      "A page",
    ),
    ...ERRORS,
  },
});

const ChatImage = z.object({
  name: z.string().openapi({ description: "Name of the attachment" }),
  url: z.string(),
  width: z.number().int(),
  height: z.number().int(),
  message_id: Id.openapi({ description: "The last message that has it" }),
  created_at: Time,
}).openapi("ChatImage");

const ChatFiles = z.object({
  documents: z.array(Document.extend({
    message_id: Id.nullable().openapi({
      description: "The last message that has it; null if it is sent with every message",
    }),
  })),
  images: z.array(ChatImage),
}).openapi("ChatFiles");

/** Those of one chat. */
export const chatFilesRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/files",
  tags,
  summary: "List the documents and images in the messages of a chat, the last ones first",
  request: { params: IdParams },
  responses: { 200: json(ChatFiles, "Without those in the trash"), ...ERRORS },
});

/** A document and the chats that use it. */
export type LibraryDocumentJson = z.output<typeof LibraryDocument>;

/** The documents and images of a chat. */
export type ChatFilesJson = z.output<typeof ChatFiles>;
