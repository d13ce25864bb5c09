/**
 * Checks the data folder: modes, key, database, encrypted files, and that backups are made, recent and readable.
 * Read-only.
 */
import { join } from "node:path";
import { checkSealedFiles } from "../backup/sealed_file_check.ts";
import { findStorageKey, verifyStorageKey } from "../crypto/storage_key.ts";
import { createSealer, type Sealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { pathExists, toFileError } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { openReader, type Reader } from "../storage/database/database.ts";
import { checkDatabase } from "../storage/database/sqlite.ts";
import { createOk, createProblem, type Finding, note, runCheck } from "./finding.ts";
import { BACKUP_NAME, isMounted, parseBackupTime } from "../backup/backup_settings.ts";
import { type BackupKeys, openBackup } from "../backup/backup_file.ts";
import { DATABASE_NAME } from "../backup/backed_up_names.ts";
import { type Damage, formatPaths, mergeDamages } from "../integrity/damage.ts";
import { loadLosses } from "../storage/database_mark.ts";
import { loadJump } from "../storage/retention_clock.ts";
import { DATABASE_ID_FILE_NAME, LOCK_FILE_NAME } from "../storage/data_dir.ts";
import { loadState } from "../integrity/integrity_state.ts";
import { checkAll, checkItems } from "../integrity/pass.ts";
import { DatabaseSync } from "node:sqlite";
import { createJobStore, type JobRecord } from "../jobs/job_store.ts";

/** Where the data is. */
export interface DataLocation {
  dataDir: string;
  storageKeyFile: string | null;
}

/** What to check of the data, and how thoroughly. */
interface DataCheck extends DataLocation {
  /** Folder of the daily backups; `null` for none. */
  backupDir: string | null;
  backupDirMustBeMount: boolean;
  /** `"daily"`, `"weekly"` or `"off"`. */
  backupSchedule: string;
  /** Passphrase of the daily backups, if it's known. */
  passphrase: string | undefined;
  /** How much of the encrypted files, and of the last backup, to read, in bytes. */
  maxBytes: number;
  /** Opens every row and file, too. */
  isDeep?: boolean;
}

const PRIVATE_FILES = ["app.db", "storage-key", "session-key", "credentials.json", "tokens.json"];

/** Checks the data folder. */
export async function checkData(check: DataCheck): Promise<Finding[]> {
  const { dataDir, backupDir } = check;
  if (!await pathExists(dataDir)) {
    return [note("no_data_folder", { path: dataDir }), ...(backupDir === null ? [note("backups_off")] : [])];
  }
  return [
    ...await runCheck("data_folder_unreadable", { path: dataDir }, () => checkModes(dataDir)),
    ...await checkLeftOverFiles(dataDir),
    ...await runCheck("database_unusable", {}, () => checkAppDatabase(check)),
  ];
}

async function checkModes(dataDir: string): Promise<Finding[]> {
  if (Deno.build.os === "windows") return [];
  const found: Finding[] = [];
  const { mode, uid } = await Deno.stat(dataDir);
  if (uid !== null && uid !== Deno.uid() && Deno.uid() !== 0) {
    // It can still be used, as in a container with any uid, if the server's files belong to this user.
    const lock = await Deno.lstat(join(dataDir, LOCK_FILE_NAME)).catch(() => undefined);
    found.push(
      lock?.uid === Deno.uid()
        ? note("shared_folder", { path: dataDir, owner: uid, mode: formatMode(mode!) })
        : createProblem("other_owner", { path: dataDir }),
    );
  } else if (((mode ?? 0) & 0o077) !== 0) found.push(createTooOpenFinding(dataDir, mode!, "0700"));
  for (const name of PRIVATE_FILES) {
    const info = await Deno.lstat(join(dataDir, name)).catch(() => undefined);
    if (info !== undefined && ((info.mode ?? 0) & 0o077) !== 0) {
      found.push(createTooOpenFinding(join(dataDir, name), info.mode!, "0600"));
    }
  }
  return found.length > 0 ? found : [createOk("modes_ok", { path: dataDir })];
}

function createTooOpenFinding(path: string, mode: number, expectedMode: string): Finding {
  return createProblem("open_to_others", {
    path,
    mode: formatMode(mode),
    wanted: expectedMode,
  });
}

function formatMode(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, "0");
}

async function checkLeftOverFiles(dataDir: string): Promise<Finding[]> {
  if (!await pathExists(join(dataDir, INCOMING_FOLDER))) return [];
  return [
    note("interrupted_restore"),
  ];
}

