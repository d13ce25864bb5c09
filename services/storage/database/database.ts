/** `app.db`: synchronous reads, and writes that are durable when they resolve. */

import { DatabaseSync } from "node:sqlite";
import { AppError } from "../../errors.ts";
import { type Migration, MIGRATIONS } from "./migrations.ts";
import type { ManifestPlan } from "./manifest.ts";
import { type SchemaUpgrade, upgradeSchema } from "./schema.ts";
import { readError } from "./sqlite.ts";
import {
  createStatementCache,
  openWriter,
  type SqlValue,
  type Statement,
  type StatementCache,
  type StatementResult,
  type WriteOptions,
} from "./writer.ts";
import { openWorker } from "../../process/worker.ts";

export type { SqlValue, Statement } from "./writer.ts";
export type { Migration } from "./migrations.ts";

/** An open database. Reads see every write that has resolved. */
export interface Database {
  /** Returns all rows. @throws {AppError} `internal` if the file can't be read. */
  all<T>(sql: string, ...params: SqlValue[]): T[];
  /** Returns the first row. @throws {AppError} `internal` if the file can't be read. */
  get<T>(sql: string, ...params: SqlValue[]): T | undefined;
  /**
   * Yields rows one at a time from a snapshot taken at the first read, however long it takes. Always finish the
   * iteration (`break` does), because the write-ahead log can't be truncated before.
   */
  iterate<T>(sql: string, ...params: SqlValue[]): Iterable<T>;
  /**
   * Runs statements as one atomic unit. Concurrent units share a transaction.
   *
   * Blobs must not change until the promise settles. With `isMoved` they are transferred and empty afterwards, because
   * copying many megabytes would block the serving thread.
   *
   * @returns One result per statement, once the unit is on disk (`synchronous=FULL`).
   * @throws {AppError} `conflict` if a statement changed a number of rows other than `expectChanges`, or its key
   *   exists; `storage_full` if the disk is full; otherwise `internal`. Nothing of the unit is stored then.
   */
  write(statements: Statement[], options?: WriteOptions): Promise<StatementResult[]>;
  /** Starts the writer in advance, before the first write. */
  prepare(): void;
  /** Waits for pending writes, then closes the file. */
  close(): Promise<void>;
}

/** How to open a database. */
export interface DatabaseOptions {
  path: string;
  /** The schema, oldest migration first; the program's own by default. */
  migrations?: Migration[];
  /** Plans the manifest of a database with the newest schema; none is kept without it. */
  planManifest?(database: DatabaseSync): ManifestPlan;
  /** Called when the manifest was damaged and made again. */
  onManifestRemade?(): void;
  /** Called when an existing database was upgraded. */
  onUpgrade?(upgrade: SchemaUpgrade): void;
}

/**
 * Opens a database file; creates or upgrades it if needed.
 *
 * Writes run in a Worker, because an fsync takes 10 to 100 ms on an SD card and would block every request.
 *
 * @throws {AppError} `internal`, `conflict` or `storage_full`; see `upgradeSchema`.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { path, migrations = MIGRATIONS, planManifest, onManifestRemade, onUpgrade } = options;
  const upgrade = await upgradeSchema(path, migrations);
  if (upgrade !== undefined) onUpgrade?.(upgrade);
  let reader;
  let manifest: ManifestPlan | undefined;
  try {
    reader = openReader(path);
    manifest = planManifest && planWith(path, planManifest);
  } catch (error) {
    throw readError(path, error);
  }
  const { all, get, iterate, close: closeReader } = reader;
  const writer = openWriter({
    path,
    manifest,
    onManifestRemade,
    startWorker: () => openWorker(new URL("./writer_worker.ts", import.meta.url)),
  });
  return {
    all,
    get,
    iterate,
    write: writer.write,
    prepare: writer.prepare,
    async close() {
      // Close the writer last: only a writing connection can move the write-ahead log into the file.
      closeReader();
      await writer.close();
    },
  };
}

function planWith(path: string, planManifest: NonNullable<DatabaseOptions["planManifest"]>): ManifestPlan {
  using database = new DatabaseSync(path, { readOnly: true });
  return planManifest(database);
}

// Read-only connections for the serving thread.

/** How long another process may lock the file for recovery, in milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

/** Maximum number of idle connections for iterations. More can be open while iterations are running. */
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
    if (isClosed) throw new AppError("internal", `Can't read the database "${path}": it's closed`);
    try {
      return read();
    } catch (error) {
      throw readError(path, error);
    }
  }

  /**
   * Iterates over rows on a separate connection: an open iteration pins its connection to one snapshot, so other reads
   * on it would see old data.
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
      // Reuse a connection only if it's idle.
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
