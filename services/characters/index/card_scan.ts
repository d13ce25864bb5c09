/** Compares card folders with the index. Blocks while reading, so it runs in a Worker. */
import { dirname } from "node:path";
import { AppError } from "../../errors.ts";
import { isId } from "../../storage/ids.ts";
import {
  BUFFER_BYTES,
  type CardFileStat,
  type CardRow,
  deriveCardId,
  readCardSync,
  toCardRow,
  toUnreadableRow,
} from "../card/card_head.ts";

/** A card folder. */
export interface CardFolder {
  /** Absolute path. */
  path: string;
  /** True for folders of other programs, which are read-only and whose file names aren't ids. */
  isExternal: boolean;
}

/** A file in the index. */
export interface KnownFile {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
}

/** Differences between folders and index. */
export interface ScanChanges {
  rows: CardRow[];
  /** Deleted paths. */
  removed: string[];
}

/** Names of card files. A file still being written has another name or changes again, which is noticed. */
export const CARD_NAME = /^[^.].*\.(png|json)$/i;

/**
 * Finds changes. Only opens files that are new or whose time or size changed; doesn't follow links.
 *
 * @param known Content of the index, read before this call.
 * @throws Errors of the system if our own folder can't be read: its characters aren't deleted.
 */
export function scanFolders(folders: readonly CardFolder[], known: readonly KnownFile[]): ScanChanges {
  const standing = new Map(known.map((file) => [file.path, file]));
  const rows: CardRow[] = [];
  const buffer = new Uint8Array(BUFFER_BYTES);
  for (const folder of folders) {
    const places = listCardFiles(folder);
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

/** Time of an unreadable file. No file has it, so each scan tries again. */
const UNREAD_MS = -1;

/** Reads one file. */
function readRow(place: CardFileStat, buffer: Uint8Array<ArrayBuffer>): CardRow {
  try {
    return toCardRow(place, readCardSync(place.path, place.size, buffer));
  } catch (error) {
    // Invalid content stays invalid until the file changes. Permissions can change without affecting time or size.
    return toUnreadableRow(error instanceof AppError ? place : { ...place, mtimeMs: UNREAD_MS });
  }
}

/** Lists the card files of a folder with their ids; `undefined` if a folder of another program can't be read. */
function listCardFiles(folder: CardFolder): CardFileStat[] | undefined {
  const names: string[] = [];
  try {
    for (const { name, isFile } of Deno.readDirSync(folder.path)) if (isFile && CARD_NAME.test(name)) names.push(name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    if (folder.isExternal) return undefined;
    throw error;
  }
  const places: CardFileStat[] = [];
  const taken = new Set<string>();
  // PNG before JSON, so that of "a.png" and "a.json" the PNG gets the id; then in a stable order.
  for (const name of names.sort((a, b) => Number(isJsonName(a)) - Number(isJsonName(b)) || (a < b ? -1 : 1))) {
    const path = `${folder.path}/${name}`;
    const info = statFile(path);
    if (info === undefined) continue;
    const stem = name.slice(0, name.lastIndexOf("."));
    const isOwnId = !folder.isExternal && isId(stem) && !taken.has(stem.toLowerCase());
    if (isOwnId) taken.add(stem.toLowerCase());
    const id = isOwnId ? stem : deriveCardId(folder.isExternal ? folder.path : "characters", name);
    places.push({ id, path, isExternal: folder.isExternal, ...info });
  }
  return places;
}

function isJsonName(name: string): boolean {
  return /json$/i.test(name);
}

/** Returns time and size of a regular file; `undefined` for anything else. */
function statFile(path: string): { mtimeMs: number; size: number } | undefined {
  try {
    const { isFile, mtime, size } = Deno.lstatSync(path);
    return isFile ? { mtimeMs: mtime?.getTime() ?? 0, size } : undefined;
  } catch {
    return undefined;
  }
}
