/** Gives the data a new storage key: everything sealed is sealed anew beside the old, then takes its place as one step. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { settleKeyCheck } from "../crypto/key_check.ts";
import { randomBytes } from "../crypto/random.ts";
import { createSealer } from "../crypto/sealer.ts";
import { findStorageKey, STORAGE_KEY_BYTES, STORAGE_KEY_FILE_NAME } from "../crypto/storage_key.ts";
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

/** What is to be rotated. */
export interface RotationRequest {
  dataDir: string;
  storageKeyFile?: string;
  /** Where the new key goes when `storageKeyFile` says that it lies outside; made, never overwritten. */
  newKeyFile?: string;
  /** Goes on where single values cannot be opened with the present key; they stay lost. */
  keepUnreadable: boolean;
  /** A look at each step, for tests that end there. */
  watch?: StepWatch;
}

/** What was done. */
export interface RotationReport {
  resealed: number;
  unreadable: number;
}

/**
 * Rotates the storage key. A kill at any moment leaves everything under the old key or, once it was ready, under the new
 * one, which the next start or rotation carries through.
 *
 * @throws {AppError} `conflict` when a server runs on the directory or something there cannot be sealed anew, `not_found`
 *   when there is no key, `invalid_request` when the new key's place is missing, `storage_full`, `internal`
 */
export async function rotateKey(request: RotationRequest): Promise<RotationReport> {
  const { storageKeyFile, newKeyFile, keepUnreadable, watch = () => {} } = request;
  if ((storageKeyFile === undefined) !== (newKeyFile === undefined)) {
    throw new AppError(
      "invalid_request",
      storageKeyFile === undefined
        ? "Bad value for --new-key-file: the key lies in the data folder and stays there; leave it out"
        : `The storage key lies in "${storageKeyFile}", which Parlor does not write: give --new-key-file FILE for the new one`,
    );
  }
  const dataDir = await openDataDir(request.dataDir);
  try {
    await finishIncoming(dataDir.path, watch);
    const oldKey = await findStorageKey({ dataDir: dataDir.path, storageKeyFile });
    if (oldKey === undefined) throw new AppError("not_found", `There is no storage key in "${dataDir.path}" to rotate`);
    await refuseUnknownFiles(dataDir.path);
    await settleDatabase(dataDir.file(DATABASE_NAME), oldKey);
    watch("checked");

    const newKey = randomBytes(STORAGE_KEY_BYTES);
    const incoming = await openIncoming(dataDir.path, watch);
    const report = await resealAll(dataDir.path, incoming.folder, oldKey, newKey);
    watch("resealed");
    if (report.unreadable.length > 0 && !keepUnreadable) {
      throw new AppError(
        "conflict",
        `Cannot rotate the key: ${report.unreadable.length} values cannot be opened with the present one, such as ` +
          `${report.unreadable.slice(0, 3).join(", ")}; --keep-unreadable goes on without them`,
      );
    }
    await writeKey(newKeyFile ?? join(incoming.folder, STORAGE_KEY_FILE_NAME), newKey);
    watch("key written");
    const names = (await Array.fromAsync(Deno.readDir(dataDir.path))).map(({ name }) => name);
    // The log of the old database would be taken for one of the new; copies from before upgrades have the old key.
    await incoming.commit(
      names.filter((name) => name.startsWith(`${DATABASE_NAME}-`) || name.startsWith(`${DATABASE_NAME}.`)),
    );
    return { resealed: report.resealed, unreadable: report.unreadable.length };
  } finally {
    dataDir.close();
  }
}

/** Brings the schema up to date, so that all that is sealed is known, and looks that the key is the right one. */
async function settleDatabase(path: string, key: Uint8Array): Promise<void> {
  if (!await fileExists(path)) throw new AppError("not_found", `There is no database "${path}" to rotate the key of`);
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
  target.exec("PRAGMA journal_mode = DELETE"); // a log beside it would have to move with it
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
    throw fileError(`Cannot write the new storage key to "${path}"`, cause);
  }
}
