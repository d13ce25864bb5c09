/** Consistent copies of the database during writes. */
import { backup, DatabaseSync } from "node:sqlite";
import { AppError, messageOf } from "../../errors.ts";
import { fileError } from "../atomic_file.ts";
import { isFull } from "./sqlite_errors.ts";

const BUSY_TIMEOUT_MS = 5000;
/** Copy all pages under one lock: a copy in several steps starts over when another process writes in between. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies the database with its log to a new file and verifies the copy. Blocks its thread; on the server it runs in a
 * Worker.
 *
 * @param to A file that doesn't exist yet; created with mode 0600.
 * @throws {AppError} `storage_full`; `internal` if a file can't be read or written, or the copy is damaged.
 */
export async function snapshotDatabase(from: string, to: string): Promise<void> {
  try {
    using source = new DatabaseSync(from, { readOnly: true });
    source.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    await copyDatabase(source, to);
  } catch (cause) {
    if (isFull(cause)) {
      throw new AppError("storage_full", `Can't copy the database "${from}": the disk is full`, { cause });
    }
    throw fileError(`Can't copy the database "${from}"`, cause);
  }
  checkDatabase(to);
}

/**
 * Copies what a connection sees. (`VACUUM INTO` would attach the target, which Deno allows only with all permissions.)
 *
 * @param to A file that doesn't exist yet; created with mode 0600, without a log.
 * @throws SQLite's or the runtime's errors.
 */
export async function copyDatabase(source: DatabaseSync, to: string): Promise<void> {
  Deno.openSync(to, { write: true, createNew: true, mode: 0o600 }).close();
  await backup(source, to, { rate: ALL_PAGES });
  using copy = new DatabaseSync(to);
  // The copy has the journal mode of the source, in which every reader would create two more files.
  copy.exec("PRAGMA journal_mode = DELETE");
}

/**
 * Verifies a whole database file.
 *
 * @returns Its schema version.
 * @throws {AppError} `internal` if it is damaged.
 */
export function checkDatabase(path: string): number {
  let found: unknown;
  let version: unknown;
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    found = database.prepare("PRAGMA integrity_check(1)").get()?.integrity_check;
    version = database.prepare("PRAGMA user_version").get()?.user_version;
  } catch (cause) {
    found = messageOf(cause);
  }
  if (found === "ok") return Number(version);
  throw new AppError("internal", `The database "${path}" is damaged: ${found}`);
}
