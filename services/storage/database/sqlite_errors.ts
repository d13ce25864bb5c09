/** What SQLite's result codes mean to us. */

import { AppError, messageOf } from "../../errors.ts";

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
/** The shared-memory file of the write-ahead log could not grow, which only a full disk causes. */
const SQLITE_IOERR_SHMSIZE = 4874;

/** A failed unit as it crosses from the writer Worker to the serving thread. */
export interface WriteFailure {
  message: string;
  /** Extended result code, absent when SQLite was not the one to complain. */
  resultCode?: number;
  /** Set when a statement changed another number of rows than it promised. */
  expectation?: { expected: number; changed: number };
}

/** Gives SQLite's extended result code of a thrown value, if it carries one. */
export function resultCodeOf(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("errcode" in thrown)) return undefined;
  return typeof thrown.errcode === "number" ? thrown.errcode : undefined;
}

/** Says whether another connection held the lock. */
export function isLocked(thrown: unknown): boolean {
  return hasPrimaryCode(thrown, SQLITE_BUSY, /database (table )?is locked/);
}

/** Says whether the file is damaged or no database at all. */
export function isDamaged(thrown: unknown): boolean {
  return hasPrimaryCode(thrown, SQLITE_CORRUPT, /database disk image is malformed/) ||
    hasPrimaryCode(thrown, SQLITE_NOTADB, /file is not a database/);
}

/** Says whether the file or its folder refuses writes. */
export function isReadOnly(thrown: unknown): boolean {
  return hasPrimaryCode(thrown, SQLITE_READONLY, /attempt to write a readonly database/);
}

/** Says whether the disk is full. */
export function isFull(thrown: unknown): boolean {
  return resultCodeOf(thrown) === SQLITE_IOERR_SHMSIZE ||
    hasPrimaryCode(thrown, SQLITE_FULL, /database or disk is full/);
}

/**
 * Turns a failed unit of writes into the error its caller gets.
 *
 * @returns `conflict` for an unmet expectation or a key that is taken, `storage_full` for a full disk, else `internal`.
 */
export function writeError(failure: WriteFailure): AppError {
  const tried = "Cannot write to the database";
  if (failure.expectation !== undefined) {
    const { expected, changed } = failure.expectation;
    return new AppError("conflict", `${tried}: ${changed} rows fitted where ${expected} had to`);
  }
  const cause = Object.assign(new Error(failure.message), { errcode: failure.resultCode });
  if (isFull(cause)) return new AppError("storage_full", `${tried}: the disk is full`, { cause });
  switch (failure.resultCode) {
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_ROWID:
      return new AppError("conflict", `${tried}: that key is taken (${failure.message})`, { cause });
    default:
      return new AppError("internal", `${tried}: ${failure.message}`, { cause });
  }
}

/** Turns a failed read into an `internal` error that names the file. */
export function readError(path: string, thrown: unknown): AppError {
  const found = isDamaged(thrown) ? `the file is damaged (${messageOf(thrown)})` : messageOf(thrown);
  return new AppError("internal", `Cannot read the database "${path}": ${found}`, { cause: thrown });
}

function hasPrimaryCode(thrown: unknown, code: number, message: RegExp): boolean {
  const resultCode = resultCodeOf(thrown);
  // Some failures to open carry no code, only SQLite's text.
  return resultCode === undefined ? message.test(messageOf(thrown)) : (resultCode & 0xff) === code;
}
