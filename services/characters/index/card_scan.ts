/** Compares folders of card files with what the index knows of them. Blocks while it reads, so it runs in a Worker. */
import { dirname } from "node:path";
import { AppError } from "../../errors.ts";
import { isId } from "../../storage/ids.ts";
import {
  BUFFER_BYTES,
  type CardPlace,
  type CardRow,
  derivedId,
  readCardOf,
  rowOf,
  unreadableRow,
} from "../card/card_head.ts";

/** A folder with cards. */
export interface CardFolder {
  /** Absolute. */
  path: string;
  /** True for folders of other programs: nothing in them is written, and no name in them is an id. */
  isExternal: boolean;
}

/** What the index knows of a file. */
export interface KnownFile {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
}

/** What is not as the index knows it. */
export interface ScanChanges {
  rows: CardRow[];
  /** Paths that are gone. */
  removed: string[];
}

/** Names of card files. A file that is still being written by whoever drops it has a name of its own or changes again, which is seen. */
export const CARD_NAME = /^[^.].*\.(png|json)$/i;

/**
 * Finds what changed. Only files that are new or whose time or size differ are opened; links are not followed.
 *
 * @param known What the index holds, read before this call.
 * @throws What the system says of a folder of our own that is there and cannot be read: its characters are not gone.
 */
export function scanFolders(folders: readonly CardFolder[], known: readonly KnownFile[]): ScanChanges {
  const standing = new Map(known.map((file) => [file.path, file]));
  const rows: CardRow[] = [];
  const buffer = new Uint8Array(BUFFER_BYTES);
  for (const folder of folders) {
    const places = placesIn(folder);
    if (places === undefined) {
      for (const path of standing.keys()) if (dirname(path) === folder.path) standing.delete(path);
    }
    for (const place of places ?? []) {
      const before = standing.get(place.path);
      standing.delete(place.path);
      const isSame = before?.id === place.id && before.mtimeMs === place.mtimeMs && before.size === place.size;
      if (isSame) continue;
      const row = readRow(place, buffer);
      const isStillUnread = before?.id === row.id && before.mtimeMs === UNREAD_MS && row.mtimeMs === UNREAD_MS;
      if (!isStillUnread) rows.push(row);
    }
  }
  return { rows, removed: [...standing.keys()] };
}

/** Stands for the time of a file that the system did not let us read: no file has it, so each scan tries again. */
const UNREAD_MS = -1;

/** Looks at one file, as the scan would. */
function readRow(place: CardPlace, buffer: Uint8Array<ArrayBuffer>): CardRow {
  try {
    return rowOf(place, readCardOf(place.path, place.size, buffer));
  } catch (error) {
    // Nonsense inside stays until the file changes; that nobody may read it can end without a trace in time or size.
    return unreadableRow(error instanceof AppError ? place : { ...place, mtimeMs: UNREAD_MS });
  }
}

/** Gives the card files of a folder with their ids; `undefined` for one of another program that cannot be read now. */
function placesIn(folder: CardFolder): CardPlace[] | undefined {
  const names: string[] = [];
  try {
    for (const { name, isFile } of Deno.readDirSync(folder.path)) if (isFile && CARD_NAME.test(name)) names.push(name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    if (folder.isExternal) return undefined;
    throw error;
  }
  const places: CardPlace[] = [];
  const taken = new Set<string>();
  // Pictures before texts, so that of "a.png" and "a.json" the picture has the id; then always in the same order.
  for (const name of names.sort((a, b) => Number(isText(a)) - Number(isText(b)) || (a < b ? -1 : 1))) {
    const path = `${folder.path}/${name}`;
    const info = statOf(path);
    if (info === undefined) continue;
    const stem = name.slice(0, name.lastIndexOf("."));
    const isOwnId = !folder.isExternal && isId(stem) && !taken.has(stem.toLowerCase());
    if (isOwnId) taken.add(stem.toLowerCase());
    const id = isOwnId ? stem : derivedId(folder.isExternal ? folder.path : "characters", name);
    places.push({ id, path, isExternal: folder.isExternal, ...info });
  }
  return places;
}

function isText(name: string): boolean {
  return /json$/i.test(name);
}

/** Gives time and size of a plain file, `undefined` for anything else. */
function statOf(path: string): { mtimeMs: number; size: number } | undefined {
  try {
    const { isFile, mtime, size } = Deno.lstatSync(path);
    return isFile ? { mtimeMs: mtime?.getTime() ?? 0, size } : undefined;
  } catch {
    return undefined;
  }
}
