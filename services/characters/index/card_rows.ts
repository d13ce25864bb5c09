/**
 * Table `card_file`: what lists show of each card file, so that listing doesn't open files, and how it differs from the
 * folders.
 */
import { AppError } from "../../errors.ts";
import type { Database, SqlValue, Statement } from "../../storage/database/database.ts";
import { foldForSearch } from "../../json/search_fold.ts";
import { foldForSorting, quoteKey, sortByName } from "../../json/text.ts";
import {
  type CardFileStat,
  type CardHead,
  type CardRow,
  deriveCardId,
  MAX_LISTED_CHARACTERS,
  toHeadRow,
  toUnreadableRow,
} from "../card/card_head.ts";
import { dirname } from "node:path";
import { isId } from "../../storage/ids.ts";

/** A row of the table. */
export interface StoredCard {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
  hasAvatar: boolean;
  isReadable: boolean;
}

/** Orders of the list. */
type CardOrder = "name" | "favorites" | "updated";

/** A folder with its number of characters. */
export interface CardFolder {
  name: string;
  count: number;
}

/** Which characters to list. */
export interface CardQuery {
  limit?: number;
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Words that must all occur in name, creator or tags. */
  q?: string;
  /** A tag, in any case. */
  tag?: string;
  /** Only favorites, or only others. */
  favorite?: boolean;
  /** A folder; `""` for characters in none. */
  folder?: string;
  /** `favorites`: these first, each part by name. */
  sort?: CardOrder;
  /** Only these characters. */
  ids?: readonly string[];
}

/** One page of a list. */
export interface CardPage {
  /** JSON of `CharacterItem`s. */
  items: string[];
  next_cursor: string | null;
}

const COLUMNS = `id, path, mtime_ms AS mtimeMs, size, external AS isExternal, has_avatar AS hasAvatar,
  CASE WHEN name IS NULL THEN 0 ELSE item ->> '$.unreadable' IS NULL END AS isReadable`;

/** Changes of the table, as JSON arrays. */
export interface CardChanges {
  /** `CardRow`s. */
  rows: string;
  /** `[tag, id, path]` for each tag of the rows. */
  tags: string;
  /** Paths of the rows and of deleted files. */
  paths: string;
}

/** Returns the changes for new rows and deleted paths. */
export function toCardChanges(rows: readonly CardRow[], removed: readonly string[]): CardChanges {
  return {
    rows: JSON.stringify(rows),
    tags: JSON.stringify(rows.flatMap(({ tags, id, path }) => tags.map((tag) => [tag, id, path]))),
    paths: JSON.stringify([...removed, ...rows.map(({ path }) => path)]),
  };
}

/**
 * Returns the statements that replace the rows of all changed paths.
 *
 * @param unless Paths to leave unchanged.
 */
export function replaceRows(changes: CardChanges, unless: readonly string[] = []): Statement[] {
  const paths = `SELECT value FROM json_each(?1) EXCEPT SELECT value FROM json_each(?2)`;
  const except = JSON.stringify(unless);
  const params = [changes.paths, except];
  return [
    { sql: `DELETE FROM card_tag WHERE id IN (SELECT id FROM card_file WHERE path IN (${paths}))`, params },
    { sql: `DELETE FROM card_file WHERE path IN (${paths})`, params },
    {
      sql: `INSERT OR REPLACE INTO card_file (id, path, mtime_ms, size, external, has_avatar, name, search, item)
        SELECT value ->> 'id', value ->> 'path', value ->> 'mtimeMs', value ->> 'size', value ->> 'isExternal',
          value ->> 'hasAvatar', value ->> 'name', value ->> 'search', value ->> 'item'
        FROM json_each(?1) WHERE value ->> 'path' NOT IN (SELECT value FROM json_each(?2))`,
      params: [changes.rows, except],
    },
    {
      sql: `INSERT OR IGNORE INTO card_tag (tag, id) SELECT value ->> 0, value ->> 1
        FROM json_each(?1) WHERE value ->> 2 NOT IN (SELECT value FROM json_each(?2))`,
      params: [changes.tags, except],
    },
  ];
}

