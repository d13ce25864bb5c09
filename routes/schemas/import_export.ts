/** Imports and exports. */
import { createRoute, z } from "@hono/zod-openapi";
import { CARD_FORMATS } from "../../services/characters/card/card_file.ts";
import { CHAT_FORMATS } from "../../services/import_export/export_formats.ts";
import { IMPORT_KINDS, IMPORTED_ITEM_KINDS } from "../../services/import_export/import_item.ts";
import { ERRORS, Id, IdParams, json, jsonBody } from "./common.ts";
import { Job } from "./jobs.ts";

const Counts = z.object({
  added: z.number().int(),
  updated: z.number().int().openapi({ description: "Was here in an older state, which is kept as a revision" }),
  present: z.number().int().openapi({ description: "Was here already" }),
  refused: z.number().int(),
});

/** `detail` of the job of an ended import. */
const ImportReport = z.object({
  kind: z.enum(IMPORT_KINDS),
  dry_run: z.boolean(),
  upload_id: z.string().optional().openapi({ description: "After a dry run: imports the same upload, for an hour" }),
  counts: z.record(z.enum(IMPORTED_ITEM_KINDS), Counts),
  messages: z.number().int().openapi({ description: "Messages of conversations that were added or updated" }),
  items: z.array(z.object({
    what: z.enum(IMPORTED_ITEM_KINDS),
    id: z.string(),
    name: z.string(),
    state: z.enum(["added", "updated"]),
  })).openapi({ description: "The first of each kind that came in; the counts say how many there are" }),
  lines: z.array(z.object({
    level: z.enum(["refused", "left_out", "changed", "kept"]),
    source: z.string().openapi({ description: "Path in what was imported" }),
    reason: z.string(),
    code: z.string().optional().openapi({ description: "Which sentence the reason is, where it is one of ours" }),
    params: z.record(z.string(), z.union([z.string(), z.number()])).optional().openapi({
      description: "What is in the sentence",
    }),
    count: z.number().int().optional().openapi({ description: "How many files this speaks of" }),
  })),
  lines_dropped: z.number().int(),
}).openapi("ImportReport");

const Importable = z.object({
  kinds: z.array(z.enum(IMPORT_KINDS)),
  max_bytes: z.number().int().openapi({ description: "Of an upload" }),
}).openapi("Importable");

/** `GET /api/import` */
export const importableRoute = createRoute({
  method: "get",
  path: "/api/import",
  tags: ["Transfer"],
  summary: "What can be imported",
  responses: {
    200: json(
      Importable,
      "Kinds, and how large an upload may be",
    ),
    ...ERRORS,
  },
});

/** `POST /api/import` */
export const importRoute = createRoute({
  method: "post",
  path: "/api/import",
  tags: ["Transfer"],
  summary: "Import a zip or a file of another program; the job's detail is the report. Nothing is imported twice.",
  request: {
    query: z.object({
      kind: z.enum(IMPORT_KINDS),
      dry_run: z.enum(["true", "false"]).optional().openapi({ description: "Read and compare all, change nothing" }),
      name: z.string().min(1).max(200).optional().openapi({
        description: "What the file is called",
        example: "a.jsonl",
      }),
      upload_id: Id.optional().openapi({ description: "Of a dry run's report, instead of a body" }),
    }),
    body: {
      content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } },
    },
  },
  responses: { 202: json(Job.extend({ detail: ImportReport.optional() }), "The job of the import"), ...ERRORS },
});

/** What the server can import. */
export type ImportableJson = z.output<typeof Importable>;

/** The report of an import. */
export type ImportReportJson = z.output<typeof ImportReport>;

const file = z.string().openapi({ format: "binary" });

/** `GET /api/conversations/{id}/export` */
export const exportChatRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/export",
  tags: ["Transfer"],
  summary: "One conversation as a file",
  request: { params: IdParams, query: z.object({ format: z.enum(CHAT_FORMATS) }) },
  responses: {
    200: {
      description: "Markdown to be read, JSON whole, or Tavern's JSONL",
      content: {
        "text/markdown": { schema: file },
        "application/json": { schema: file },
        "application/jsonl": { schema: file },
      },
    },
    ...ERRORS,
  },
});

/** `GET /api/export` */
export const exportAllRoute = createRoute({
  method: "get",
  path: "/api/export",
  tags: ["Transfer"],
  summary: "Everything a person owns in one zip, which imports again whole under the kind parlor",
  responses: { 200: { description: "The zip", content: { "application/zip": { schema: file } } }, ...ERRORS },
});

const ids = z.array(Id).min(1).max(1000);

/** What is exported together. */
const ExportSelection = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("conversations"), ids, format: z.enum(CHAT_FORMATS) }),
  z.object({ kind: z.literal("characters"), ids, format: z.enum(CARD_FORMATS) }),
]).openapi("ExportSelection");

/** `POST /api/export` */
export const exportSelectionRoute = createRoute({
  method: "post",
  path: "/api/export",
  tags: ["Transfer"],
  summary:
    "Several conversations or characters as files in one zip; unreadable.json in it lists those that can't be read",
  request: { body: jsonBody(ExportSelection) },
  responses: { 200: { description: "The zip", content: { "application/zip": { schema: file } } }, ...ERRORS },
});
