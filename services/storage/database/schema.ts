/** Brings a database file to the schema of this program, or refuses it untouched. */

import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AppError, messageOf } from "../../errors.ts";
import { fileError, syncFolder, TEMPORARY_ENDING } from "../atomic_file.ts";
import type { Migration } from "./migrations.ts";
import { copyDatabase } from "./snapshot.ts";
import { isDamaged, isFull, isLocked, isReadOnly } from "./sqlite_errors.ts";

const FILE_MODE = 0o600;

/** How long another program may hold the file while we open it. */
const BUSY_TIMEOUT_MS = 2000;

/** Result code of a file or folder that cannot be opened, as SQLite words it when it gives no code. */
const CANNOT_OPEN = /unable to open database file/;

/**
 * Makes the database file when it is missing, and brings its schema up to date.
 *
 * All pending migrations are one transaction: a killed upgrade leaves the old schema. An existing database is copied
 * to `<path>.schema-<old version>` before. Refused without a byte of the file changed: a newer schema than the
 * program knows, a damaged file, a file of another program.
 *
 * @throws {AppError} `internal` with the reason of the refusal, `conflict` when another program has it locked,
 *   `storage_full` when there is no room for the copy or the upgrade.
 */
export async function settleSchema(path: string, migrations: Migration[]): Promise<void> {
  await settleFile(path);
  const newest = migrations.at(-1)?.version ?? 0;
  const current = await refusing(path, () => readVersion(path));
  if (current > newest) {
    throw cannotOpen(
      path,
      `it has schema ${current} and this program knows schemas up to ${newest}; start the newer program again`,
    );
  }
  if (current === newest) return;
  await refusing(path, async () => {
    using connection = connectForUpgrade(path);
    if (current > 0) await copyBefore(path, current, connection);
    upgrade(connection, migrations.filter((migration) => migration.version > current), current);
  });
}

/** Makes the file with its final mode before SQLite opens it, since SQLite's own files beside it take over that mode. */
async function settleFile(path: string): Promise<void> {
  try {
    const size = await sizeOf(path);
    if (!size && await sizeOf(`${path}-wal`)) {
      // SQLite would throw that log away as a leftover, and with it what was written last.
      throw cannotOpen(path, `the file is ${size === 0 ? "empty" : "missing"} but its log "${path}-wal" is not`);
    }
    if (size === undefined) {
      const file = await Deno.open(path, { write: true, createNew: true, mode: FILE_MODE });
      file.close();
      await syncFolder(dirname(path));
      return;
    }
    if (Deno.build.os === "windows") return;
    for (const name of [path, `${path}-wal`, `${path}-shm`]) {
      if (await sizeOf(name) !== undefined && ((await Deno.stat(name)).mode ?? FILE_MODE) % 0o1000 !== FILE_MODE) {
        await Deno.chmod(name, FILE_MODE);
      }
    }
  } catch (cause) {
    throw fileError(`Cannot open the database "${path}"`, cause);
  }
}

/**
 * Reads over a connection that cannot write, so that not even its closing changes the file. Where a power cut in the very
 * first start left a rollback journal, that has to be played back first, as any program of SQLite's would.
 */
async function readVersion(path: string): Promise<number> {
  try {
    return readVersionOver(path, { readOnly: true });
  } catch (error) {
    if (!isReadOnly(error) || await sizeOf(`${path}-journal`) === undefined) throw error;
    return readVersionOver(path, { readOnly: false });
  }
}

function readVersionOver(path: string, options: { readOnly: boolean }): number {
  using connection = new DatabaseSync(path, options);
  connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  const version = Number(connection.prepare("PRAGMA user_version").get()?.user_version);
  const { tables } = connection.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() ?? {};
  if (version === 0 && tables !== 0) {
    throw cannotOpen(path, "it is a database of another program");
  }
  return version;
}

function connectForUpgrade(path: string): DatabaseSync {
  const connection = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA temp_store = MEMORY`);
    const mode = connection.prepare("PRAGMA journal_mode = WAL").get()?.journal_mode;
    if (mode !== "wal") {
      throw cannotOpen(path, "its file system cannot keep a write-ahead log; put the data directory on a local disk");
    }
    connection.exec("PRAGMA synchronous = FULL");
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Copies the database, its log included, to a file of its own; a copy from a killed attempt is replaced. */
async function copyBefore(path: string, version: number, connection: DatabaseSync): Promise<void> {
  const copy = `${path}.schema-${version}`;
  const temporary = `${copy}${TEMPORARY_ENDING}`;
  try {
    await Deno.remove(temporary).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    // Copying the file by hand would open and close it in this process, which drops SQLite's POSIX locks on it.
    await copyDatabase(connection, temporary);
    using written = await Deno.open(temporary, { read: true, write: true });
    await written.sync();
    await Deno.rename(temporary, copy);
    await syncFolder(dirname(path));
  } catch (cause) {
    await Deno.remove(temporary).catch(() => {});
    if (isFull(cause) || isDamaged(cause)) throw cause;
    throw fileError(`Cannot copy the database "${path}" to "${basename(copy)}" before its upgrade`, cause);
  }
}

function upgrade(connection: DatabaseSync, pending: Migration[], from: number): void {
  connection.exec("BEGIN EXCLUSIVE");
  try {
    let version = from;
    for (const migration of pending) {
      if (migration.version !== version + 1) {
        throw new Error(`migration ${migration.version} does not follow schema ${version}`);
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

/** Words what SQLite found as a refusal. */
async function refusing<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (isFull(cause)) {
      throw new AppError("storage_full", `Cannot open the database "${path}": the disk is full`, { cause });
    }
    if (isLocked(cause)) {
      throw new AppError("conflict", `Cannot open the database "${path}": another program has it locked`, { cause });
    }
    const text = messageOf(cause);
    if (isDamaged(cause)) {
      throw cannotOpen(path, `the file is damaged (${text}); it was left as it is, restore a backup`, cause);
    }
    if (isReadOnly(cause) || CANNOT_OPEN.test(text)) {
      throw cannotOpen(path, `the file or its folder cannot be written to (${text})`, cause);
    }
    throw cannotOpen(path, text, cause);
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function cannotOpen(path: string, found: string, cause?: unknown): AppError {
  return new AppError("internal", `Cannot open the database "${path}": ${found}`, { cause });
}
