/**
 * Selects the files of a data directory for a backup: everything except what can be downloaded or rebuilt and what must
 * stay on this machine. Counts what a backup has, by kind, for people who choose one.
 */
import { join } from "node:path";
import { TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import { INCOMING_FOLDER } from "../storage/file_swap.ts";
import { DatabaseSync } from "node:sqlite";
import { AppError, messageOf } from "../errors.ts";

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

/** Numbers of items in the database. */
export interface RowCounts {
  chats: number;
  lorebooks: number;
  images: number;
  recordings: number;
}

/** Numbers of items that are files. */
export interface FileCounts {
  characters: number;
  personas: number;
  voices: number;
}

/** Numbers of items. */
export interface BackupContents extends RowCounts, FileCounts {}

/** Counts what is in a database file, without changing it. @throws {AppError} `internal` if it can't be read. */
export function countRows(path: string): RowCounts {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    const count = (rows: string) => Number(database.prepare(`SELECT count(*) AS n FROM ${rows}`).get()?.n);
    return {
      chats: count("conversation WHERE deleted_at IS NULL"),
      lorebooks: count("document WHERE kind = 'lorebook'"),
      images: count("attachment WHERE type LIKE 'image/%'"),
      recordings: count("attachment WHERE type LIKE 'audio/%'"),
    };
  } catch (cause) {
    throw new AppError("internal", `Can't count what is in "${path}": ${messageOf(cause)}`, { cause });
  }
}

/** Counts items by their files. @param paths Relative to the data folder. */
export function countFiles(paths: Iterable<string>): FileCounts {
  const cards = { characters: new Set<string>(), personas: new Set<string>() };
  let voices = 0;
  for (const path of paths) {
    const [, folder, id] = /^(characters|personas)\/([^/]+)\.(?:png|json|charx)$/.exec(path) ?? [];
    if (folder !== undefined) cards[folder as keyof typeof cards].add(id!);
    else if (/^voices\/[^/]+$/.test(path)) voices++;
  }
  return { characters: cards.characters.size, personas: cards.personas.size, voices };
}

/** Writes the numbers as text: `"12 chats, 3 characters, 1 persona"`. */
export function contentsText(contents: BackupContents): string {
  const { chats, characters, personas, lorebooks, images, recordings, voices } = contents;
  const counts = { chats, characters, personas, lorebooks, images, recordings, voices };
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${count === 1 ? kind.slice(0, -1) : kind}`);
  return parts.length === 0 ? "no chats" : parts.join(", ");
}
