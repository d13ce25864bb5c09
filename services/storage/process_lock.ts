/** Allows one process per data directory. */

import { DatabaseSync } from "node:sqlite";
import { AppError } from "../errors.ts";
import { isLocked } from "./database/sqlite_errors.ts";

/** A held lock. */
export interface ProcessLock {
  release(): void;
}

/**
 * Takes a lock file for this process.
 *
 * The operating system holds the lock, so a killed process leaves none. It is taken through SQLite, whose exclusive
 * lock works the same on every platform and never waits. (Deno 2.6.10 has no `FsFile.tryLock`, and `lock` waits forever
 * and can't be canceled.)
 *
 * The file stays empty; an in-memory journal avoids a second file. Nothing else in this process may open and close the
 * file: POSIX drops all locks of a process on the first close. The lock lasts as long as the returned object.
 *
 * @param path Lock file, created if missing; its folder must exist.
 * @throws {AppError} `conflict` if this or another process holds it; `internal` if the file can't be opened.
 */
export function takeProcessLock(path: string): ProcessLock {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    database.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    const held = database;
    return { release: () => held.close() };
  } catch (cause) {
    database?.close();
    if (isLocked(cause)) {
      throw new AppError(
        "conflict",
        `Can't lock "${path}": another Parlor process is using this data directory. Stop it first, or choose another directory with --data-dir`,
        { cause },
      );
    }
    throw new AppError("internal", `Can't lock "${path}": ${describeLockFailure(cause)}`, { cause });
  }
}

function describeLockFailure(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return /readonly|unable to open/.test(text) ? `the folder cannot be written to (${text})` : text;
}
