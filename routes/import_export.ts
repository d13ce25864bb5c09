/** `/api/import` and `/api/export`. */
import type { Services } from "../services/services.ts";
import { type AppContext, clientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import { IMPORT_KINDS } from "../services/import_export/import_item.ts";
import { attachment } from "./http/file_response.ts";
import { newRouter } from "./http/router.ts";
import {
  exportAllRoute,
  exportChatRoute,
  exportSelectionRoute,
  importableRoute,
  importRoute,
} from "./schemas/import_export.ts";
import { toJobJson } from "./schemas/jobs.ts";
import { rawAnswer, startedStream } from "./server/raw_response.ts";

/** Routes of imports and exports. */
export function importExportRoutes(services: Services) {
  return newRouter().route("/", importRoutes(services)).route("/", exportRoutes(services));
}

function importRoutes(services: Services) {
  const importable = { kinds: [...IMPORT_KINDS], max_bytes: services.config.maxImportBodyBytes };
  return newRouter().openapi(importableRoute, (c) => c.json(importable, 200)).openapi(importRoute, async (c) => {
    const imports = await services.imports();
    const { kind, dry_run, name, upload_id } = c.req.valid("query");
    const request = { kind, isDryRun: dry_run === "true", name };
    const { body } = c.req.raw;
    if (upload_id === undefined && body === null) {
      throw new AppError("invalid_request", "The body of the request has to be the file to import");
    }
    const job = upload_id === undefined
      ? await imports.upload(request, body!)
      : await imports.again(request, upload_id);
    c.header("X-Parlor-Job-Id", job.id);
    return rawAnswer(c.json(toJobJson(job), 202));
  });
}

function exportRoutes(services: Services) {
  return newRouter()
    .openapi(exportChatRoute, async (c) => {
      const exports = await services.exports();
      const { format } = c.req.valid("query");
      const signal = clientSignal(c);
      const { text, contentType, fileName } = await exports.chat(c.req.valid("param").id, format, { signal });
      const headers = { "Content-Type": contentType, "Content-Disposition": attachment(fileName) };
      return rawAnswer(c.body(text, 200, headers));
    })
    .openapi(exportAllRoute, async (c) => {
      const exports = await services.exports();
      return await sendZip(c, exports.everything());
    })
    .openapi(exportSelectionRoute, async (c) => {
      const exports = await services.exports();
      return await sendZip(c, exports.selection(c.req.valid("json")));
    });
}

async function sendZip(c: AppContext, zip: AsyncGenerator<Uint8Array>): Promise<never> {
  const fileName = `parlor-${new Date().toISOString().slice(0, 10)}.zip`;
  const headers = { "Content-Type": "application/zip", "Content-Disposition": attachment(fileName) };
  return rawAnswer(c.body(await startedStream(c, zip), 200, headers));
}
