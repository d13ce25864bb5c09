/**
 * Selects the files of a data directory for a backup: everything except what can be downloaded or rebuilt and what must
 * stay on this machine.
 */
import { join } from "node:path";
import { TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";

/** Name of the database; a backup has a copy made by SQLite. */
export const DATABASE_NAME = "app.db";

/** Prefix of the folders that keep files replaced by a restore. */
export const REPLACED_PREFIX = "replaced-";

/**
 * Models and caches can be downloaded or rebuilt, the tailnet node belongs to this machine, the rest belongs to the
 * running process.
 */
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
  /** Identifies the state of the file, to detect changes. */
  state: string;
}

/**
 * Reports whether a restore replaces this name. Models and the like stay, and so do names that start with a dot:
 * temporary files and files of other programs (Litestream).
 */
export function isBackedUp(name: string): boolean {
  return !LEFT_OUT.has(name) && !name.startsWith(REPLACED_PREFIX) && !name.startsWith(".");
}

/** Lists the files except the database, without following links. */
export async function* listDataFiles(dataDir: string): AsyncGenerator<DataFile> {
  for await (const { name } of Deno.readDir(dataDir)) {
    // The database with its log and copies from before upgrades.
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
