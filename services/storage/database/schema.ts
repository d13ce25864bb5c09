/** Upgrades a database file to the program's schema, or rejects it without changing it. */

import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AppError, getErrorMessage } from "../../errors.ts";
import { syncFolder, TEMPORARY_ENDING, toFileError } from "../atomic_file.ts";
import type { Migration } from "./migrations.ts";
import { copyDatabase, isDamaged, isFull, isLocked, isReadOnly } from "./sqlite.ts";

const FILE_MODE = 0o600;

/** How long another program may lock the file while it is opened, in milliseconds. */
const BUSY_TIMEOUT_MS = 2000;

/** SQLite's message for a file or folder that can't be opened; it has no error code. */
const CANNOT_OPEN = /unable to open database file/;

/** The upgrade of an existing database. */
export interface SchemaUpgrade {
  from: number;
  to: number;
  /** Name of the copy that was made before the upgrade, next to the database. */
  copy: string;
}

/**
 * Creates the database file if it's missing, and upgrades its schema.
 *
 * All pending migrations run in one transaction: a killed upgrade leaves the old schema. An existing database is copied
 * to `<path>.schema-<old version>` first. Rejects a schema newer than the program's, a damaged file, and a file of
 * another program, without changing them.
 *
 * @returns The upgrade; `undefined` for a new database and for one with the newest schema.
 * @throws {AppError} `internal` with the reason for the rejection; `conflict` if another program has the file locked;
 *   `storage_full` if there is no space for the copy or the upgrade.
 */
export async function upgradeSchema(path: string, migrations: Migration[]): Promise<SchemaUpgrade | undefined> {
  await settleFile(path);
  const newest = migrations.at(-1)?.version ?? 0;
  const current = await createSchemaError(path, () => readVersion(path));
  if (current > newest) {
    throw createOpenError(
      path,
      `it has schema version ${current}, and this program supports versions up to ${newest}. Start the newer program again`,
    );
  }
  if (current === newest) return undefined;
  await createSchemaError(path, async () => {
    using connection = connectForUpgrade(path);
    if (current > 0) await copyBefore(path, current, connection);
    upgrade(connection, migrations.filter((migration) => migration.version > current), current);
  });
  return current > 0 ? { from: current, to: newest, copy: basename(copyPath(path, current)) } : undefined;
}

/** Creates the file with its final mode before SQLite opens it: SQLite's own files inherit that mode. */
async function settleFile(path: string): Promise<void> {
  try {
    const size = await measureFile(path);
    if (!size && await measureFile(`${path}-wal`)) {
      // SQLite would discard the log as a leftover, and the latest writes with it.
      throw createOpenError(path, `the file is ${size === 0 ? "empty" : "missing"} but its log "${path}-wal" isn't`);
    }
    if (size === undefined) {
      const file = await Deno.open(path, { write: true, createNew: true, mode: FILE_MODE });
      file.close();
      await syncFolder(dirname(path));
      return;
    }
    if (Deno.build.os === "windows") return;
    for (const name of [path, `${path}-wal`, `${path}-shm`]) {
      if (await measureFile(name) !== undefined && ((await Deno.stat(name)).mode ?? FILE_MODE) % 0o1000 !== FILE_MODE) {
        await Deno.chmod(name, FILE_MODE);
      }
    }
  } catch (cause) {
    throw toFileError(`Can't open the database "${path}"`, cause);
  }
}

/**
 * Reads with a read-only connection, so that even closing it doesn't change the file. If there is a rollback journal
 * from a power failure during the very first start, it's applied first.
 */
async function readVersion(path: string): Promise<number> {
  try {
    return readVersionOver(path, { readOnly: true });
  } catch (error) {
    if (!isReadOnly(error) || await measureFile(`${path}-journal`) === undefined) throw error;
    return readVersionOver(path, { readOnly: false });
  }
}

function readVersionOver(path: string, options: { readOnly: boolean }): number {
  using connection = new DatabaseSync(path, options);
  connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  const version = Number(connection.prepare("PRAGMA user_version").get()?.user_version);
  const { tables } = connection.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() ?? {};
  if (version === 0 && tables !== 0) {
    throw createOpenError(path, "it's a database of another program");
  }
  return version;
}

function connectForUpgrade(path: string): DatabaseSync {
  const connection = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA temp_store = MEMORY`);
    const mode = connection.prepare("PRAGMA journal_mode = WAL").get()?.journal_mode;
    if (mode !== "wal") {
      throw createOpenError(
        path,
        "its file system doesn't support a write-ahead log. Put the data directory on a local disk",
      );
    }
    connection.exec("PRAGMA synchronous = FULL");
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function copyPath(path: string, version: number): string {
  return `${path}.schema-${version}`;
}

/** Copies the database with its log to a new file. Replaces the copy of a killed attempt. */
async function copyBefore(path: string, version: number, connection: DatabaseSync): Promise<void> {
  const copy = copyPath(path, version);
  const temporary = `${copy}${TEMPORARY_ENDING}`;
  try {
    await Deno.remove(temporary).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    // A manual copy would open and close the file in this process, which releases SQLite's POSIX locks.
    await copyDatabase(connection, temporary);
    using written = await Deno.open(temporary, { read: true, write: true });
    await written.sync();
    await Deno.rename(temporary, copy);
    await syncFolder(dirname(path));
  } catch (cause) {
    await Deno.remove(temporary).catch(() => {});
    if (isFull(cause) || isDamaged(cause)) throw cause;
    throw toFileError(`Can't copy the database "${path}" to "${basename(copy)}" before its upgrade`, cause);
  }
}

function upgrade(connection: DatabaseSync, pending: Migration[], from: number): void {
  connection.exec("BEGIN EXCLUSIVE");
  try {
    let version = from;
    for (const migration of pending) {
      if (migration.version !== version + 1) {
        throw new Error(`migration ${migration.version} doesn't follow schema version ${version}`);
      }
      connection.exec(migration.sql);
      version = migration.version;
    }
    connection.exec(`PRAGMA user_version = ${version}`);
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** Converts SQLite's errors to AppErrors. */
async function createSchemaError<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (isFull(cause)) {
      throw new AppError("storage_full", `Can't open the database "${path}": the disk is full`, { cause });
    }
    if (isLocked(cause)) {
      throw new AppError("conflict", `Can't open the database "${path}": another program has it locked`, { cause });
    }
    const text = getErrorMessage(cause);
    if (isDamaged(cause)) {
      throw createOpenError(path, `the file is damaged (${text}) and wasn't changed. Restore a backup`, cause);
    }
    if (isReadOnly(cause) || CANNOT_OPEN.test(text)) {
      throw createOpenError(path, `the file or its folder isn't writable (${text})`, cause);
    }
    throw createOpenError(path, text, cause);
  }
}

async function measureFile(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function createOpenError(path: string, found: string, cause?: unknown): AppError {
  return new AppError("internal", `Can't open the database "${path}": ${found}`, { cause });
}
