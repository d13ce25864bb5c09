/** `/api/import` and `/api/export`. */
import type { ImportRequest } from "../services/import_export/imports.ts";
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import { IMPORT_KINDS } from "../services/import_export/import_item.ts";
import { formatAttachmentHeader } from "./http/file_response.ts";
import { createRouter } from "./http/router.ts";
import {
  exportAllRoute,
  exportChatRoute,
  exportSelectionRoute,
  importableRoute,
  importRoute,
  importSourcesRoute,
  removeImportSourceRoute,
  toImportSourceJson,
} from "./schemas/import_export.ts";
import { toJobJson } from "./schemas/jobs.ts";
import { openResponseStream, passRawResponse } from "./http/raw_response.ts";

/** Routes of imports and exports. */
export function importExportRoutes(services: Services) {
  return createRouter().route("/", importRoutes(services)).route("/", exportRoutes(services));
}

function importRoutes(services: Services) {
  const importable = { kinds: [...IMPORT_KINDS], max_bytes: services.config.maxImportBodyBytes };
  return createRouter()
    .openapi(importableRoute, (c) => c.json(importable, 200))
    .openapi(importRoute, async (c) => {
      const imports = await services.imports();
      const { kind, dry_run, name, upload_id, source_id, keep_source } = c.req.valid("query");
      const request = { kind, isDryRun: dry_run === "true", name } satisfies ImportRequest;
      const keepsSource = keep_source === "true";
      const { body } = c.req.raw;
      if (upload_id !== undefined && source_id !== undefined) {
        throw new AppError("invalid_request", "Use upload_id or source_id, not both");
      }
      if (upload_id === undefined && source_id === undefined && body === null) {
        throw new AppError("invalid_request", "The body of the request must be the file to import");
      }
      const job = source_id !== undefined
        ? await imports.readAgain(request, source_id)
        : upload_id !== undefined
        ? await imports.resumeJob(request, upload_id, keepsSource)
        : await imports.upload(request, body!, keepsSource);
      c.header("X-Parlor-Job-Id", job.id);
      return passRawResponse(c.json(toJobJson(job), 202));
    })
    .openapi(importSourcesRoute, async (c) => {
      const { sources } = await services.imports();
      return c.json((await sources.list()).map(toImportSourceJson), 200);
    })
    .openapi(removeImportSourceRoute, async (c) => {
      const { sources } = await services.imports();
      await sources.remove(c.req.valid("param").id);
      return c.body(null, 204);
    });
}

function exportRoutes(services: Services) {
  return createRouter()
    .openapi(exportChatRoute, async (c) => {
      const exports = await services.exports();
      const { format } = c.req.valid("query");
      const signal = getClientSignal(c);
      const { text, contentType, fileName } = await exports.exportChat(c.req.valid("param").id, format, { signal });
      const headers = { "Content-Type": contentType, "Content-Disposition": formatAttachmentHeader(fileName) };
      return passRawResponse(c.body(text, 200, headers));
    })
    .openapi(exportAllRoute, async (c) => {
      const exports = await services.exports();
      return await sendZip(c, exports.exportAll());
    })
    .openapi(exportSelectionRoute, async (c) => {
      const exports = await services.exports();
      return await sendZip(c, exports.exportSelection(c.req.valid("json")));
    });
}

async function sendZip(c: AppContext, zip: AsyncGenerator<Uint8Array>): Promise<never> {
  const fileName = `parlor-${new Date().toISOString().slice(0, 10)}.zip`;
  const headers = { "Content-Type": "application/zip", "Content-Disposition": formatAttachmentHeader(fileName) };
  return passRawResponse(c.body(await openResponseStream(c, zip), 200, headers));
}