/** Returns the statements that remove all rows, also damaged ones. */
export function removeRows(): Statement[] {
  // Without a condition, SQLite doesn't read what the indexes are made of.
  return [{ sql: "DELETE FROM card_tag" }, { sql: "DELETE FROM card_file" }];
}

/** Returns the statements that replace one row, remove one, or both. */
export function replaceRow(row: CardRow | undefined, removedPath?: string): Statement[] {
  return replaceRows(toCardChanges(row ? [row] : [], removedPath === undefined ? [] : [removedPath]));
}

/** Finds the row of a character. */
export function findCardRow(db: Database, id: string): StoredCard | undefined {
  return withBooleans(db.get(`SELECT ${COLUMNS} FROM card_file WHERE id = ?`, id));
}

/** Finds the characters that have a name in lists, in the order of their IDs. At most 100, since each is read. */
export function findCardsNamed(db: Database, name: string): string[] {
  const key = quoteKey(name.slice(0, MAX_LISTED_CHARACTERS));
  const sql = "SELECT id FROM card_file WHERE name = ? AND name IS NOT NULL ORDER BY id LIMIT 100";
  return db.all<{ id: string }>(sql, key).map(({ id }) => id);
}

/** Finds the row of a path. */
export function findCardRowByPath(db: Database, path: string): StoredCard | undefined {
  return withBooleans(db.get(`SELECT ${COLUMNS} FROM card_file WHERE path = ?`, path));
}

/** Reports whether every card file has to be read: there are no rows, or they can't be read. */
export function hasNoRows(db: Database): boolean {
  try {
    return db.get("SELECT 1 FROM card_file LIMIT 1") === undefined;
  } catch {
    return true;
  }
}

/** Finds an id that differs from this one only in case. */
export function findCaseClash(db: Database, id: string): string | undefined {
  return db.get<{ id: string }>("SELECT id FROM card_file WHERE lower(id) = lower(?1) AND id <> ?1", id)?.id;
}

/** Sort keys, which have indexes. Those of favorites start with 0, others with 1. */
const SORT_KEYS: Record<CardOrder, string> = {
  name: "name",
  favorites: "(1 - (item ->> '$.favorite')) || name",
  updated: "mtime_ms",
};

/** Lists the folders of characters by name. */
export function listFolders(db: Database): CardFolder[] {
  const rows = db.all<CardFolder & { id: string }>(
    `SELECT item ->> '$.folder' AS id, item ->> '$.folder' AS name, count(*) AS count FROM card_file
     WHERE name IS NOT NULL AND item ->> '$.folder' IS NOT NULL GROUP BY item ->> '$.folder'`,
  );
  return sortByName(rows).map(({ name, count }) => ({ name, count }));
}

/**
 * Lists cards by name, favorites first, or most recently changed first.
 *
 * @throws {AppError} `invalid_request` for an invalid cursor
 */
export function listCards(db: Database, query: CardQuery): CardPage {
  const { limit, cursor, q = "", tag, favorite, folder, sort = "name", ids } = query;
  const sortKey = SORT_KEYS[sort];
  const conditions = ["name IS NOT NULL"];
  const params: SqlValue[] = [];
  for (const word of foldForSearch(q).split(/\s+/).filter((word) => word !== "").slice(0, 20)) {
    conditions.push("instr(search, ?) > 0");
    params.push(word);
  }
  if (tag !== undefined) {
    conditions.push("id IN (SELECT id FROM card_tag WHERE tag = ?)");
    params.push(foldForSorting(tag));
  }
  if (favorite !== undefined) {
    conditions.push("item ->> '$.favorite' = ?");
    params.push(Number(favorite));
  }
  if (folder === "") {
    conditions.push("item ->> '$.folder' IS NULL");
  } else if (folder !== undefined) {
    conditions.push("item ->> '$.folder' = ?");
    params.push(folder);
  }
  if (ids !== undefined) {
    conditions.push("id IN (SELECT value FROM json_each(?))");
    params.push(JSON.stringify(ids));
  }
  if (cursor !== undefined) {
    const [key, id] = parseCursor(cursor, sort);
    if (sort === "updated") {
      conditions.push("mtime_ms <= ? AND (mtime_ms < ? OR id > ?)");
      params.push(key, key, id);
    } else {
      conditions.push(`(${sortKey}, id) > (?, ?)`);
      params.push(key, id);
    }
  }
  const rows = db.all<{ id: string; key: string | number; item: string }>(
    `SELECT id, ${sortKey} AS key, item FROM card_file WHERE ${conditions.join(" AND ")}
     ORDER BY ${sortKey}${sort === "updated" ? " DESC" : ""}, id ${limit === undefined ? "" : "LIMIT ?"}`,
    ...params,
    ...(limit === undefined ? [] : [limit + 1]),
  );
  const shown = limit === undefined ? rows : rows.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = rows.length > shown.length && last !== undefined;
  return {
    items: shown.map(({ item }) => item),
    next_cursor: hasMore ? formatCursor([last.key, last.id]) : null,
  };
}

