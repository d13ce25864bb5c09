/** Names in the data folder that a backup has, and that a restore replaces. */
import { IMPORT_SOURCES_FOLDER, MODEL_SERVER_FOLDER } from "../storage/data_dir.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";

/** Name of the database; a backup has a copy made by SQLite. */
export const DATABASE_NAME = "app.db";

/** Entry of the storage key in a backup. */
export const KEY_ENTRY = "storage-key";

/** Prefix of the folders that keep files replaced by a restore. */
export const REPLACED_PREFIX = "replaced-";

/**
 * Models and caches can be downloaded or rebuilt, the tailnet node belongs to this machine, the rest belongs to the
 * running process. Files of imports are copies of what their owner has, are imported, and may be large.
 */
const LEFT_OUT = new Set([
  "lock",
  "server.json",
  MODEL_SERVER_FOLDER,
  "models",
  "cache",
  "tsnet",
  "imports",
  "exports",
  "uploads",
  IMPORT_SOURCES_FOLDER,
  INCOMING_FOLDER,
  "storage-key",
]);

/**
 * Reports whether a restore replaces this name. Models and the like stay, and so do names that start with a dot:
 * temporary files and files of other programs (Litestream).
 */
export function isBackedUp(name: string): boolean {
  return !LEFT_OUT.has(name) && !name.startsWith(REPLACED_PREFIX) && !name.startsWith(".");
}
