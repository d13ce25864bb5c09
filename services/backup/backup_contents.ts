/** What a backup has, by kind, for people who choose one. */
import { DatabaseSync } from "node:sqlite";
import { AppError, messageOf } from "../errors.ts";

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
