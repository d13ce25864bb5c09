/** `/api/export` and `/api/conversations/{id}/export`: what a person carries away. */
import { clientSignal } from "../middleware/env.ts";
import type { Exports } from "../services/import_export/exports.ts";
import { attachment } from "./http/content_disposition.ts";
import { rawAnswer, startedStream } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import { exportAllRoute, exportChatRoute } from "./schemas/import_export.ts";

/** Routes of exports. */
export function exportRoutes(exports: Exports) {
  return newRouter()
    .openapi(exportChatRoute, async (c) => {
      const { format } = c.req.valid("query");
      const { text, contentType, fileName } = await exports.chat(c.req.valid("param").id, format, clientSignal(c));
      const headers = { "Content-Type": contentType, "Content-Disposition": attachment(fileName) };
      return rawAnswer(c.body(text, 200, headers));
    })
    .openapi(exportAllRoute, async (c) => {
      const fileName = `parlor-${new Date().toISOString().slice(0, 10)}.zip`;
      const headers = { "Content-Type": "application/zip", "Content-Disposition": attachment(fileName) };
      return rawAnswer(c.body(await startedStream(c, exports.everything()), 200, headers));
    });
}