async function checkAppDatabase(check: DataCheck): Promise<Finding[]> {
  const { dataDir, storageKeyFile, backupDir } = check;
  const path = join(dataDir, "app.db");
  if (!await pathExists(path)) {
    if (await pathExists(join(dataDir, DATABASE_ID_FILE_NAME))) return [createProblem("database_lost")];
    return [note("no_database"), ...(backupDir === null ? [note("backups_off")] : [])];
  }
  let key: Uint8Array | undefined;
  try {
    key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  } catch (error) {
    // Without the key, nothing is known about the database; suggesting a restore could replace good data.
    return [createProblem("key_unreadable", { error: getErrorMessage(error) })];
  }
  if (key === undefined) return [createProblem("key_missing", { path: dataDir })];
  let broken: Finding | undefined;
  let version: number | undefined;
  try {
    version = checkDatabase(path);
  } catch (error) {
    version = readSchemaVersion(path);
    if (version === undefined) throw error;
    broken = createProblem("database_damaged", { error: getErrorMessage(error) });
  }
  const newest = MIGRATIONS.at(-1)!.version;
  if (version > newest) return [createProblem("schema_newer", { version, newest })];
  const reader = openReader(path);
  try {
    const sealer = createSealer(key);
    try {
      const write = () => Promise.reject(new AppError("internal", "it has no key check"));
      await verifyStorageKey(sealer, { get: reader.get, write });
    } catch (error) {
      // The data is probably fine, and everything below would only fail for the same reason.
      return [
        createProblem("key_wrong", {
          path: storageKeyFile ?? join(dataDir, "storage-key"),
          error: getErrorMessage(error),
        }),
      ];
    }
    const row = reader.get<{ at: number | null }>("SELECT max(updated_at) AS at FROM conversation");
    return [
      broken ?? createOk("database_ok", { version }),
      ...listLosses(reader, sealer),
      ...checkClock(row?.at ?? 0),
      ...await runCheck("stored_unknown", {}, () => checkJump(reader, sealer)),
      ...await checkSealedData(check, sealer, reader),
      ...await checkStoredData(check, sealer, reader),
      ...await checkBackups({ ...check, storageKey: key, sealer, database: reader }),
    ];
  } finally {
    reader.close();
  }
}

/** Reports what starts noticed: the database was set back. */
function listLosses(reader: Reader, sealer: Sealer): Finding[] {
  return loadLosses(reader, sealer.forPurpose("settings"), Date.now()).map(({ kind, atMs, writes }) => {
    const at = new Date(atMs).toISOString();
    if (kind === "manifest") return createProblem("manifest_remade", { at });
    return kind === "older"
      ? createProblem("database_older", { at, count: writes })
      : createProblem("database_log_missing", { at });
  });
}

/** Reports what the running server found that can't be read, or looks at everything now. */
async function checkStoredData({ dataDir, isDeep }: DataCheck, sealer: Sealer, reader: Reader): Promise<Finding[]> {
  return await runCheck("stored_unknown", {}, async () => {
    const data = { dataDir, sealer };
    const { damages, endedMs } = loadState(reader, sealer.forPurpose("settings"));
    const found: Damage[] = [];
    let steps = 0;
    if (isDeep) {
      for await (const step of checkAll(data)) {
        found.push(...step.damages);
        steps++;
      }
    } else if (damages.length > 0) {
      found.push(...await checkItems(data, damages.map(({ path }) => path))); // They may be restored meanwhile.
    }
    const unreadable = mergeDamages(found);
    const sinceMs = Math.min(
      ...damages.filter(({ path }) => unreadable.some((one) => one.path === path))
        .map((damage) => damage.sinceMs),
    );
    if (unreadable.length > 0) {
      const since = new Date(Number.isFinite(sinceMs) ? sinceMs : Date.now()).toISOString().slice(0, 10);
      return [createProblem("stored_unreadable", { count: unreadable.length, paths: formatPaths(unreadable), since })];
    }
    if (isDeep) return [createOk("stored_ok", { at: new Date().toISOString() })];
    return endedMs === null
      ? [note("stored_unchecked")]
      : [createOk("stored_ok", { at: new Date(endedMs).toISOString() })];
  });
}

/** Reads the version of a damaged database; `undefined` if nothing can be read. */
function readSchemaVersion(path: string): number | undefined {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    return Number(database.prepare("PRAGMA user_version").get()?.user_version);
  } catch {
    return undefined;
  }
}

