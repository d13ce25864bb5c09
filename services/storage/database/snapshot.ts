/** A copy of the database as it is at one moment, whoever writes meanwhile. */
import { backup, DatabaseSync } from "node:sqlite";
import { AppError, messageOf } from "../../errors.ts";
import { fileError } from "../atomic_file.ts";
import { isFull } from "./sqlite_errors.ts";

const BUSY_TIMEOUT_MS = 5000;
/** All pages under one lock: a copy in several steps begins anew whenever another process writes between two of them. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies a database, its log included, into a file of its own and checks the copy. Blocks its thread for as long as the
 * disk takes: on the server it belongs into a Worker.
 *
 * @param to A file that is not there yet; made with mode 0600.
 * @throws {AppError} `storage_full`, or `internal` when either cannot be read or written, or the copy is damaged.
 */
export async function snapshotDatabase(from: string, to: string): Promise<void> {
  try {
    using source = new DatabaseSync(from, { readOnly: true });
    source.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    await copyDatabase(source, to);
  } catch (cause) {
    if (isFull(cause)) {
      throw new AppError("storage_full", `Cannot copy the database "${from}": the disk is full`, { cause });
    }
    throw fileError(`Cannot copy the database "${from}"`, cause);
  }
  checkDatabase(to);
}

/**
 * Copies what a connection sees. (`VACUUM INTO` attaches the target, which Deno allows only to programs that may do
 * everything.)
 *
 * @param to A file that is not there yet; made with mode 0600, without a log beside it.
 * @throws What SQLite or the runtime throws.
 */
export async function copyDatabase(source: DatabaseSync, to: string): Promise<void> {
  Deno.openSync(to, { write: true, createNew: true, mode: 0o600 }).close();
  await backup(source, to, { rate: ALL_PAGES });
  using copy = new DatabaseSync(to);
  // The source's mode comes along with its pages, and in that every reader would make two files beside the copy.
  copy.exec("PRAGMA journal_mode = DELETE");
}

/**
 * Looks through a whole database file.
 *
 * @returns Its schema version.
 * @throws {AppError} `internal` when it is damaged.
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
