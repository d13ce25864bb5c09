/** Rotates the storage key: seals all data again next to the old data, then replaces it in one step. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { findStorageKey, KEY_BYTES, settleKeyCheck, STORAGE_KEY_FILE_NAME } from "../crypto/storage_key.ts";
import { randomBytes } from "../crypto/random.ts";
import { createSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { fileError, fileExists, syncFolder } from "../storage/atomic_file.ts";
import { openDataDir } from "../storage/data_dir.ts";
import { openDatabase } from "../storage/database/database.ts";
import { finishIncoming, openIncoming, type StepWatch } from "../storage/file_swap.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { settleSchema } from "../storage/database/schema.ts";
import { DATABASE_NAME } from "./data_files.ts";
import { refuseUnknownFiles, resealFiles } from "./reseal_files.ts";
import { resealRows } from "./reseal_rows.ts";

/** What to rotate. */
export interface RotationRequest {
  dataDir: string;
  storageKeyFile?: string;
  /** Where to write the new key if `storageKeyFile` is outside the data directory; never overwritten. */
  newKeyFile?: string;
  /** Continues if single values can't be opened with the current key; they stay lost. */
  keepUnreadable: boolean;
  /** Called at each step; tests stop there. */
  watch?: StepWatch;
}

/** The result. */
export interface RotationReport {
  resealed: number;
  unreadable: number;
}

/**
 * Rotates the storage key. If killed at any moment, everything is under the old key or, once it was ready, under the
 * new key, which the next start or rotation completes.
 *
 * @throws {AppError} `conflict` if a server is running or a value can't be sealed again, `not_found` if there is no
 *   key, `invalid_request` if the path for the new key is missing, `storage_full`, `internal`.
 */
export async function rotateKey(request: RotationRequest): Promise<RotationReport> {
  const { storageKeyFile, newKeyFile, keepUnreadable, watch = () => {} } = request;
  if ((storageKeyFile === undefined) !== (newKeyFile === undefined)) {
    throw new AppError(
      "invalid_request",
      storageKeyFile === undefined
        ? "Bad value for --new-key-file: the key is in the data folder and stays there; leave the option out"
        : `The storage key is in "${storageKeyFile}", which Parlor doesn't write: use --new-key-file FILE for the new one`,
    );
  }
  const dataDir = await openDataDir(request.dataDir);
  try {
    await finishIncoming(dataDir.path, watch);
    const oldKey = await findStorageKey({ dataDir: dataDir.path, storageKeyFile });
    if (oldKey === undefined) throw new AppError("not_found", `"${dataDir.path}" has no storage key to rotate`);
    await refuseUnknownFiles(dataDir.path);
    await settleDatabase(dataDir.file(DATABASE_NAME), oldKey);
    watch("checked");

    const newKey = randomBytes(KEY_BYTES);
    const incoming = await openIncoming(dataDir.path, watch);
    const report = await resealAll(dataDir.path, incoming.folder, oldKey, newKey);
    watch("resealed");
    if (report.unreadable.length > 0 && !keepUnreadable) {
      throw new AppError(
        "conflict",
        `Can't rotate the key: ${report.unreadable.length} values can't be opened with the current key, such as ` +
          `${report.unreadable.slice(0, 3).join(", ")}; --keep-unreadable goes on without them`,
      );
    }
    await writeKey(newKeyFile ?? join(incoming.folder, STORAGE_KEY_FILE_NAME), newKey);
    watch("key written");
    const names = (await Array.fromAsync(Deno.readDir(dataDir.path))).map(({ name }) => name);
    // SQLite would apply the old log to the new database; copies from before upgrades need the old key.
    await incoming.commit(
      names.filter((name) => name.startsWith(`${DATABASE_NAME}-`) || name.startsWith(`${DATABASE_NAME}.`)),
    );
    return { resealed: report.resealed, unreadable: report.unreadable.length };
  } finally {
    dataDir.close();
  }
}

/** Upgrades the schema, so that every sealed value is known, and verifies the key. */
async function settleDatabase(path: string, key: Uint8Array): Promise<void> {
  if (!await fileExists(path)) throw new AppError("not_found", `There is no database "${path}"`);
  const database = await openDatabase({ path });
  try {
    await settleKeyCheck(createSealer(key), database);
  } finally {
    await database.close();
  }
}

async function resealAll(dataDir: string, folder: string, oldKey: Uint8Array, newKey: Uint8Array) {
  const [from, to] = [createSealer(oldKey), createSealer(newKey)];
  const path = join(folder, DATABASE_NAME);
  await settleSchema(path, MIGRATIONS);
  using source = new DatabaseSync(join(dataDir, DATABASE_NAME), { readOnly: true });
  using target = new DatabaseSync(path);
  target.exec("PRAGMA journal_mode = DELETE"); // a log would have to move with the database
  const { resealed, unreadable } = resealRows(source, target, from, to);
  const lost = await resealFiles({ dataDir, folder, from, to }, target);
  return { resealed, unreadable: [...unreadable, ...lost] };
}

async function writeKey(path: string, key: Uint8Array): Promise<void> {
  try {
    using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    await file.write(key);
    await file.sync();
    await syncFolder(join(path, ".."));
  } catch (cause) {
    throw fileError(`Can't write the new storage key to "${path}"`, cause);
  }
}
