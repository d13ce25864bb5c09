/** Read-only connections of the serving thread. */

import { DatabaseSync } from "node:sqlite";
import { AppError } from "../../errors.ts";
import { readError } from "./sqlite_errors.ts";
import { createStatementCache, type StatementCache } from "./statement_cache.ts";
import type { SqlValue } from "./write_group.ts";

/** How long recovery by another process may hold the file. */
const BUSY_TIMEOUT_MS = 5000;

/** Connections kept for the next iteration; more may be open while that many iterations run. */
const MAX_IDLE_ITERATORS = 2;

/** Reads what is committed. */
export interface Reader {
  all<T>(sql: string, ...params: SqlValue[]): T[];
  get<T>(sql: string, ...params: SqlValue[]): T | undefined;
  iterate<T>(sql: string, ...params: SqlValue[]): Iterable<T>;
  close(): void;
}

interface Connection {
  database: DatabaseSync;
  cache: StatementCache;
}

/**
 * Opens the reader of a database file that has its schema.
 *
 * @throws What SQLite throws when the file cannot be read.
 */
export function openReader(path: string): Reader {
  const main = connect(path);
  const idle: Connection[] = [];
  const busy = new Set<Connection>();
  let isClosed = false;

  function query<T>(read: () => T): T {
    if (isClosed) throw new AppError("internal", `Cannot read the database "${path}": it is closed`);
    try {
      return read();
    } catch (error) {
      throw readError(path, error);
    }
  }

  /**
   * An open iteration holds its connection at one moment's state, and whatever else that connection read would be as
   * old: so each runs on a connection of its own.
   */
  function* iterate<T>(sql: string, params: SqlValue[]): Generator<T, void, undefined> {
    const connection = query(() => idle.pop() ?? connect(path));
    busy.add(connection);
    let isWhole = false;
    try {
      const rows = query(() => connection.cache.prepare(sql).iterate(...params)[Symbol.iterator]());
      try {
        while (true) {
          const row = query(() => rows.next());
          if (row.done) break;
          yield row.value as T;
        }
      } finally {
        if (!isClosed) rows.return?.();
      }
      isWhole = true;
    } finally {
      busy.delete(connection);
      // A connection is kept only when it is known to be at rest.
      if (isWhole && !isClosed && idle.length < MAX_IDLE_ITERATORS) idle.push(connection);
      else if (!isClosed) connection.database.close();
    }
  }

  return {
    all: <T>(sql: string, ...params: SqlValue[]) => query(() => main.cache.prepare(sql).all(...params) as T[]),
    get: <T>(sql: string, ...params: SqlValue[]) =>
      query(() => main.cache.prepare(sql).get(...params) as T | undefined),
    iterate: <T>(sql: string, ...params: SqlValue[]) => ({ [Symbol.iterator]: () => iterate<T>(sql, params) }),
    close() {
      if (isClosed) return;
      isClosed = true;
      for (const connection of [main, ...idle, ...busy]) connection.database.close();
    },
  };
}

function connect(path: string): Connection {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA temp_store = MEMORY`);
    return { database, cache: createStatementCache(database) };
  } catch (error) {
    database.close();
    throw error;
  }
}
