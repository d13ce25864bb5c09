/** `app.db`: synchronous reads, and writes that are durable when they resolve. */

import { type Migration, MIGRATIONS } from "./migrations.ts";
import { openReader } from "./reader.ts";
import { type SchemaUpgrade, settleSchema } from "./schema.ts";
import { readError } from "./sqlite_errors.ts";
import type { SqlValue, Statement, StatementResult } from "./write_group.ts";
import { openWriter, type WriteOptions } from "./writer.ts";

export type { SqlValue, Statement, StatementResult } from "./write_group.ts";
export type { Migration } from "./migrations.ts";

/** An open database. Reads see every write that has resolved. */
export interface Database {
  /** Returns all rows. @throws {AppError} `internal` if the file can't be read. */
  all<T>(sql: string, ...params: SqlValue[]): T[];
  /** Returns the first row. @throws {AppError} `internal` if the file can't be read. */
  get<T>(sql: string, ...params: SqlValue[]): T | undefined;
  /**
   * Yields rows one at a time from a snapshot taken at the first read, however long it takes.
   * Always finish it (`break` does): the write-ahead log can't be truncated before.
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
  /** Starts the writer ahead of the first write. */
  prepare(): void;
  /** Waits for pending writes, then closes the file. */
  close(): Promise<void>;
}

/** How to open a database. */
export interface DatabaseOptions {
  path: string;
  /** The schema, oldest migration first; the program's own by default. */
  migrations?: Migration[];
  /** Called when an existing database was upgraded. */
  onUpgrade?(upgrade: SchemaUpgrade): void;
}

/**
 * Opens a database file; creates or upgrades it if needed.
 *
 * Writes run in a Worker, because an fsync takes 10 to 100 ms on an SD card and would block every request.
 *
 * @throws {AppError} `internal`, `conflict` or `storage_full`; see `settleSchema`.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { path, migrations = MIGRATIONS, onUpgrade } = options;
  const upgrade = await settleSchema(path, migrations);
  if (upgrade !== undefined) onUpgrade?.(upgrade);
  let reader;
  try {
    reader = openReader(path);
  } catch (error) {
    throw readError(path, error);
  }
  const { all, get, iterate, close: closeReader } = reader;
  const writer = openWriter({
    path,
    startWorker: () => new Worker(new URL("./writer_worker.ts", import.meta.url), { type: "module" }),
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