/** How many paths a finding names. */
const MAX_NAMED = 5;

async function checkSealedData(
  { dataDir, maxBytes }: DataCheck,
  sealer: Sealer,
  database: Reader,
): Promise<Finding[]> {
  return await runCheck("sealed_unknown", {}, async () => {
    const report = await checkSealedFiles({ dataDir, sealer, database, maxBytes });
    const others = report.unreadable.filter((path) => path !== "credentials.json");
    const findings: Finding[] = [];
    if (others.length < report.unreadable.length) findings.push(createProblem("credentials_damaged"));
    if (others.length > 0) {
      const paths = others.slice(0, MAX_NAMED).join(", ") + (others.length > MAX_NAMED ? ", …" : "");
      findings.push(createProblem("sealed_damaged", { count: others.length, paths }));
    }
    if (findings.length > 0) return findings;
    return [createOk(report.isComplete ? "sealed_ok" : "sealed_ok_partly", { count: report.opened })];
  });
}

/** A clock that was set back extends sessions and sorts new chats below old ones. */
function checkClock(newestMs: number): Finding[] {
  const aheadMs = newestMs - Date.now();
  if (aheadMs < 60_000 && Date.now() > Date.parse("2026-01-01")) {
    return [createOk("clock_ok")];
  }
  return [createProblem("clock_behind", { now: new Date().toISOString() })];
}

/** Reports that things are kept longer, because the server saw the clock jump. */
function checkJump(reader: Reader, sealer: Sealer): Finding[] {
  const jump = loadJump(reader, sealer.forPurpose("settings"));
  if (jump === undefined) return [];
  const [before, now] = [jump.beforeMs, jump.afterMs].map((ms) => new Date(ms).toISOString());
  return [note("clock_jumped", { before: before!, now: now! })];
}

/** What to check, with the opened data. */
interface BackupCheck {
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

/** Checks that backups are made, recent, and can be opened. */
async function checkBackups(check: BackupCheck): Promise<Finding[]> {
  const { backupDir, backupDirMustBeMount } = check;
  if (backupDir === null) return [note("backups_off")];
  if (backupDirMustBeMount && !await isMounted(backupDir)) {
    return [createProblem("backup_dir_not_mounted", { path: backupDir })];
  }
  const job = lastJob(check);
  const failed = job?.state === "failed"
    ? [createProblem("backup_failed", {
      at: new Date(job.updatedAtMs).toISOString(),
      error: job.content?.error?.message ?? "no reason stored",
    })]
    : [];
  const rest = await runCheck("backup_dir_unreadable", { path: backupDir }, async () => {
    const last = (await listNames(backupDir)).sort((a, b) => parseBackupTime(a) - parseBackupTime(b)).at(-1);
    if (last === undefined) {
      return [
        job?.state === "done"
          ? createProblem("backups_gone", { path: backupDir })
          : note(check.backupSchedule === "off" ? "backups_off" : "backup_none_yet"),
      ];
    }
    const ageMs = Date.now() - parseBackupTime(last);
    const old = ageMs > (OLD_MS[check.backupSchedule] ?? Infinity)
      ? [createProblem("backup_old", { name: last, days: Math.floor(ageMs / DAY_MS) })]
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

async function listNames(folder: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(folder));
    return entries.map(({ name }) => name).filter((name) => BACKUP_NAME.test(name));
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return [];
    throw toFileError(`Can't list "${folder}"`, cause);
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
    getStorageKey: () => Promise.resolve(storageKey),
    getPassphrase() {
      needsPassphrase = true;
      if (passphrase === undefined) throw new AppError("invalid_request", "its passphrase isn't known here");
      return Promise.resolve(passphrase);
    },
  } satisfies BackupKeys;
  try {
    using backup = await openBackup(path, keys);
    let [bytes, hasDatabase] = [0, false];
    for await (const entry of backup.entries) {
      hasDatabase ||= entry.path === DATABASE_NAME;
      for await (const chunk of entry.content) {
        bytes += chunk.byteLength;
        if (bytes > maxBytes) return [createOk("backup_opens", { name, version: backup.head.version })];
      }
    }
    if (!hasDatabase) throw new AppError("unprocessable", "it has no database");
    return [createOk("backup_ok", { name, version: backup.head.version })];
  } catch (error) {
    if (needsPassphrase && passphrase === undefined) return [note("backup_locked", { name })];
    return [createProblem("backup_unusable", { name, error: getErrorMessage(error) })];
  }
}
