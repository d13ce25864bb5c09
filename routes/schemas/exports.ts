/** Exports on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { CHAT_FORMATS } from "../../services/import_export/chat_export_formats.ts";
import { ERRORS, IdParams } from "./common.ts";

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
