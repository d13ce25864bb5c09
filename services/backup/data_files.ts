/** Which files of a data directory a backup holds: all but what can be had again and what must not leave the machine. */
import { join } from "node:path";
import { TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";

/** Name of the database; a backup holds a copy made by SQLite itself. */
export const DATABASE_NAME = "app.db";

/** Folder names that a restore gives to what it replaced begin so. */
export const REPLACED_PREFIX = "replaced-";

/** Models and caches can be had again, a tailnet node is this machine's own, and the rest holds for the present process. */
const LEFT_OUT = new Set([
  "lock",
  "models",
  "cache",
  "tsnet",
  "imports",
  "exports",
  "uploads",
  INCOMING_FOLDER,
  "storage-key",
]);

/** A file of the data directory. */
export interface DataFile {
  /** Relative, with slashes. */
  path: string;
  sizeBytes: number;
  /** Tells whether it is still the same one. */
  state: string;
}

/**
 * Says whether a restore replaces this name of the data directory; models and the like stay as they are, and so does what
 * begins with a dot: half-written files of ours, and what others keep here (Litestream does).
 */
export function isBackedUp(name: string): boolean {
  return !LEFT_OUT.has(name) && !name.startsWith(REPLACED_PREFIX) && !name.startsWith(".");
}

/** Lists the files beside the database, without following a link. */
export async function* dataFiles(dataDir: string): AsyncGenerator<DataFile> {
  for await (const { name } of Deno.readDir(dataDir)) {
    // The database with its log and the copies from before upgrades.
    if (!isBackedUp(name) || name.startsWith(DATABASE_NAME)) continue;
    yield* filesBelow(dataDir, name);
  }
}

async function* filesBelow(dataDir: string, path: string): AsyncGenerator<DataFile> {
  if (path.endsWith(TEMPORARY_ENDING)) return;
  const info = await Deno.lstat(join(dataDir, path)).catch(ignoreGone);
  if (info?.isFile) {
    yield { path, sizeBytes: info.size, state: `${info.size} ${info.mtime?.getTime()} ${info.ino}` };
  }
  if (!info?.isDirectory) return;
  const names = await Array.fromAsync(Deno.readDir(join(dataDir, path)), ({ name }) => name).catch(ignoreGone) ?? [];
  for (const name of names) yield* filesBelow(dataDir, `${path}/${name}`);
}

function ignoreGone(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
