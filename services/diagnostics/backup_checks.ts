/** Checks that backups are made, recent, and can be opened. Read-only. */
import { join } from "node:path";
import { BACKUP_NAME, backupTimeOf, isMounted } from "../backup/backup_settings.ts";
import { openBackup } from "../backup/backup_file.ts";
import { DATABASE_NAME } from "../backup/data_files.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import { createJobStore, type JobRecord } from "../jobs/job_store.ts";
import { fileError } from "../storage/atomic_file.ts";
import type { Reader } from "../storage/database/database.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";

/** What to check, with the opened data. */
export interface BackupCheck {
  /** `null` if there are no automatic backups. */
  backupDir: string | null;
  backupDirMustBeMount: boolean;
  /** `"daily"`, `"weekly"` or `"off"`. */
  backupSchedule: string;
  storageKey: Uint8Array;
  sealer: Sealer;
  database: Pick<Reader, "all">;
  /** Passphrase of the backups, if it's known. */
  passphrase: string | undefined;
  /** How much of the last backup to read, in bytes. */
  maxBytes: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Older than this, a daily backup misses more than a weekend, and a weekly one more than a missed run. */
const OLD_MS: Readonly<Record<string, number>> = { daily: 3 * DAY_MS, weekly: 15 * DAY_MS };

/** Checks the backups. */
export async function backupFindings(check: BackupCheck): Promise<Finding[]> {
  const { backupDir, backupDirMustBeMount } = check;
  if (backupDir === null) return [note("backups_off")];
  if (backupDirMustBeMount && !await isMounted(backupDir)) {
    return [problem("backup_dir_not_mounted", { path: backupDir })];
  }
  const job = lastJob(check);
  const failed = job?.state === "failed"
    ? [problem("backup_failed", {
      at: new Date(job.updatedAtMs).toISOString(),
      error: job.content?.error?.message ?? "no reason stored",
    })]
    : [];
  const rest = await looking("backup_dir_unreadable", { path: backupDir }, async () => {
    const last = (await namesIn(backupDir)).sort((a, b) => backupTimeOf(a) - backupTimeOf(b)).at(-1);
    if (last === undefined) {
      return [
        job?.state === "done"
          ? problem("backups_gone", { path: backupDir })
          : note(check.backupSchedule === "off" ? "backups_off" : "backup_none_yet"),
      ];
    }
    const ageMs = Date.now() - backupTimeOf(last);
    const old = ageMs > (OLD_MS[check.backupSchedule] ?? Infinity)
      ? [problem("backup_old", { name: last, days: Math.floor(ageMs / DAY_MS) })]
      : [];
    return [...old, ...await openFindings(check, join(backupDir, last), last)];
  });
  return [...failed, ...rest];
}

/** Finds the last backup job that ended. One that a stop of the server interrupted says nothing: it's made up for. */
function lastJob({ database, sealer }: BackupCheck): JobRecord | undefined {
  const write = () => Promise.reject(new AppError("internal", "the check is read-only"));
  const jobs = createJobStore({ all: database.all, write }, sealer.forPurpose("jobs"), Date.now).loadAll();
  return jobs.filter(({ kind, state, content }) =>
    kind === "backup" && (state === "done" || (state === "failed" && content?.error?.code !== "interrupted"))
  ).at(-1);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(folder));
    return entries.map(({ name }) => name).filter((name) => BACKUP_NAME.test(name));
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return [];
    throw fileError(`Can't list "${folder}"`, cause);
  }
}

/** Reads a backup like a restore would: everything in it is authenticated. */
async function openFindings(
  { storageKey, passphrase, maxBytes }: BackupCheck,
  path: string,
  name: string,
): Promise<Finding[]> {
  let needsPassphrase = false;
  const keys = {
    storageKey: () => Promise.resolve(storageKey),
    passphrase() {
      needsPassphrase = true;
      if (passphrase === undefined) throw new AppError("invalid_request", "its passphrase isn't known here");
      return Promise.resolve(passphrase);
    },
  };
  try {
    using backup = await openBackup(path, keys);
    let [bytes, hasDatabase] = [0, false];
    for await (const entry of backup.entries) {
      hasDatabase ||= entry.path === DATABASE_NAME;
      for await (const chunk of entry.content) {
        bytes += chunk.byteLength;
        if (bytes > maxBytes) return [ok("backup_opens", { name, version: backup.head.version })];
      }
    }
    if (!hasDatabase) throw new AppError("unprocessable", "it has no database");
    return [ok("backup_ok", { name, version: backup.head.version })];
  } catch (error) {
    if (needsPassphrase && passphrase === undefined) return [note("backup_locked", { name })];
    return [problem("backup_unusable", { name, error: messageOf(error) })];
  }
}
