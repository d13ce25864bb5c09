/** Disk usage, backups, diagnostics and license notices. */
import { createRoute, z } from "@hono/zod-openapi";
import type { DataReport } from "../../services/diagnostics/data_report.ts";
import { ERRORS, json, RangeHeaders, Time } from "./common.ts";
import { Job } from "./jobs.ts";

const Data = z.object({
  used: z.array(z.object({
    what: z.enum(["chats", "characters", "attachments", "models", "voices", "rest"]),
    size_bytes: z.number(),
  })),
  backup_dir: z.string().nullable().openapi({ description: "Null where no daily backups are made" }),
  backup_keep: z.number().int(),
  backups: z.array(z.object({ name: z.string(), size_bytes: z.number(), made_at: Time })),
}).openapi("DataReport");

const Finding = z.object({
  level: z.enum(["ok", "note", "problem"]),
  code: z.string().openapi({ description: "Which sentence it is; stays the same", example: "disk_little" }),
  params: z.record(z.string(), z.union([z.string(), z.number()])).openapi({ description: "What is in the sentence" }),
  about: z.string(),
  remedy: z.string().optional().openapi({ description: "What to do; always there for a problem" }),
}).openapi("Finding");

/** Gives the report its form on the wire. */
export function toDataJson({ used, backupDir, backupKeep, backups }: DataReport): z.infer<typeof Data> {
  return {
    used: used.map(({ what, sizeBytes }) => ({ what, size_bytes: sizeBytes })),
    backup_dir: backupDir,
    backup_keep: backupKeep,
    backups: backups.map(({ name, sizeBytes, madeAt }) => ({ name, size_bytes: sizeBytes, made_at: madeAt })),
  };
}

/** `GET /api/data` */
export const dataRoute = createRoute({
  method: "get",
  path: "/api/data",
  tags: ["Upkeep"],
  summary: "How much room the data takes, and the backups in the folder of the daily ones",
  responses: { 200: json(Data, "Measured for this request"), ...ERRORS },
});

/** `POST /api/data/backups` */
export const startBackupRoute = createRoute({
  method: "post",
  path: "/api/data/backups",
  tags: ["Upkeep"],
  summary: "Makes a backup in backup_dir now; the daily ones do not count it, and nothing removes it",
  responses: { 202: json(Job, "The job of the backup; the one that runs, where one does"), ...ERRORS },
});

/** `GET /api/data/backups/{name}` */
export const backupFileRoute = createRoute({
  method: "get",
  path: "/api/data/backups/{name}",
  tags: ["Upkeep"],
  summary: "A backup, sealed as it lies there",
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
      description: "The part of it that was asked for",
      content: { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } },
    },
    ...ERRORS,
  },
});

/** `DELETE /api/data/backups/{name}` */
export const removeBackupRoute = createRoute({
  method: "delete",
  path: "/api/data/backups/{name}",
  tags: ["Upkeep"],
  summary: "Removes a backup from backup_dir for good",
  request: { params: z.object({ name: z.string().min(1).max(255) }) },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** `GET /api/findings` */
export const findingsRoute = createRoute({
  method: "get",
  path: "/api/findings",
  tags: ["Upkeep"],
  summary: "What parlor doctor finds, looked at for this request",
  responses: { 200: json(z.array(Finding), "In the order of the look"), ...ERRORS },
});

/** How much space the data takes, and the backups. */
export type DataReportJson = z.output<typeof Data>;

/** One finding of the diagnostics. */
export type FindingJson = z.output<typeof Finding>;

const Notice = z.object({
  name: z.string(),
  version: z.string(),
  licence: z.string().openapi({ description: "As the package names it", example: "MIT" }),
  text: z.string().openapi({ description: "Of its licence files; empty where it brings none" }),
}).openapi("LicenceNotice");

/** `GET /api/licences` */
export const licencesRoute = createRoute({
  method: "get",
  path: "/api/licences",
  tags: ["Upkeep"],
  summary: "The licence of every package inside; from source, of every package installed",
  responses: { 200: json(z.array(Notice), "By name"), ...ERRORS },
});

/** The license notice of a package. */
export type LicenseNoticeJson = z.output<typeof Notice>;
