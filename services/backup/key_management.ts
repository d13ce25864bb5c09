/** Export, import and rotation of the storage key. */
import { join } from "node:path";
import {
  findStorageKey,
  KEY_BYTES,
  parseStorageKey,
  STORAGE_KEY_FILE_NAME,
  verifyStorageKey,
} from "../crypto/storage_key.ts";
import { openWithPassphrase, type PassphraseSeal, sealWithPassphrase } from "../crypto/passphrase.ts";
import { createSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { pathExists, syncFolder, toFileError, writeFileAtomic } from "../storage/atomic_file.ts";
import { openDataDir } from "../storage/data_dir.ts";
import { openDatabase, openReader } from "../storage/database/database.ts";
import { DATABASE_NAME } from "./backed_up_names.ts";
import { DatabaseSync } from "node:sqlite";
import { randomBytes } from "../crypto/random.ts";
import { finishIncoming, openIncoming, type StepWatch } from "../storage/file_swap.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { upgradeSchema } from "../storage/database/schema.ts";
import { refuseUnknownFiles, resealFiles } from "./reseal_files.ts";
import { resealRows } from "./reseal_rows.ts";

interface ExportedKey {
  kind: "parlor storage key";
  created_at: string;
  key: PassphraseSeal;
}

/** Returns the text of an exported key: JSON sealed with a passphrase, or 64 hex digits without one. */
export async function createKeyExport(
  { key, passphrase, nowMs }: { key: Uint8Array; passphrase?: string; nowMs: number },
): Promise<string> {
  if (passphrase === undefined) return `${Array.from(key, (byte) => byte.toString(16).padStart(2, "0")).join("")}\n`;
  const exported: ExportedKey = {
    kind: "parlor storage key",
    created_at: new Date(nowMs).toISOString(),
    key: await sealWithPassphrase(passphrase, key),
  };
  return `${JSON.stringify(exported, null, 2)}\n`;
}

/**
 * Reads an exported key, or a key file in any encoding.
 *
 * @throws {AppError} `invalid_request` for a wrong passphrase or an unreadable file, `internal` if it isn't a key.
 */
export async function readExportedKey(path: string, passphrase: () => Promise<string>): Promise<Uint8Array> {
  const content = await Deno.readFile(path).catch((cause) => {
    throw new AppError("invalid_request", `Can't read the key from "${path}": ${getErrorMessage(cause)}`, { cause });
  });
  const exported = parseExported(content);
  return exported === undefined
    ? parseStorageKey(content, path)
    : await openWithPassphrase(await passphrase(), exported.key);
}

/**
 * Adds a key to a data directory that has none.
 *
 * @returns False if the same key was there already.
 * @throws {AppError} `conflict` if another key is there, a server is running, or the data was sealed with another key.
 */
export async function importKey(path: string, key: Uint8Array): Promise<boolean> {
  const dataDir = await openDataDir(path);
  try {
    const present = await findStorageKey({ dataDir: dataDir.path });
    if (present?.every((byte, index) => byte === key[index])) return false;
    if (present !== undefined) {
      throw new AppError("conflict", `Can't import the key: "${dataDir.path}" already has a different one`);
    }
    await refuseForeign(dataDir.file(DATABASE_NAME), key);
    await writeFileAtomic(join(dataDir.path, STORAGE_KEY_FILE_NAME), key);
    return true;
  } finally {
    dataDir.close();
  }
}

async function refuseForeign(database: string, key: Uint8Array): Promise<void> {
  if (!await pathExists(database)) return;
  const reader = openReader(database);
  try {
    await verifyStorageKey(createSealer(key), { get: reader.get, write: () => Promise.resolve() });
  } catch (cause) {
    throw new AppError("conflict", `Can't import the key: the data was sealed with another key`, { cause });
  } finally {
    reader.close();
  }
}

function parseExported(content: Uint8Array): ExportedKey | undefined {
  try {
    const value = JSON.parse(new TextDecoder().decode(content));
    return value?.kind === "parlor storage key" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What to rotate. */
interface RotationRequest {
  dataDir: string;
  storageKeyFile?: string;
  /** Where to write the new key if `storageKeyFile` is outside the data directory; never overwritten. */
  newKeyFile?: string;
  /** Continues if some values can't be decrypted with the current key; they're lost. */
  keepUnreadable: boolean;
  /** Called at each step. Tests use it to interrupt the rotation. */
  watch?: StepWatch;
}

/** The result. */
interface RotationReport {
  resealed: number;
  unreadable: number;
}

/**
 * Rotates the storage key: seals all data again next to the old data, then replaces it in one step. If killed at any
 * moment, everything is under the old key or, once it was ready, under the new key, which the next start or rotation
 * completes.
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
        ? "Bad value for --new-key-file: the key is in the data folder and stays there. Omit the option"
        : `Can't rotate the key: it's in "${storageKeyFile}", which Parlor doesn't write to. Use --new-key-file FILE for the new key`,
    );
  }
  const dataDir = await openDataDir(request.dataDir);
  try {
    await finishIncoming(dataDir.path, watch);
    const oldKey = await findStorageKey({ dataDir: dataDir.path, storageKeyFile });
    if (oldKey === undefined) {
      throw new AppError("not_found", `Can't rotate the key: "${dataDir.path}" has no storage key`);
    }
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
        `Can't rotate the key: ${report.unreadable.length} values can't be decrypted with the current key, such as ` +
          `${report.unreadable.slice(0, 3).join(", ")}. Use --keep-unreadable to continue without them`,
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
  if (!await pathExists(path)) throw new AppError("not_found", `The database "${path}" is missing`);
  const database = await openDatabase({ path });
  try {
    await verifyStorageKey(createSealer(key), database);
  } finally {
    await database.close();
  }
}

async function resealAll(dataDir: string, folder: string, oldKey: Uint8Array, newKey: Uint8Array) {
  const [from, to] = [createSealer(oldKey), createSealer(newKey)];
  const path = join(folder, DATABASE_NAME);
  await upgradeSchema(path, MIGRATIONS);
  using source = new DatabaseSync(join(dataDir, DATABASE_NAME), { readOnly: true });
  using target = new DatabaseSync(path);
  target.exec("PRAGMA journal_mode = DELETE"); // A log would have to move with the database.
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
    throw toFileError(`Can't write the new storage key to "${path}"`, cause);
  }
}
