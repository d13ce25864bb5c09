/** SQLite: its result codes, and consistent copies of a database during writes. */
import { AppError, getErrorMessage } from "../../errors.ts";
import { backup, DatabaseSync } from "node:sqlite";
import { toFileError } from "../atomic_file.ts";

/** Primary result codes. @see https://www.sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;

/** Extended result codes. */
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;
const SQLITE_CONSTRAINT_UNIQUE = 2067;
const SQLITE_CONSTRAINT_ROWID = 2579;
/** The shared-memory file of the write-ahead log couldn't grow, which only happens on a full disk. */
const SQLITE_IOERR_SHMSIZE = 4874;

/** A failed unit, as sent from the writer Worker to the serving thread. */
export interface WriteFailure {
  message: string;
  /** Extended result code; absent if the error isn't SQLite's. */
  resultCode?: number;
  /** Set if a statement changed an unexpected number of rows. */
  expectation?: { expected: number; changed: number };
}

/** Returns SQLite's extended result code of an error, if it has one. */
export function getResultCode(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("errcode" in thrown)) return undefined;
  return typeof thrown.errcode === "number" ? thrown.errcode : undefined;
}

/** Reports whether another connection held the lock. */
export function isLocked(thrown: unknown): boolean {
  return hasPrimaryCode(thrown, SQLITE_BUSY, /database (table )?is locked/);
}

/** Reports whether the file is damaged or not a database. */
export function isDamaged(thrown: unknown): boolean {
  return hasPrimaryCode(thrown, SQLITE_CORRUPT, /database disk image is malformed/) ||
    hasPrimaryCode(thrown, SQLITE_NOTADB, /file is not a database/);
}

/** Reports whether the file or its folder is read-only. */
export function isReadOnly(thrown: unknown): boolean {
  return hasPrimaryCode(thrown, SQLITE_READONLY, /attempt to write a readonly database/);
}

/** Reports whether the disk is full. */
export function isFull(thrown: unknown): boolean {
  return getResultCode(thrown) === SQLITE_IOERR_SHMSIZE ||
    hasPrimaryCode(thrown, SQLITE_FULL, /database or disk is full/);
}

/**
 * Converts a failed unit of writes to an AppError.
 *
 * @returns `conflict` for an unmet expectation or an existing key, `storage_full` for a full disk, otherwise
 *   `internal`.
 */
export function writeError(failure: WriteFailure): AppError {
  const tried = "Can't write to the database";
  if (failure.expectation !== undefined) {
    const { expected, changed } = failure.expectation;
    return new AppError("conflict", `${tried}: changed ${changed} rows instead of ${expected}`);
  }
  const cause = Object.assign(new Error(failure.message), { errcode: failure.resultCode });
  if (isFull(cause)) return new AppError("storage_full", `${tried}: the disk is full`, { cause });
  switch (failure.resultCode) {
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_ROWID:
      return new AppError("conflict", `${tried}: the key already exists (${failure.message})`, { cause });
    default:
      return new AppError("internal", `${tried}: ${failure.message}`, { cause });
  }
}

/** Converts a failed read to an `internal` error with the file's path. */
export function readError(path: string, thrown: unknown): AppError {
  const found = isDamaged(thrown) ? `the file is damaged (${getErrorMessage(thrown)})` : getErrorMessage(thrown);
  return new AppError("internal", `Can't read the database "${path}": ${found}`, { cause: thrown });
}

function hasPrimaryCode(thrown: unknown, code: number, message: RegExp): boolean {
  const resultCode = getResultCode(thrown);
  // Some failures to open a file have only a message, no code.
  return resultCode === undefined ? message.test(getErrorMessage(thrown)) : (resultCode & 0xff) === code;
}

const BUSY_TIMEOUT_MS = 5000;
/** Copy all pages under one lock: a copy in several steps starts over when another process writes in between. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies the database with its log to a new file, even a damaged one. Blocks its thread; on the server it runs in a
 * Worker.
 *
 * @param to A file that doesn't exist yet; created with mode 0600.
 * @throws {AppError} `storage_full`; `internal` if a file can't be read or written.
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
    throw toFileError(`Can't copy the database "${from}"`, cause);
  }
}

/**
 * Copies the database as a connection sees it. (`VACUUM INTO` would attach the target, which Deno allows only with all
 * permissions.)
 *
 * @param to A file that doesn't exist yet; created with mode 0600, without a log.
 * @throws SQLite's or the runtime's errors.
 */
export async function copyDatabase(source: DatabaseSync, to: string): Promise<void> {
  Deno.openSync(to, { write: true, createNew: true, mode: 0o600 }).close();
  await backup(source, to, { rate: ALL_PAGES });
  using copy = new DatabaseSync(to);
  // The copy has the journal mode of the source, with which every reader would create two more files.
  copy.exec("PRAGMA journal_mode = DELETE");
}

/**
 * Verifies a whole database file.
 *
 * @returns Its schema version.
 * @throws {AppError} `internal` if it's damaged.
 */
export function checkDatabase(path: string): number {
  let found: unknown;
  let version: unknown;
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    found = database.prepare("PRAGMA integrity_check(1)").get()?.integrity_check;
    version = database.prepare("PRAGMA user_version").get()?.user_version;
  } catch (cause) {
    found = getErrorMessage(cause);
  }
  if (found === "ok") return Number(version);
  throw new AppError("internal", `The database "${path}" is damaged: ${found}`);
}
