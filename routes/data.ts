/** `/api/data` and `/api/findings`: room, backups, and what is wrong with the installation. */
import type { Backups } from "../services/backup/backups.ts";
import type { Upkeep } from "../services/diagnostics/data_report.ts";
import { attachment } from "./http/content_disposition.ts";
import { fileAnswer } from "./http/ranged_file.ts";
import { rawAnswer } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import { toJobJson } from "./schemas/jobs.ts";
import {
  backupFileRoute,
  dataRoute,
  findingsRoute,
  removeBackupRoute,
  startBackupRoute,
  toDataJson,
} from "./schemas/data.ts";

/** Routes of upkeep. */
export function upkeepRoutes(upkeep: Upkeep, backups: Backups) {
  return newRouter()
    .openapi(dataRoute, async (c) => c.json(toDataJson(await upkeep.data()), 200))
    .openapi(startBackupRoute, async (c) => {
      const job = await backups.start();
      c.header("X-Parlor-Job-Id", job.id);
      return rawAnswer(c.json(toJobJson(job), 202));
    })
    .openapi(backupFileRoute, async (c) => {
      const { name } = c.req.valid("param");
      const { file, sizeBytes, version } = await backups.openFile(name);
      const headers = { "Content-Type": "application/octet-stream", "Content-Disposition": attachment(name) };
      return await fileAnswer(file, { sizeBytes, version, asked: c.req.valid("header"), headers });
    })
    .openapi(removeBackupRoute, async (c) => {
      await backups.remove(c.req.valid("param").name);
      return c.body(null, 204);
    })
    .openapi(findingsRoute, async (c) => c.json(await upkeep.findings(), 200));
}
