/** Disk usage, backups, diagnostics, license notices and the trash. */
import { createRoute, z } from "@hono/zod-openapi";
import type { DataReport } from "../../services/diagnostics/data_report.ts";
import type { IntegrityState } from "../../services/integrity/damage.ts";
import type { BackupSettings } from "../../services/backup/backup_settings.ts";
import type { ReleaseState } from "../../services/releases/releases.ts";
import { ERRORS, json, jsonBody, RangeHeaders, Time } from "./common.ts";
import { Job } from "./jobs.ts";

const BackupSchedule = z.enum(["daily", "weekly", "off"]).openapi({
  description: "When backups are created automatically",
});

const Data = z.object({
  used: z.array(z.object({
    what: z.enum(["chats", "characters", "attachments", "documents", "models", "voices", "imports", "rest"]),
    size_bytes: z.number(),
  })),
  backup_dir: z.string().nullable().openapi({ description: "null if there are no backups" }),
  backup_schedule: BackupSchedule,
  backup_keep: z.number().int(),
  backup_fixed: z.array(z.enum(["backup_dir", "backup_schedule", "backup_keep"])).openapi({
    description: "Fields that a flag or the environment sets; they can't be changed here",
  }),
  backup_same_disk: z.boolean().nullable().openapi({
    description: "Whether the backup folder is on the same disk as the data; null if that is unknown",
  }),
  backups: z.array(z.object({ name: z.string(), size_bytes: z.number(), made_at: Time })),
}).openapi("DataReport");

const Finding = z.object({
  level: z.enum(["ok", "note", "problem"]),
  code: z.string().openapi({ description: "Stable code of the message", example: "disk_little" }),
  params: z.record(z.string(), z.union([z.string(), z.number()])).openapi({ description: "Parameters of the message" }),
  about: z.string(),
  remedy: z.string().optional().openapi({ description: "How to fix it; always present for problems" }),
}).openapi("Finding");

/** Converts the report to its JSON form. */
export function toDataJson({ used, backupSettings, isSameDisk, backups }: DataReport): z.infer<typeof Data> {
  const { fixed, ...settings } = backupSettings;
  return {
    used: used.map(({ what, sizeBytes }) => ({ what, size_bytes: sizeBytes })),
    ...toBackupSettingsJson(settings),
    backup_fixed: fixed.map((name) => FIELDS[name]),
    backup_same_disk: isSameDisk ?? null,
    backups: backups.map(({ name, sizeBytes, madeAt }) => ({ name, size_bytes: sizeBytes, made_at: madeAt })),
  };
}

const FIELDS = { folder: "backup_dir", schedule: "backup_schedule", keep: "backup_keep" } as const;

const BackupSettingsJson = z.object({
  backup_dir: z.string().nullable(),
  backup_schedule: BackupSchedule,
  backup_keep: z.number().int(),
}).openapi("BackupSettings");

/** Converts the settings to their JSON form. */
export function toBackupSettingsJson(settings: BackupSettings): z.infer<typeof BackupSettingsJson> {
  const { folder, schedule, keep } = settings;
  return { backup_dir: folder, backup_schedule: schedule, backup_keep: keep };
}

/** `PATCH /api/data/backups` */
export const changeBackupsRoute = createRoute({
  method: "patch",
  path: "/api/data/backups",
  tags: ["Maintenance"],
  summary: "Change the folder, schedule or number of backups; saved in config.toml",
  request: {
    body: jsonBody(
      z.object({
        backup_dir: z.string().min(1).max(4096).nullable().optional().openapi({
          description:
            "An absolute path on the server. The folder is created if its parent exists; it must not contain other files",
        }),
        backup_schedule: BackupSchedule.optional(),
        backup_keep: z.number().int().min(1).max(1000).optional(),
      }).openapi("BackupSettingsPatch"),
    ),
  },
  responses: { 200: json(BackupSettingsJson, "The updated settings"), ...ERRORS },
});

/** `GET /api/data` */
export const dataRoute = createRoute({
  method: "get",
  path: "/api/data",
  tags: ["Maintenance"],
  summary: "Get disk usage and the backups in backup_dir",
  responses: { 200: json(Data, "Disk usage, measured for this request, and the backups"), ...ERRORS },
});

