/** What the owner looks after, on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import type { DataReport } from "../../services/upkeep/upkeep.ts";
import { ERRORS, json, Time } from "./common.ts";

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
  about: z.string(),
  remedy: z.string().optional().openapi({ description: "What to do; always there for a problem" }),
}).openapi("Finding");

/** Gives the report its form on the wire. */
export function dataOf({ used, backupDir, backupKeep, backups }: DataReport): z.infer<typeof Data> {
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

/** `GET /api/findings` */
export const findingsRoute = createRoute({
  method: "get",
  path: "/api/findings",
  tags: ["Upkeep"],
  summary: "What parlor doctor finds, looked at for this request",
  responses: { 200: json(z.array(Finding), "In the order of the look"), ...ERRORS },
});
