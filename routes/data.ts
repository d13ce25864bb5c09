/**
 * `/api/data`, `/api/findings`, `/api/releases`, `/api/changelog`, `/api/licences` and `/api/trash`: disk usage,
 * backups, diagnostics, new versions, licenses, and deleted items that can be restored.
 */
import type { Services } from "../services/services.ts";
import { readChangelog } from "../services/releases/changelog.ts";
import { loadLicenseNotices } from "../services/diagnostics/license_notices.ts";
import { formatAttachmentHeader, sendFile } from "./http/file_response.ts";
import { createRouter } from "./http/router.ts";
import {
  backupFileRoute,
  changeBackupsRoute,
  changelogRoute,
  checkStoredRoute,
  dataRoute,
  emptyTrashRoute,
  findingsRoute,
  licencesRoute,
  releasesRoute,
  removeBackupRoute,
  restoreTrashRoute,
  restoreUnreadableRoute,
  startBackupRoute,
  toBackupSettingsJson,
  toDataJson,
  toIntegrityJson,
  toReleasesJson,
  trashRoute,
  unreadableRoute,
} from "./schemas/data.ts";
import { toJobJson } from "./schemas/jobs.ts";
import { passRawResponse } from "./http/raw_response.ts";

/** Routes of the data folder and diagnostics. */
export function dataRoutes(services: Services) {
  return createRouter()
    .openapi(dataRoute, async (c) => {
      const diagnostics = await services.diagnostics();
      return c.json(toDataJson(await diagnostics.measureData()), 200);
    })
    .openapi(startBackupRoute, async (c) => {
      const backups = await services.backups();
      const job = await backups.start();
      c.header("X-Parlor-Job-Id", job.id);
      return passRawResponse(c.json(toJobJson(job), 202));
    })
    .openapi(changeBackupsRoute, async (c) => {
      const backups = await services.backups();
      const { backup_dir: folder, backup_schedule: schedule, backup_keep: keep } = c.req.valid("json");
      const changes = Object.entries({ folder, schedule, keep }).filter(([, value]) => value !== undefined);
      return c.json(toBackupSettingsJson(await backups.change(Object.fromEntries(changes))), 200);
    })
    .openapi(backupFileRoute, async (c) => {
      const backups = await services.backups();
      const { name } = c.req.valid("param");
      const { file, sizeBytes, version } = await backups.openFile(name);
      const headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": formatAttachmentHeader(name),
      };
      return await sendFile(file, { sizeBytes, version, asked: c.req.valid("header"), headers });
    })
    .openapi(removeBackupRoute, async (c) => {
      const backups = await services.backups();
      await backups.remove(c.req.valid("param").name);
      return c.body(null, 204);
    })
    .openapi(findingsRoute, async (c) => {
      const diagnostics = await services.diagnostics();
      return c.json(await diagnostics.listFindings(), 200);
    })
    .openapi(unreadableRoute, async (c) => {
      const integrity = await services.integrity();
      return c.json(toIntegrityJson(integrity.getState()), 200);
    })
    .openapi(checkStoredRoute, async (c) => {
      const integrity = await services.integrity();
      return c.json(toIntegrityJson(await integrity.checkNow()), 200);
    })
    .openapi(restoreUnreadableRoute, async (c) => {
      const { path, accept_older } = c.req.valid("json");
      const healer = await services.healer();
      const { from, madeAt } = await healer.heal(path, { acceptsOlder: accept_older });
      return c.json({ from, made_at: madeAt }, 200);
    })
    .openapi(releasesRoute, async (c) => {
      const releases = await services.releases();
      return c.json(toReleasesJson(services.version, releases.host, releases.getState()), 200);
    })
    .openapi(changelogRoute, async (c) => c.json({ text: await readChangelog() }, 200))
    .openapi(licencesRoute, async (c) => c.json(await loadLicenseNotices(), 200));
}

/** Routes of the trash. */
export function trashRoutes({ trash }: Services) {
  return createRouter()
    .openapi(trashRoute, async (c) => c.json(await trash.list(), 200))
    .openapi(restoreTrashRoute, async (c) => {
      await trash.restore(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(emptyTrashRoute, async (c) => {
      await trash.removeAll();
      return c.body(null, 204);
    });
}
