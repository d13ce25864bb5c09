/** Detects a data directory that was in use but lost its storage key or database. */

import { AppError } from "../../errors.ts";
import { fileError } from "../atomic_file.ts";
import type { DataDir } from "../data_dir.ts";

/** Files and folders with sealed values, which only exist once there is a key. */
const SEALED_NAMES = ["app.db", "app.db-wal", "credentials.json", "tokens.json", "attachments", "replies"];

/**
 * Reports whether the data directory may have sealed data. Call it before the database is opened, which creates it.
 *
 * @throws {AppError} `internal` if that can't be determined: an unreadable folder isn't an empty one.
 */
export async function holdsSealedData(dataDir: DataDir): Promise<boolean> {
  for (const name of SEALED_NAMES) {
    const path = dataDir.file(name);
    try {
      if (!(await Deno.stat(path)).isDirectory) return true;
      for await (const _ of Deno.readDir(path)) return true;
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) continue;
      throw fileError(`Can't look for sealed data in "${path}"`, cause);
    }
  }
  return false;
}

/** Files and folders that are only filled once there is a database. */
const NAMES_BESIDE_DATABASE = ["credentials.json", "tokens.json", "attachments", "replies", "trash"];

/**
 * Offset of `user_version` in the header of a database file. @see
 * https://www.sqlite.org/fileformat.html#the_database_header
 */
const USER_VERSION_OFFSET = 60;

/**
 * Refuses to start with an empty database if other data shows that there was one. Call it before the database is
 * opened, which creates it.
 *
 * @throws {AppError} `internal`, listing the data found and the ways out.
 */
export async function refuseLostDatabase(dataDir: DataDir): Promise<void> {
  const path = dataDir.file("app.db");
  const found = await getDatabaseState(path);
  if (found === "used") return;
  const others: string[] = [];
  for (const name of NAMES_BESIDE_DATABASE) {
    if (await isFilled(dataDir.file(name))) others.push(name);
  }
  // Created before an upgrade of a database that was in use.
  for await (const { name } of Deno.readDir(dataDir.path)) if (name.startsWith("app.db.schema-")) others.push(name);
  if (others.length === 0) return;
  throw new AppError(
    "internal",
    `The database "${path}" is ${found}, but the data folder holds other data (${
      others.join(", ")
    }), so Parlor won't ` +
      'start with an empty one. Put app.db back, or restore a backup with "parlor restore FILE --replace". ' +
      "To start over, move the data folder away",
  );
}

async function getDatabaseState(path: string): Promise<"missing" | "empty" | "used"> {
  try {
    // The latest writes may only be in the log.
    if (await isFilled(`${path}-wal`)) return "used";
    using file = await Deno.open(path);
    const header = new Uint8Array(USER_VERSION_OFFSET + 4);
    const count = await file.read(header) ?? 0;
    if (count === 0) return "empty";
    const isVersioned = count < header.length || new DataView(header.buffer).getUint32(USER_VERSION_OFFSET) > 0;
    return isVersioned ? "used" : "empty";
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return "missing";
    throw fileError(`Can't open the database "${path}"`, cause);
  }
}

/** Reports whether a file has content, or a folder has entries. */
async function isFilled(path: string): Promise<boolean> {
  try {
    const { isDirectory, size } = await Deno.stat(path);
    if (!isDirectory) return size > 0;
    for await (const { name } of Deno.readDir(path)) if (!name.startsWith(".")) return true;
    return false;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw fileError(`Can't look for data in "${path}"`, cause);
  }
}