/** `POST /api/data/backups` */
export const startBackupRoute = createRoute({
  method: "post",
  path: "/api/data/backups",
  tags: ["Maintenance"],
  summary: "Create a backup in backup_dir now; it is never deleted automatically",
  responses: { 202: json(Job, "The job of the backup; if one is already running, that one"), ...ERRORS },
});

/** `GET /api/data/backups/{name}` */
export const backupFileRoute = createRoute({
  method: "get",
  path: "/api/data/backups/{name}",
  tags: ["Maintenance"],
  summary: "Download a backup, still encrypted",
  request: {
    params: z.object({ name: z.string().min(1).max(255) }),
    headers: RangeHeaders,
  },
  responses: {
    200: {
      description: "The file",
      content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } },
    },
    206: {
      description: "The requested range",
      content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } },
    },
    ...ERRORS,
  },
});

/** `DELETE /api/data/backups/{name}` */
export const removeBackupRoute = createRoute({
  method: "delete",
  path: "/api/data/backups/{name}",
  tags: ["Maintenance"],
  summary: "Delete a backup permanently",
  request: { params: z.object({ name: z.string().min(1).max(255) }) },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** `GET /api/findings` */
export const findingsRoute = createRoute({
  method: "get",
  path: "/api/findings",
  tags: ["Maintenance"],
  summary: "Run the checks of parlor doctor",
  responses: { 200: json(z.array(Finding), "The findings, in the order of the checks"), ...ERRORS },
});

const Integrity = z.object({
  items: z.array(z.object({
    path: z.string().openapi({ description: "As in unreadable.json of exports", example: "conversations/abc" }),
    parts: z.array(z.string()).openapi({ description: "What of it is damaged, for a report" }),
    since: Time.openapi({ description: "When it was found" }),
  })),
  checked_at: Time.nullable().openapi({ description: "End of the last complete check; null before the first" }),
}).openapi("StoredDataReport");

/** Converts what is known to be damaged to its JSON form. */
export function toIntegrityJson({ damages, endedMs }: IntegrityState): z.infer<typeof Integrity> {
  return {
    items: damages.map(({ path, parts, sinceMs }) => ({ path, parts, since: new Date(sinceMs).toISOString() })),
    checked_at: endedMs === null ? null : new Date(endedMs).toISOString(),
  };
}

/** `GET /api/data/unreadable` */
export const unreadableRoute = createRoute({
  method: "get",
  path: "/api/data/unreadable",
  tags: ["Maintenance"],
  summary: "List stored things that were found to be unreadable",
  responses: { 200: json(Integrity, "What is known; nothing is read for it"), ...ERRORS },
});

/** `POST /api/data/check` */
export const checkStoredRoute = createRoute({
  method: "post",
  path: "/api/data/check",
  tags: ["Maintenance"],
  summary: "Read all stored data now and list what can't be read; takes a while",
  responses: { 200: json(Integrity, "What can't be read"), ...ERRORS },
});

/** `POST /api/data/unreadable/restore` */
export const restoreUnreadableRoute = createRoute({
  method: "post",
  path: "/api/data/unreadable/restore",
  tags: ["Maintenance"],
  summary: "Restore something unreadable from its earlier versions, or from the newest backup that has it whole",
  request: {
    body: jsonBody(
      z.object({
        path: z.string().regex(/^[A-Za-z_-]{1,50}\/[^\0]{1,300}$/, "a path of the list"),
        accept_older: z.boolean().default(false).openapi({
          description: "Restore a chat although the only good copy is older, so that later changes are lost",
        }),
      }).openapi("RestoreUnreadable"),
    ),
  },
  responses: {
    200: json(
      z.object({ from: z.enum(["version", "backup", "manifest"]), made_at: Time }).openapi("RestoredUnreadable"),
      "Where the good copy was (`manifest`: only one bit differed from the stored sum); 409 conflict if only an older state of a chat is left, 503 not_available if nothing is",
    ),
    ...ERRORS,
  },
});

/** What can't be read. */
export type StoredReportJson = z.output<typeof Integrity>;

/** How much space the data takes, and the backups. */
export type DataReportJson = z.output<typeof Data>;

/** One finding of the diagnostics. */
export type FindingJson = z.output<typeof Finding>;

const Notice = z.object({
  name: z.string(),
  version: z.string(),
  licence: z.string().openapi({ description: "As named by the package", example: "MIT" }),
  text: z.string().openapi({ description: "Text of its license files; empty if it has none" }),
}).openapi("LicenceNotice");

/** `GET /api/licences` */
export const licencesRoute = createRoute({
  method: "get",
  path: "/api/licences",
  tags: ["Maintenance"],
  summary: "List the licenses of all bundled packages; when run from source, of all installed ones",
  responses: { 200: json(z.array(Notice), "By name"), ...ERRORS },
});

/** The license notice of a package. */
export type LicenseNoticeJson = z.output<typeof Notice>;

const Releases = z.object({
  version: z.string().openapi({ description: "This version" }),
  host: z.string().nullable().openapi({
    description: "The host that is asked if the setting `check_releases` is on; null if `releases_url` isn't set",
  }),
  checked_at: Time.nullable().openapi({ description: "When it was asked last; null if it never was" }),
  newer: z.object({
    version: z.string(),
    url: z.string().optional().openapi({ description: "Page of the release" }),
    notes: z.string().optional().openapi({ description: "What changed, in Markdown" }),
  }).nullable().openapi({ description: "The newest version, if it's newer than this one" }),
  error: z.string().optional().openapi({ description: "Why the last request failed" }),
}).openapi("Releases");

/** `GET /api/releases` */
export const releasesRoute = createRoute({
  method: "get",
  path: "/api/releases",
  tags: ["Maintenance"],
  summary: "Get what is known about newer versions",
  description: "Sends no request. Parlor never installs a version itself.",
  responses: { 200: json(Releases, "The result of the last request"), ...ERRORS },
});

/** Returns the JSON of the check. */
export function toReleasesJson(version: string, host: string | undefined, state: ReleaseState): ReleasesJson {
  const { checkedAtMs, newer, error } = state;
  return {
    version,
    host: host ?? null,
    checked_at: checkedAtMs === null ? null : new Date(checkedAtMs).toISOString(),
    newer: newer ?? null,
    ...(error !== undefined && { error }),
  };
}

/** What is known about newer versions. */
export type ReleasesJson = z.output<typeof Releases>;

/** `GET /api/changelog` */
export const changelogRoute = createRoute({
  method: "get",
  path: "/api/changelog",
  tags: ["Maintenance"],
  summary: "Get the changelog of this version",
  responses: { 200: json(z.object({ text: z.string() }), "Markdown, newest version first"), ...ERRORS },
});

/** Longer than other IDs, because some contain the ID of the deleted item. */
const TrashId = z.string().regex(/^[A-Za-z0-9_-]{1,100}$/, "an ID has 1 to 100 letters, digits, _ or -");

const TrashItem = z.object({
  id: TrashId,
  kind: z.string().openapi({ description: "conversation, message, …" }),
  title: z.string(),
  deleted_at: Time,
}).openapi("TrashItem");
const trashTags = ["Trash"];

/** Content of the trash. */
export const trashRoute = createRoute({
  method: "get",
  path: "/api/trash",
  tags: trashTags,
  summary: "List items deleted in the last seven days, newest first",
  responses: { 200: json(z.array(TrashItem), "The items that can be restored"), ...ERRORS },
});

/** Restore an item. */
export const restoreTrashRoute = createRoute({
  method: "post",
  path: "/api/trash/{id}/restore",
  tags: trashTags,
  summary: "Restore an item; 409 if its original place no longer exists or is taken",
  request: { params: z.object({ id: TrashId }) },
  responses: { 204: { description: "Restored" }, ...ERRORS },
});

/** Delete all items permanently. */
export const emptyTrashRoute = createRoute({
  method: "delete",
  path: "/api/trash",
  tags: trashTags,
  summary: "Empty the trash permanently",
  responses: { 204: { description: "The trash is empty" }, ...ERRORS },
});

/** A deleted item that can be restored. */
export type TrashItemJson = z.output<typeof TrashItem>;
