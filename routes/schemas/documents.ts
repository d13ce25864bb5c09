/** Documents in the API, and how messages, conversations, characters and personas refer to them. */
import { createRoute, z } from "@hono/zod-openapi";
import { TEXT_ENCODINGS } from "../../services/documents/extraction/text_encodings.ts";
import {
  DOCUMENT_ERRORS,
  DOCUMENT_LEDGER,
  type DocumentLedgerKind,
  type DocumentUse,
  formatPages,
  MAX_DOCUMENT_NAME,
  MAX_DOCUMENTS,
  PAGE_UNITS,
  parsePages,
  type StoredDocument,
} from "../../services/documents/document.ts";
import {
  BINARY,
  ERRORS,
  Id,
  IdempotencyKey,
  IdParams,
  IfMatch,
  json,
  jsonBody,
  LedgerEntrySchema,
  RangeHeaders,
  Time,
} from "./common.ts";
import { Job } from "./jobs.ts";

const tags = ["Documents"];

export { MAX_DOCUMENTS };

/** A list of pages: `"3-5,12"`. */
const Pages = z.string().max(4_000).refine((text) => parsePages(text) !== undefined, 'write pages as "3-5,12"')
  .openapi({ example: "3-5,12" });

const LEDGER_KINDS = Object.keys(DOCUMENT_LEDGER) as [DocumentLedgerKind, ...DocumentLedgerKind[]];

/** A document without its text. */
export const Document = z.object({
  id: Id,
  name: z.string(),
  content_type: z.string(),
  size_bytes: z.number().int(),
  pages: z.number().int().openapi({ description: "Number of pages or sections; 0 until it is known" }),
  unit: z.enum(PAGE_UNITS).openapi({
    description: "Only PDF files have pages; other text is divided into sections",
  }),
  tokens: z.number().int().openapi({ description: "Estimated number of tokens of the whole text" }),
  state: z.enum(["extracting", "ready", "failed"]),
  error: z.object({ code: z.enum(DOCUMENT_ERRORS), message: z.string() }).optional(),
  url: z.string().optional().openapi({ description: "URL of a link" }),
  ledger: z.array(LedgerEntrySchema.extend({ kind: z.enum(LEDGER_KINDS) })).openapi({
    description: "What the file contains besides the text that was read",
  }),
  encoding: z.string().optional().openapi({ description: "Encoding of a text file, such as shift_jis" }),
  created_at: Time,
}).openapi("Document");

/** How one document is used. */
export const DocumentUseSchema = z.object({
  id: Id,
  use: z.enum(["auto", "whole", "pages"]).default("auto").openapi({
    description: "auto: the whole text if it fits, otherwise the passages that match best",
  }),
  pages: Pages.nullish(),
}).refine(({ use, pages }) => use !== "pages" || typeof pages === "string", {
  message: "use: pages requires pages",
  path: ["pages"],
}).openapi("DocumentUse");

/** The `documents` field of characters and personas. */
export const DocumentUsesSchema = z.array(DocumentUseSchema).max(MAX_DOCUMENTS);

/** Converts the `documents` of a request. */
export function toDocumentUses(uses: z.output<typeof DocumentUsesSchema>): DocumentUse[] {
  return uses.map(({ id, use, pages }) =>
    use === "pages" ? { id, use, pages: formatPages(parsePages(pages!)!) } : { id, use }
  );
}

/** Which part of a document is sent. */
export const SentDocumentSchema = z.object({
  id: Id,
  name: z.string(),
  use: z.enum(["auto", "whole", "pages"]),
  pages: z.string().openapi({ description: 'The pages that are sent, such as "3-5,12"; empty if none are' }),
  page_count: z.number().int(),
  unit: z.enum(PAGE_UNITS),
  tokens: z.number().int(),
  error: z.object({ code: z.string(), message: z.string() }).optional().openapi({
    description: "Why nothing is sent: not_found, extracting, or the document's own reason",
  }),
}).openapi("SentDocument");

/** Body of a link. */
export const LinkBody = z.object({ url: z.string().min(1) });

/** Add. */
export const addRoute = createRoute({
  method: "post",
  path: "/api/documents",
  tags,
  summary: "Add a file or a link; a job reads its text",
  request: {
    headers: IdempotencyKey,
    query: z.object({
      id: Id.optional().openapi({ description: "Chosen by the client; 409 if a document has it already" }),
    }),
    body: {
      required: true,
      content: {
        "multipart/form-data": {
          schema: { type: "object" as const, properties: { file: BINARY }, required: ["file"] },
        },
        "application/json": {
          schema: {
            type: "object" as const,
            properties: { url: { type: "string" as const } },
            required: ["url"],
          },
        },
      },
    },
  },
  responses: { 201: json(Document, "The document; X-Parlor-Job-Id names the job that reads its text"), ...ERRORS },
});

