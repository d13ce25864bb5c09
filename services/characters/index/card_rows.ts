/** Table `card_file`: what lists show of every card file, so that none is opened to be listed. */
import { AppError } from "../../errors.ts";
import type { Database, SqlValue, Statement } from "../../storage/database/database.ts";
import { folded } from "../../storage/collation.ts";
import type { CardRow } from "../card/card_head.ts";

/** A file as the table knows it. */
export interface StoredCard {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
  hasAvatar: boolean;
  isReadable: boolean;
}

/** What a list is to hold. */
export interface CardQuery {
  limit?: number;
  /** `next_cursor` of the page before. */
  cursor?: string;
  /** Words that all have to occur in name, creator or tags. */
  q?: string;
  /** A tag, whatever its case. */
  tag?: string;
  sort?: "name" | "updated";
}

/** One page of a list. */
export interface CardPage {
  /** JSON texts of CharacterItems. */
  items: string[];
  next_cursor: string | null;
}

const COLUMNS = `id, path, mtime_ms AS mtimeMs, size, external AS isExternal, has_avatar AS hasAvatar,
  name IS NOT NULL AS isReadable`;

/** What the table is to hold instead: arrays in JSON, each read as often as it has to be. */
export interface CardChanges {
  /** Of CardRow. */
  rows: string;
  /** `[tag, id, path]` of every tag of the rows. */
  tags: string;
  /** Paths of the rows, and of files that are gone. */
  paths: string;
}

/** Gives what is to be written of rows and of paths that are gone. */
export function changesOf(rows: readonly CardRow[], removed: readonly string[]): CardChanges {
  return {
    rows: JSON.stringify(rows),
    tags: JSON.stringify(rows.flatMap(({ tags, id, path }) => tags.map((tag) => [tag, id, path]))),
    paths: JSON.stringify([...removed, ...rows.map(({ path }) => path)]),
  };
}

/**
 * Statements that put rows in the place of whatever stood for their paths.
 *
 * @param unless Paths that stay as they are.
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

/** Statements that put one row in the place of another file's, or of none. */
export function replaceRow(row: CardRow | undefined, removedPath?: string): Statement[] {
  return replaceRows(changesOf(row ? [row] : [], removedPath === undefined ? [] : [removedPath]));
}

/** Gives the file of a character. */
export function findCard(db: Database, id: string): StoredCard | undefined {
  return withBooleans(db.get(`SELECT ${COLUMNS} FROM card_file WHERE id = ?`, id));
}

/** Gives what the table knows of a path. */
export function findPath(db: Database, path: string): StoredCard | undefined {
  return withBooleans(db.get(`SELECT ${COLUMNS} FROM card_file WHERE path = ?`, path));
}

/** Gives the id that differs from this one by letter case alone. */
export function findCaseClash(db: Database, id: string): string | undefined {
  return db.get<{ id: string }>("SELECT id FROM card_file WHERE lower(id) = lower(?1) AND id <> ?1", id)?.id;
}

/**
 * Lists cards by name, or the last changed first.
 *
 * @throws {AppError} `invalid_request` for a cursor of another list.
 */
export function listCards(db: Database, query: CardQuery): CardPage {
  const { limit, cursor, q = "", tag, sort = "name" } = query;
  const conditions = ["name IS NOT NULL"];
  const params: SqlValue[] = [];
  for (const word of folded(q).split(/\s+/).filter((word) => word !== "").slice(0, 20)) {
    conditions.push("instr(search, ?) > 0");
    params.push(word);
  }
  if (tag !== undefined) {
    conditions.push("id IN (SELECT id FROM card_tag WHERE tag = ?)");
    params.push(folded(tag));
  }
  if (cursor !== undefined) {
    const [key, id] = parseCursor(cursor, sort);
    if (sort === "name") {
      conditions.push("(name, id) > (?, ?)");
      params.push(key, id);
    } else {
      conditions.push("mtime_ms <= ? AND (mtime_ms < ? OR id > ?)");
      params.push(key, key, id);
    }
  }
  const rows = db.all<{ id: string; name: string; mtimeMs: number; item: string }>(
    `SELECT id, name, mtime_ms AS mtimeMs, item FROM card_file WHERE ${conditions.join(" AND ")}
     ORDER BY ${sort === "name" ? "name, id" : "mtime_ms DESC, id"} ${limit === undefined ? "" : "LIMIT ?"}`,
    ...params,
    ...(limit === undefined ? [] : [limit + 1]),
  );
  const shown = limit === undefined ? rows : rows.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = rows.length > shown.length && last !== undefined;
  return {
    items: shown.map(({ item }) => item),
    next_cursor: hasMore ? cursorText([sort === "name" ? last.name : last.mtimeMs, last.id]) : null,
  };
}

type Cursor = [key: string | number, id: string];

function cursorText(cursor: Cursor): string {
  return encodeURIComponent(JSON.stringify(cursor));
}

function parseCursor(text: string, sort: "name" | "updated"): Cursor {
  try {
    const [key, id] = JSON.parse(decodeURIComponent(text));
    if (typeof key === (sort === "name" ? "string" : "number") && typeof id === "string") return [key, id];
  } catch {
    // the same sentence for all that is no cursor
  }
  throw new AppError("invalid_request", "This cursor did not come from such a list of characters");
}

function withBooleans(row: StoredCard | undefined): StoredCard | undefined {
  return row && {
    ...row,
    isExternal: Boolean(row.isExternal),
    hasAvatar: Boolean(row.hasAvatar),
    isReadable: Boolean(row.isReadable),
  };
}
