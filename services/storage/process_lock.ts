/** One process at a time in a data directory. */

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
 * The lock is one of the operating system, so a killed process leaves none behind. SQLite takes it for us: its
 * exclusive lock is such a lock on every platform, it never waits, and it is the same on every Deno. (Deno 2.6.10 has
 * no `FsFile.tryLock`, and its `lock` waits without end and cannot be called off.)
 *
 * The file stays empty; the journal in memory keeps a second file away. Nothing else in this process may open and close
 * it: POSIX drops a process's locks with the first such close. The lock lasts as long as the result is held.
 *
 * @param path Lock file, made when missing; its folder has to exist.
 * @throws {AppError} `conflict` when another process, or this one, holds it; `internal` when the file cannot be opened.
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
        `Cannot lock "${path}": another Parlor process uses this data directory; stop it first, or name another by --data-dir`,
        { cause },
      );
    }
    throw new AppError("internal", `Cannot lock "${path}": ${describeLockFailure(cause)}`, { cause });
  }
}

function describeLockFailure(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return /readonly|unable to open/.test(text) ? `the folder cannot be written to (${text})` : text;
}