type Cursor = [key: string | number, id: string];

function formatCursor(cursor: Cursor): string {
  return encodeURIComponent(JSON.stringify(cursor));
}

function parseCursor(text: string, sort: CardOrder): Cursor {
  try {
    const [key, id] = JSON.parse(decodeURIComponent(text));
    if (typeof key === (sort === "updated" ? "number" : "string") && typeof id === "string") return [key, id];
  } catch {
    // All invalid cursors get the same message.
  }
  throw new AppError("invalid_request", "Invalid cursor: it isn't from a list of characters in this order");
}

function withBooleans(row: StoredCard | undefined): StoredCard | undefined {
  return row && {
    ...row,
    isExternal: Boolean(row.isExternal),
    hasAvatar: Boolean(row.hasAvatar),
    isReadable: Boolean(row.isReadable),
  };
}

/** A card folder. */
export interface ScannedFolder {
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

/** Finds the name that the index has for a path. */
type FindKnownName = (path: string) => string | undefined;

/** Differences between folders and index. */
interface ScanChanges {
  rows: CardRow[];
  /** Deleted paths. */
  removed: string[];
}

/** What the sandbox found in a file. */
export type ScannedCard =
  | CardHead
  /** Invalid content stays invalid until the file changes. */
  | "invalid"
  /** Permissions can change without affecting time or size. */
  | "unreadable";

/** Names of card files. A file still being written has another name or changes again, which is noticed. */
export const CARD_NAME = /^[^.].*\.(png|json)$/i;

/**
 * Compares card folders with the table. Only reads files that are new or whose time or size changed; doesn't follow
 * links. Blocks while it lists, so it runs in a Worker.
 *
 * @param known Content of the index, read before this call.
 * @param read Reads cards in the sandbox, in this order.
 * @param findName Finds the last known name of a file that can't be read now.
 * @throws Errors of the system if our own folder can't be read: its characters aren't deleted. Errors of `read`.
 */
export async function scanFolders(
  folders: readonly ScannedFolder[],
  known: readonly KnownFile[],
  read: (files: CardFileStat[]) => Promise<ScannedCard[]>,
  findName: FindKnownName = () => undefined,
): Promise<ScanChanges> {
  const unseen = new Map(known.map((file) => [file.path, file]));
  const changed: CardFileStat[] = [];
  const unread = new Set<string>();
  for (const folder of folders) {
    const files = listCardFiles(folder);
    if (files === undefined) {
      for (const path of unseen.keys()) if (dirname(path) === folder.path) unseen.delete(path);
    }
    for (const file of files ?? []) {
      const before = unseen.get(file.path);
      unseen.delete(file.path);
      const isSame = before?.id === file.id && before.mtimeMs === file.mtimeMs && before.size === file.size;
      if (isSame) continue;
      changed.push(file);
      if (before?.id === file.id && before.mtimeMs === UNREAD_MS) unread.add(file.path);
    }
  }
  const cards = changed.length === 0 ? [] : await read(changed);
  const rows = changed.flatMap((file, n) => {
    const card = cards[n]!;
    if (card === "unreadable" && unread.has(file.path)) return [];
    if (card === "unreadable") return [toUnreadableRow({ ...file, mtimeMs: UNREAD_MS }, findName(file.path))];
    return [card === "invalid" ? toUnreadableRow(file, findName(file.path)) : toHeadRow(file, card)];
  });
  return { rows, removed: [...unseen.keys()] };
}

/** Time of an unreadable file. No file has it, so each scan tries again. */
const UNREAD_MS = -1;
/** Time of a file that is read again. No file has it, either. */
const REREAD_MS = -2;

/** A row as it's stored, with its tags. */
type WholeRow = Omit<CardRow, "isExternal" | "hasAvatar" | "isUnreadable"> & { isExternal: number; hasAvatar: number };

/** Reads all rows. */
export function readWholeRows(reader: Pick<Database, "all">): WholeRow[] {
  const tags = Map.groupBy(reader.all<{ id: string; tag: string }>("SELECT id, tag FROM card_tag"), ({ id }) => id);
  const rows = reader.all<Omit<WholeRow, "tags">>(
    `SELECT id, path, mtime_ms AS mtimeMs, size, external AS isExternal, has_avatar AS hasAvatar, name, search, item
    FROM card_file`,
  );
  return rows.map((row) => ({ ...row, tags: tags.get(row.id)?.map(({ tag }) => tag) ?? [] }));
}

/** Returns rows as `scanFolders` takes them, so that it reads all files again. */
export function toUnknownFiles(rows: readonly WholeRow[]): KnownFile[] {
  return rows.map(({ id, path, mtimeMs, size }) => ({
    ...{ id, path, size },
    mtimeMs: mtimeMs === UNREAD_MS ? UNREAD_MS : REREAD_MS,
  }));
}

/**
 * Finds the rows that aren't as they are stored.
 *
 * @returns Also how many of them are of files that haven't changed, so that what is stored was damaged.
 */
export function findDifferentRows(
  rows: readonly CardRow[],
  stored: readonly WholeRow[],
): { different: CardRow[]; damaged: number } {
  const byPath = new Map(stored.map((row) => [row.path, row]));
  let damaged = 0;
  const different = rows.filter(({ isUnreadable: _, ...row }) => {
    const before = byPath.get(row.path);
    if (before === undefined) return true;
    const after: WholeRow = { ...row, isExternal: Number(row.isExternal), hasAvatar: Number(row.hasAvatar) };
    const isSame = (Object.keys(after) as (keyof WholeRow)[]).every((field) =>
      field === "tags"
        ? [...after.tags].sort().join("\n") === [...before.tags].sort().join("\n")
        : after[field] === before[field]
    );
    if (!isSame && before.mtimeMs === row.mtimeMs && before.size === row.size) damaged++;
    return !isSame;
  });
  return { different, damaged };
}

/** Lists the card files of a folder with their ids; `undefined` if a folder of another program can't be read. */
function listCardFiles(folder: ScannedFolder): CardFileStat[] | undefined {
  const names: string[] = [];
  try {
    for (const { name, isFile } of Deno.readDirSync(folder.path)) if (isFile && CARD_NAME.test(name)) names.push(name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    if (folder.isExternal) return undefined;
    throw error;
  }
  const files: CardFileStat[] = [];
  const usedNames = new Set<string>();
  // PNG before JSON, so that of "a.png" and "a.json" the PNG gets the id; then in a stable order.
  for (const name of names.sort((a, b) => Number(isJsonName(a)) - Number(isJsonName(b)) || (a < b ? -1 : 1))) {
    const path = `${folder.path}/${name}`;
    const info = statFile(path);
    if (info === undefined) continue;
    const stem = name.slice(0, name.lastIndexOf("."));
    const isOwnId = !folder.isExternal && isId(stem) && !usedNames.has(stem.toLowerCase());
    if (isOwnId) usedNames.add(stem.toLowerCase());
    const id = isOwnId ? stem : deriveCardId(folder.isExternal ? folder.path : "characters", name);
    files.push({ id, path, isExternal: folder.isExternal, ...info });
  }
  return files;
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
