/** How the data folder stands: modes, key, database, sealed files. Nothing is written, whoever runs on it. */
import { join } from "node:path";
import { settleKeyCheck } from "../crypto/key_check.ts";
import { createSealer } from "../crypto/sealer.ts";
import { findStorageKey } from "../crypto/storage_key.ts";
import { AppError, messageOf } from "../errors.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/incoming.ts";
import { MIGRATIONS } from "../storage/migrations.ts";
import { openReader } from "../storage/reader.ts";
import { checkDatabase } from "../storage/snapshot.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";

/** Where the data lies. */
export interface DataPlace {
  dataDir: string;
  storageKeyFile: string | null;
}

const RESTORE = "Restore a backup (parlor restore FILE --replace), or put the file back";
const PRIVATE_FILES = ["app.db", "storage-key", "session-key", "credentials.json", "tokens.json"];

/** Looks through it. */
export async function dataFindings(place: DataPlace): Promise<Finding[]> {
  const { dataDir } = place;
  if (!await fileExists(dataDir)) return [note(`There is no data folder "${dataDir}" yet; the first start makes it`)];
  return [
    ...await looking(`Cannot look at "${dataDir}"`, "Run this as the user that runs the server", () => modes(dataDir)),
    ...await leftOver(dataDir),
    ...await looking("The database cannot be used", RESTORE, () => databaseFindings(place)),
  ];
}

async function modes(dataDir: string): Promise<Finding[]> {
  if (Deno.build.os === "windows") return [];
  const found: Finding[] = [];
  const { mode, uid } = await Deno.stat(dataDir);
  if (((mode ?? 0) & 0o077) !== 0) found.push(tooOpen(dataDir, mode!, "0700"));
  if (uid !== null && uid !== Deno.uid() && Deno.uid() !== 0) {
    found.push(
      problem(`"${dataDir}" belongs to another user`, "Run Parlor as that user, or chown the folder to this one"),
    );
  }
  for (const name of PRIVATE_FILES) {
    const info = await Deno.lstat(join(dataDir, name)).catch(() => undefined);
    if (info !== undefined && ((info.mode ?? 0) & 0o077) !== 0) {
      found.push(tooOpen(join(dataDir, name), info.mode!, "0600"));
    }
  }
  return found.length > 0 ? found : [ok(`Only its owner reads "${dataDir}"`)];
}

function tooOpen(path: string, mode: number, wanted: string): Finding {
  return problem(
    `Others may read "${path}" (mode ${(mode & 0o777).toString(8).padStart(4, "0")})`,
    `chmod ${wanted} "${path}"; make a new key (parlor key rotate) if others did read it`,
  );
}

async function leftOver(dataDir: string): Promise<Finding[]> {
  if (!await fileExists(join(dataDir, INCOMING_FOLDER))) return [];
  return [
    note("A restore or key rotation was interrupted", "The next start finishes or drops it; start the server once"),
  ];
}

async function databaseFindings({ dataDir, storageKeyFile }: DataPlace): Promise<Finding[]> {
  const path = join(dataDir, "app.db");
  if (!await fileExists(path)) return [note("There is no database yet; the first start makes it")];
  let key: Uint8Array | undefined;
  try {
    key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  } catch (error) {
    // Nothing is said of the database: a backup would replace what may well be whole.
    return [
      problem(`The database was not looked at: ${messageOf(error)}`, "Put the storage key right, then look again"),
    ];
  }
  if (key === undefined) {
    return [
      problem(
        `The storage key of "${dataDir}" is missing`,
        "Put it back: parlor key import FILE, or set storage_key_file",
      ),
    ];
  }
  const version = checkDatabase(path);
  const newest = MIGRATIONS.at(-1)!.version;
  if (version > newest) {
    return [problem(
      `The database has schema ${version} and this program knows schemas up to ${newest}`,
      "Start the newer program again",
    )];
  }
  const reader = openReader(path);
  try {
    const write = () => Promise.reject(new AppError("internal", "it has no key check"));
    await settleKeyCheck(createSealer(key), { get: reader.get, write });
    const row = reader.get<{ at: number | null }>("SELECT max(updated_at) AS at FROM conversation");
    return [ok(`The database is whole and opens by the storage key (schema ${version})`), ...clock(row?.at ?? 0)];
  } finally {
    reader.close();
  }
}

/** A clock that was set back lets sessions live longer and puts new chats below old ones. */
function clock(newestMs: number): Finding[] {
  const aheadMs = newestMs - Date.now();
  if (aheadMs < 60_000 && Date.now() > Date.parse("2026-01-01")) {
    return [ok("The clock is not behind what was stored last")];
  }
  return [problem(
    `The clock says ${new Date().toISOString()}, which is before what was stored last`,
    "Set the clock of this machine, best by NTP",
  )];
}
