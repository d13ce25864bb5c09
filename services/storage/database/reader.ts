/** Read-only connections for the serving thread. */

import { DatabaseSync } from "node:sqlite";
import { AppError } from "../../errors.ts";
import { readError } from "./sqlite_errors.ts";
import { createStatementCache, type SqlValue, type StatementCache } from "./write_group.ts";

/** How long another process may lock the file for recovery, in milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

/** Idle connections kept for iterations; more can be open while iterations run. */
const MAX_IDLE_ITERATORS = 2;

/** Reads committed data. */
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
 * Opens a reader for a database file with the current schema.
 *
 * @throws SQLite's errors.
 */
export function openReader(path: string): Reader {
  const main = connect(path);
  const idle: Connection[] = [];
  const busy = new Set<Connection>();
  let isClosed = false;

  function query<T>(read: () => T): T {
    if (isClosed) throw new AppError("internal", `Can't read the database "${path}": it is closed`);
    try {
      return read();
    } catch (error) {
      throw readError(path, error);
    }
  }

  /**
   * An open iteration pins its connection to one snapshot, and other reads on that connection would see old data. Each
   * iteration therefore has its own connection.
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
      // Keep a connection only if it is idle.
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
