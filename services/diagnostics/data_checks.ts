/** Checks the data folder: modes, key, database, sealed files. Read-only. */
import { join } from "node:path";
import { settleKeyCheck } from "../crypto/key_check.ts";
import { createSealer } from "../crypto/sealer.ts";
import { findStorageKey } from "../crypto/storage_key.ts";
import { AppError, messageOf } from "../errors.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { openReader } from "../storage/database/reader.ts";
import { checkDatabase } from "../storage/database/snapshot.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";

/** Where the data is. */
export interface DataPlace {
  dataDir: string;
  storageKeyFile: string | null;
}

const PRIVATE_FILES = ["app.db", "storage-key", "session-key", "credentials.json", "tokens.json"];

/** Checks the data folder. */
export async function dataFindings(place: DataPlace): Promise<Finding[]> {
  const { dataDir } = place;
  if (!await fileExists(dataDir)) return [note("no_data_folder", { path: dataDir })];
  return [
    ...await looking("data_folder_unreadable", { path: dataDir }, () => modes(dataDir)),
    ...await leftOver(dataDir),
    ...await looking("database_unusable", {}, () => databaseFindings(place)),
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

async function databaseFindings({ dataDir, storageKeyFile }: DataPlace): Promise<Finding[]> {
  const path = join(dataDir, "app.db");
  if (!await fileExists(path)) return [note("no_database")];
  let key: Uint8Array | undefined;
  try {
    key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  } catch (error) {
    // Without the key, nothing is known about the database; suggesting a restore could replace good data.
    return [
      problem("key_unreadable", { error: messageOf(error) }),
    ];
  }
  if (key === undefined) {
    return [
      problem("key_missing", { path: dataDir }),
    ];
  }
  const version = checkDatabase(path);
  const newest = MIGRATIONS.at(-1)!.version;
  if (version > newest) {
    return [problem("schema_newer", { version, newest })];
  }
  const reader = openReader(path);
  try {
    const write = () => Promise.reject(new AppError("internal", "it has no key check"));
    await settleKeyCheck(createSealer(key), { get: reader.get, write });
    const row = reader.get<{ at: number | null }>("SELECT max(updated_at) AS at FROM conversation");
    return [ok("database_ok", { version }), ...clock(row?.at ?? 0)];
  } finally {
    reader.close();
  }
}

/** A clock that was set back extends sessions and sorts new chats below old ones. */
function clock(newestMs: number): Finding[] {
  const aheadMs = newestMs - Date.now();
  if (aheadMs < 60_000 && Date.now() > Date.parse("2026-01-01")) {
    return [ok("clock_ok")];
  }
  return [problem("clock_behind", { now: new Date().toISOString() })];
}
