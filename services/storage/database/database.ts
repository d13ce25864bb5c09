/** `app.db` as the rest of the program sees it: reads at once, writes durable when they resolve. */

import { type Migration, MIGRATIONS } from "./migrations.ts";
import { openReader } from "./reader.ts";
import { settleSchema } from "./schema.ts";
import { readError } from "./sqlite_errors.ts";
import type { SqlValue, Statement, StatementResult } from "./write_group.ts";
import { openWriter, type WriteOptions } from "./writer.ts";

export type { SqlValue, Statement, StatementResult } from "./write_group.ts";
export type { Migration } from "./migrations.ts";

/** An open database. Reads see every write that has resolved. */
export interface Database {
  /** Gives all rows. @throws {AppError} `internal` when the file cannot be read. */
  all<T>(sql: string, ...params: SqlValue[]): T[];
  /** Gives the first row. @throws {AppError} `internal` when the file cannot be read. */
  get<T>(sql: string, ...params: SqlValue[]): T | undefined;
  /**
   * Gives rows one at a time, all as they were when the first was read, however long it takes.
   * End it (`break` does): until then the write-ahead log cannot be emptied.
   */
  iterate<T>(sql: string, ...params: SqlValue[]): Iterable<T>;
  /**
   * Runs statements as one atomic unit; units written about the same time share one transaction.
   *
   * Blobs must stay unchanged until the promise settles. With `isMoved` they are empty afterwards: they move to the
   * writer's thread, where a copy of many megabytes would take memory and hold up the serving thread.
   *
   * @returns One result a statement, once the unit is on disk (`synchronous=FULL`).
   * @throws {AppError} `conflict` when a statement changed another number of rows than `expectChanges` or its key is
   *   taken, `storage_full` when the disk is, else `internal`; nothing of the unit remains.
   */
  write(statements: Statement[], options?: WriteOptions): Promise<StatementResult[]>;
  /** Gets the writer ready, so that the first write need not wait for its thread. */
  prepare(): void;
  /** Waits for the writes under way, then closes the file. */
  close(): Promise<void>;
}

/** How to open a database. */
export interface DatabaseOptions {
  path: string;
  /** The schema, oldest first; the program's own unless a test brings another. */
  migrations?: Migration[];
}

/**
 * Opens a database file, made or upgraded as needed.
 *
 * Writing happens in a Worker, since an fsync takes 10 to 100 ms on an SD card and would hold up every request.
 *
 * @throws {AppError} `internal`, `conflict` or `storage_full` with the reason; see `settleSchema`.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { path, migrations = MIGRATIONS } = options;
  await settleSchema(path, migrations);
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
      // The writer goes last: only a connection that may write can empty the log into the file.
      closeReader();
      await writer.close();
    },
  };
}
