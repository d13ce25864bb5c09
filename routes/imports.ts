/** `/api/import`: what other programs hold, streamed to disk and brought in by a job. */
import { AppError } from "../services/errors.ts";
import { IMPORT_KINDS } from "../services/import_export/import_item.ts";
import type { Imports } from "../services/import_export/imports.ts";
import { rawAnswer } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import { importableRoute, importRoute } from "./schemas/import_export.ts";
import { toJobJson } from "./schemas/jobs.ts";

/** Routes of imports. @param options.maxBytes Of an upload. */
export function importRoutes(imports: Imports, { maxBytes }: { maxBytes: number }) {
  const importable = { kinds: [...IMPORT_KINDS], max_bytes: maxBytes };
  return newRouter().openapi(importableRoute, (c) => c.json(importable, 200)).openapi(importRoute, async (c) => {
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
