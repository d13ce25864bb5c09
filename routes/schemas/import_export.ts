/** Imports and exports. */
import { createRoute, z } from "@hono/zod-openapi";
import { CARD_FORMATS } from "../../services/characters/card/card_export.ts";
import { CHAT_FORMATS } from "../../services/import_export/export_formats.ts";
import { IMPORT_KINDS, IMPORTED_ITEM_KINDS } from "../../services/import_export/import_item.ts";
import type { ImportSourceFile } from "../../services/import_export/import_sources.ts";
import { ERRORS, Id, IdParams, ImageMetadata, json, jsonBody, LedgerEntrySchema, Time } from "./common.ts";
import { Job } from "./jobs.ts";

const Counts = z.object({
  added: z.number().int(),
  updated: z.number().int().openapi({ description: "Existed in an older state, which is kept as a revision" }),
  present: z.number().int().openapi({ description: "Existed already" }),
  refused: z.number().int(),
});

/** `detail` of the job of a finished import. */
const ImportReport = z.object({
  kind: z.enum(IMPORT_KINDS),
  dry_run: z.boolean(),
  upload_id: z.string().optional().openapi({
    description: "Set after a dry run: ID to import the same upload within an hour",
  }),
  source_id: z.string().optional().openapi({
    description: "Set if the file is stored: ID to read it again",
  }),
  counts: z.record(z.enum(IMPORTED_ITEM_KINDS), Counts),
  messages: z.number().int().openapi({ description: "Messages of conversations that were added or updated" }),
  items: z.array(z.object({
    what: z.enum(IMPORTED_ITEM_KINDS),
    id: z.string(),
    name: z.string(),
    state: z.enum(["added", "updated", "present"]),
  })).openapi({
    description: "The first of each kind that was added or is there already; the counts contain the totals",
  }),
  lines: z.array(z.object({
    level: z.enum(["refused", "left_out", "changed", "kept"]),
    source: z.string().openapi({ description: "Path within the imported data" }),
    reason: z.string(),
    code: z.string().optional().openapi({ description: "Stable code of the reason, if it is one of Parlor's" }),
    params: z.record(z.string(), z.union([z.string(), z.number()])).optional().openapi({
      description: "Parameters of the reason",
    }),
    count: z.number().int().optional().openapi({ description: "Number of files with this reason" }),
  })),
  lines_dropped: z.number().int(),
  ledger: z.array(
    LedgerEntrySchema.extend({
      kind: z.string().openapi({ description: "Code of the reason, or other" }),
      level: z.enum(["refused", "left_out", "changed", "kept"]),
      params: z.record(z.string(), z.union([z.string(), z.number()])).optional().openapi({
        description: "Parameters of the reason; … if they differ from line to line",
      }),
    }),
  ).optional().openapi({
    description: "The lines by reason, those beyond the limit included. Absent in reports of older versions",
  }),
}).openapi("ImportReport");

const Importable = z.object({
  kinds: z.array(z.enum(IMPORT_KINDS)),
  max_bytes: z.number().int().openapi({ description: "Limit for an upload" }),
}).openapi("Importable");

/** `GET /api/import` */
export const importableRoute = createRoute({
  method: "get",
  path: "/api/import",
  tags: ["Transfer"],
  summary: "List what can be imported",
  responses: {
    200: json(
      Importable,
      "The kinds, and the maximum size of an upload",
    ),
    ...ERRORS,
  },
});

/** `POST /api/import` */
export const importRoute = createRoute({
  method: "post",
  path: "/api/import",
  tags: ["Transfer"],
  summary:
    "Import a zip or a file of another program; the job's detail is the report. Existing items aren't imported again",
  request: {
    query: z.object({
      kind: z.enum(IMPORT_KINDS),
      dry_run: z.enum(["true", "false"]).optional().openapi({ description: "Only read and compare; nothing changes" }),
      name: z.string().min(1).max(200).optional().openapi({
        description: "Name of the file",
        example: "a.jsonl",
      }),
      upload_id: Id.optional().openapi({ description: "ID from a dry run's report, instead of a body" }),
      source_id: Id.optional().openapi({
        description: "ID of a stored file, instead of a body: reads it again, which updates or skips what it imported",
      }),
      keep_source: z.enum(["true", "false"]).optional().openapi({
        description: "Store the file encrypted for 30 days after its import, in no backup, to read it again",
      }),
    }),
    body: {
      content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } },
    },
  },
  responses: { 202: json(Job.extend({ detail: ImportReport.optional() }), "The job of the import"), ...ERRORS },
});

const ImportSource = z.object({
  id: z.string(),
  kind: z.enum(IMPORT_KINDS),
  name: z.string().optional().openapi({ description: "Name of the file, if it was sent" }),
  size_bytes: z.number().int(),
  created_at: Time.openapi({ description: "When it was imported; it's deleted 30 days later" }),
}).openapi("ImportSource");

/** Converts a stored file to its JSON form. */
export function toImportSourceJson(source: ImportSourceFile): z.infer<typeof ImportSource> {
  const { id, kind, name, sizeBytes, createdAtMs } = source;
  return {
    id,
    kind,
    ...(name !== undefined && { name }),
    size_bytes: sizeBytes,
    created_at: new Date(createdAtMs).toISOString(),
  };
}

/** `GET /api/import/sources` */
export const importSourcesRoute = createRoute({
  method: "get",
  path: "/api/import/sources",
  tags: ["Transfer"],
  summary: "List the stored files of imports, newest first",
  responses: { 200: json(z.array(ImportSource), "The files that can be read again"), ...ERRORS },
});

/** `DELETE /api/import/sources/{id}` */
export const removeImportSourceRoute = createRoute({
  method: "delete",
  path: "/api/import/sources/{id}",
  tags: ["Transfer"],
  summary: "Delete the stored file of an import permanently; what it imported stays",
  request: { params: IdParams },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** A stored file of an import. */
export type ImportSourceJson = z.output<typeof ImportSource>;

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
  summary: "Export a conversation as a file",
  request: { params: IdParams, query: z.object({ format: z.enum(CHAT_FORMATS) }) },
  responses: {
    200: {
      description:
        "The conversation: as Markdown for reading, as JSON with everything, or in SillyTavern's JSONL format",
      content: {
        "text/markdown": { schema: file },
        "application/json": { schema: z.looseObject({}) },
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
  summary: "Export all of the owner's content in one zip, which can be imported completely as the kind parlor",
  responses: { 200: { description: "The zip", content: { "application/zip": { schema: file } } }, ...ERRORS },
});

const ids = z.array(Id).min(1).max(1000);

/** Items that are exported together. */
const ExportSelection = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("conversations"), ids, format: z.enum(CHAT_FORMATS) }),
  z.object({ kind: z.literal("characters"), ids, format: z.enum(CARD_FORMATS), image_metadata: ImageMetadata }),
]).openapi("ExportSelection");

/** `POST /api/export` */
export const exportSelectionRoute = createRoute({
  method: "post",
  path: "/api/export",
  tags: ["Transfer"],
  summary:
    "Export several conversations or characters as files in one zip; its unreadable.json lists those that can't be read",
  request: { body: jsonBody(ExportSelection) },
  responses: { 200: { description: "The zip", content: { "application/zip": { schema: file } } }, ...ERRORS },
});