/** List. */
export const listRoute = createRoute({
  method: "get",
  path: "/api/documents",
  tags,
  summary: "List all documents, newest first",
  responses: { 200: json(z.array(Document), "The documents"), ...ERRORS },
});

/** One. */
export const getRoute = createRoute({
  method: "get",
  path: "/api/documents/{id}",
  tags,
  summary: "Get a document without its text",
  request: { params: IdParams },
  responses: { 200: json(Document, "The document"), ...ERRORS },
});

/** Rename. */
export const renameRoute = createRoute({
  method: "patch",
  path: "/api/documents/{id}",
  tags,
  summary: "Rename a document",
  request: {
    params: IdParams,
    headers: IfMatch,
    body: jsonBody(z.object({ name: z.string().trim().min(1).max(MAX_DOCUMENT_NAME) })),
  },
  responses: { 200: json(Document, "The document"), ...ERRORS },
});

/** Its text. */
export const textRoute = createRoute({
  method: "get",
  path: "/api/documents/{id}/text",
  tags,
  summary: "Get the text of a document by pages",
  request: { params: IdParams, query: z.object({ pages: Pages.optional() }) },
  responses: {
    200: json(
      z.object({ unit: z.enum(PAGE_UNITS), pages: z.array(z.object({ n: z.number().int(), text: z.string() })) }),
      "The pages",
    ),
    ...ERRORS,
  },
});

/** Images and text of a page as one image. */
export const pageImageRoute = createRoute({
  method: "get",
  path: "/api/documents/{id}/pages/{page}/image",
  tags,
  summary: "Get the images of a PDF page, such as a scan, as one JPEG; 422 if it has none",
  request: {
    params: IdParams.extend({
      page: z.coerce.number().int().min(1).max(1_000_000).openapi({ description: "From 1", type: "integer" }),
    }),
  },
  responses: {
    200: {
      description: "The images at their positions, without text or lines, at most 2048 pixels on the longer side",
      content: { "image/jpeg": { schema: BINARY } },
    },
    ...ERRORS,
  },
});

/** Files of all types that documents have. */
const anyFile = { "*/*": { schema: BINARY } };

/** The original. */
export const fileRoute = createRoute({
  method: "get",
  path: "/api/documents/{id}/file",
  tags,
  summary: "Get the original file, whole or in part",
  request: { params: IdParams, headers: RangeHeaders },
  responses: {
    200: { description: "The file; any kind of text is text/plain", content: anyFile },
    206: { description: "A part of the file", content: anyFile },
    ...ERRORS,
  },
});

/** Read again. */
export const readAgainRoute = createRoute({
  method: "post",
  path: "/api/documents/{id}/read",
  tags,
  summary: "Read the original again; its text stays until the new one is complete",
  request: {
    params: IdParams,
    body: {
      required: false,
      content: {
        "application/json": {
          schema: z.object({
            encoding: z.enum(TEXT_ENCODINGS).optional().openapi({
              description: "Encoding of a text file; by default it is detected",
            }),
          }),
        },
      },
    },
  },
  responses: { 202: json(Job, "The job that reads the text"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: "/api/documents/{id}",
  tags,
  summary: "Move a document to the trash",
  request: { params: IdParams },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Converts a document to its JSON form. */
export function toDocumentJson(document: StoredDocument): z.output<typeof Document> {
  const { id, name, contentType, sizeBytes, pages, unit, tokens, state, error, url, createdAtMs } = document;
  const { ledger = [], encoding } = document;
  return {
    id,
    name,
    content_type: contentType,
    size_bytes: sizeBytes,
    pages,
    unit,
    tokens,
    state,
    ...(error && { error }),
    ...(url !== undefined && { url }),
    ledger,
    ...(encoding !== undefined && { encoding }),
    created_at: new Date(createdAtMs).toISOString(),
  };
}

/** An encoding of a text file. */
export type DocumentEncoding = typeof TEXT_ENCODINGS[number];

/** A document. */
export type DocumentJson = z.output<typeof Document>;

/** How one document is used. */
export type DocumentUseJson = z.input<typeof DocumentUseSchema>;
