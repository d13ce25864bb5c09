/** Checks the data folder: modes, key, database, encrypted files, backups. Read-only. */
import { join } from "node:path";
import { checkSealedFiles } from "../backup/sealed_file_check.ts";
import { findStorageKey, settleKeyCheck } from "../crypto/storage_key.ts";
import { createSealer, type Sealer } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { openReader, type Reader } from "../storage/database/database.ts";
import { checkDatabase } from "../storage/database/snapshot.ts";
import { backupFindings } from "./backup_checks.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";

/** Where the data is. */
export interface DataLocation {
  dataDir: string;
  storageKeyFile: string | null;
}

/** What to check of the data, and how thoroughly. */
export interface DataCheck extends DataLocation {
  /** Folder of the daily backups; `null` for none. */
  backupDir: string | null;
  backupDirMustBeMount: boolean;
  /** `"daily"`, `"weekly"` or `"off"`. */
  backupSchedule: string;
  /** Passphrase of the daily backups, if it's known. */
  passphrase: string | undefined;
  /** How much of the encrypted files, and of the last backup, to read, in bytes. */
  maxBytes: number;
}

const PRIVATE_FILES = ["app.db", "storage-key", "session-key", "credentials.json", "tokens.json"];

/** Checks the data folder. */
export async function dataFindings(check: DataCheck): Promise<Finding[]> {
  const { dataDir, backupDir } = check;
  if (!await fileExists(dataDir)) {
    return [note("no_data_folder", { path: dataDir }), ...(backupDir === null ? [note("backups_off")] : [])];
  }
  return [
    ...await looking("data_folder_unreadable", { path: dataDir }, () => modes(dataDir)),
    ...await leftOver(dataDir),
    ...await looking("database_unusable", {}, () => databaseFindings(check)),
  ];
}

async function modes(dataDir: string): Promise<Finding[]> {
  if (Deno.build.os === "windows") return [];
  const found: Finding[] = [];
  const { mode, uid } = await Deno.stat(dataDir);
  if (((mode ?? 0) & 0o077) !== 0) found.push(tooOpen(dataDir, mode!, "0700"));
  if (uid !== null && uid !== Deno.uid() && Deno.uid() !== 0) {
    found.push(
      problem("other_owner", { path: dataDir }),
    );
  }
  for (const name of PRIVATE_FILES) {
    const info = await Deno.lstat(join(dataDir, name)).catch(() => undefined);
    if (info !== undefined && ((info.mode ?? 0) & 0o077) !== 0) {
      found.push(tooOpen(join(dataDir, name), info.mode!, "0600"));
    }
  }
  return found.length > 0 ? found : [ok("modes_ok", { path: dataDir })];
}

function tooOpen(path: string, mode: number, wanted: string): Finding {
  return problem("open_to_others", { path, mode: (mode & 0o777).toString(8).padStart(4, "0"), wanted });
}

async function leftOver(dataDir: string): Promise<Finding[]> {
  if (!await fileExists(join(dataDir, INCOMING_FOLDER))) return [];
  return [
    note("interrupted_restore"),
  ];
}

async function databaseFindings(check: DataCheck): Promise<Finding[]> {
  const { dataDir, storageKeyFile, backupDir } = check;
  const path = join(dataDir, "app.db");
  if (!await fileExists(path)) return [note("no_database"), ...(backupDir === null ? [note("backups_off")] : [])];
  let key: Uint8Array | undefined;
  try {
    key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  } catch (error) {
    // Without the key, nothing is known about the database; suggesting a restore could replace good data.
    return [problem("key_unreadable", { error: messageOf(error) })];
  }
  if (key === undefined) return [problem("key_missing", { path: dataDir })];
  const version = checkDatabase(path);
  const newest = MIGRATIONS.at(-1)!.version;
  if (version > newest) return [problem("schema_newer", { version, newest })];
  const reader = openReader(path);
  try {
    const sealer = createSealer(key);
    try {
      const write = () => Promise.reject(new AppError("internal", "it has no key check"));
      await settleKeyCheck(sealer, { get: reader.get, write });
    } catch (error) {
      // The data is probably fine, and everything below would only fail for the same reason.
      return [problem("key_wrong", { path: storageKeyFile ?? join(dataDir, "storage-key"), error: messageOf(error) })];
    }
    const row = reader.get<{ at: number | null }>("SELECT max(updated_at) AS at FROM conversation");
    return [
      ok("database_ok", { version }),
      ...clock(row?.at ?? 0),
      ...await sealedFindings(check, sealer, reader),
      ...await backupFindings({ ...check, storageKey: key, sealer, database: reader }),
    ];
  } finally {
    reader.close();
  }
}

/** How many paths a finding names. */
const MAX_NAMED = 5;

async function sealedFindings(
  { dataDir, maxBytes }: DataCheck,
  sealer: Sealer,
  database: Reader,
): Promise<Finding[]> {
  return await looking("sealed_unknown", {}, async () => {
    const report = await checkSealedFiles({ dataDir, sealer, database, maxBytes });
    const others = report.unreadable.filter((path) => path !== "credentials.json");
    const findings: Finding[] = [];
    if (others.length < report.unreadable.length) findings.push(problem("credentials_damaged"));
    if (others.length > 0) {
      const paths = others.slice(0, MAX_NAMED).join(", ") + (others.length > MAX_NAMED ? ", …" : "");
      findings.push(problem("sealed_damaged", { count: others.length, paths }));
    }
    if (findings.length > 0) return findings;
    return [ok(report.isComplete ? "sealed_ok" : "sealed_ok_partly", { count: report.opened })];
  });
}

/** A clock that was set back extends sessions and sorts new chats below old ones. */
function clock(newestMs: number): Finding[] {
  const aheadMs = newestMs - Date.now();
  if (aheadMs < 60_000 && Date.now() > Date.parse("2026-01-01")) {
    return [ok("clock_ok")];
  }
  return [problem("clock_behind", { now: new Date().toISOString() })];
}
