/**
 * Finds the storage key, or creates it on the first start. `settleKeyCheck` verifies that the key belongs to the data.
 */
import { AppError } from "../errors.ts";
import { createKeyFile, isPrivateFile, KEY_BYTES, readKeyFile } from "./key_file.ts";
import type { Aad, Sealer } from "./sealer.ts";

/** Length of the storage key. */
export const STORAGE_KEY_BYTES = KEY_BYTES;

/** Name of the key file in the data directory. */
export const STORAGE_KEY_FILE_NAME = "storage-key";

/** Name of the key in errors. */
const WHAT = "storage key";

/** Where the storage key can be. */
export interface StorageKeyOptions {
  dataDir: string;
  /**
   * Key file outside the data directory. It is never created and can have any mode, because container secrets are
   * readable by everyone.
   */
  storageKeyFile?: string;
  /** True if the data directory has sealed data. A missing key is an error then, not a first start. */
  sealedDataExists: boolean;
}

/**
 * Reads the storage key, or creates it on the first start.
 *
 * Creates a key only in the data directory, and only if nothing there is sealed.
 *
 * @returns 32 bytes.
 * @throws {AppError} `internal` if sealed data exists without its key, or if the key file is unreadable, readable by
 *   other users, not a regular file, or not a key.
 */
export async function loadStorageKey(options: StorageKeyOptions): Promise<Uint8Array> {
  const found = await findStorageKey(options);
  if (found !== undefined) return found;
  const path = `${options.dataDir}/${STORAGE_KEY_FILE_NAME}`;
  if (options.sealedDataExists) {
    throw new AppError(
      "internal",
      `Can't find the storage key "${path}", but "${options.dataDir}" has data sealed with it: ` +
        "restore the key file (parlor key import), or set storage_key_file to its path",
    );
  }
  await createKeyFile(path, WHAT);
  const made = await findStorageKey(options);
  if (made === undefined) {
    throw new AppError("internal", `Can't read the storage key from "${path}": the file disappeared`);
  }
  return made;
}

/**
 * Reads the storage key without creating one.
 *
 * @returns 32 bytes, or `undefined` if the data directory has none and no other file is configured.
 * @throws {AppError} `internal`, as `loadStorageKey`, if the file is not a usable key.
 */
export async function findStorageKey(
  { dataDir, storageKeyFile }: Omit<StorageKeyOptions, "sealedDataExists">,
): Promise<Uint8Array | undefined> {
  const path = storageKeyFile ?? `${dataDir}/${STORAGE_KEY_FILE_NAME}`;
  if (storageKeyFile === undefined && !await isPrivateFile(path, WHAT)) return undefined;
  const content = await readKeyFile(path, WHAT);
  if (content !== undefined) return parseStorageKey(content, path);
  throw new AppError("internal", `Can't read the storage key from "${path}": no such file`);
}

/**
 * Parses a key: 32 raw bytes, 64 hex digits, or base64 (either alphabet). Text may end with white space.
 *
 * @param path For the error message.
 * @throws {AppError} `internal` for other content or an all-zero key.
 */
export function parseStorageKey(content: Uint8Array, path: string): Uint8Array {
  const key = content.byteLength === STORAGE_KEY_BYTES ? new Uint8Array(content) : parseKeyText(content);
  if (key === undefined) {
    throw new AppError(
      "internal",
      `Can't use "${path}" as storage key: it has ${content.byteLength} bytes, ` +
        "and a key is 32 raw bytes, 64 hex digits or 44 characters of base64",
    );
  }
  if (key.every((byte) => byte === 0)) {
    throw new AppError("internal", `Can't use "${path}" as storage key: it is all zeros`);
  }
  return key;
}

function parseKeyText(content: Uint8Array): Uint8Array | undefined {
  const text = new TextDecoder("latin1").decode(content).trim();
  if (/^[0-9a-f]{64}$/i.test(text)) {
    return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  }
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) {
    const standard = text.replaceAll("-", "+").replaceAll("_", "/");
    return Uint8Array.from(atob(standard.slice(0, 43)), (char) => char.charCodeAt(0));
  }
  return undefined;
}

const PURPOSE = "key-check";
const PLACE: Aad = { table: "setting", id: "storage_key_check", field: "sealed", version: 1 };
const KNOWN_TEXT = "parlor";

/** The database operations that the check needs. */
interface KeyCheckStore {
  get<T>(sql: string, ...params: string[]): T | undefined;
  write(statements: { sql: string; params: (string | number | Uint8Array)[] }[]): Promise<unknown>;
}

/**
 * Verifies that the data was sealed with this storage key. A new data directory records the key.
 *
 * The check is a known text, sealed in a row of the table `setting`.
 *
 * @throws {AppError} `internal` if the data was sealed with another key, or the check was modified.
 */
export async function settleKeyCheck(sealer: Sealer, store: KeyCheckStore): Promise<void> {
  const purpose = sealer.forPurpose(PURPOSE);
  const row = store.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", PLACE.id);
  if (row === undefined) {
    await store.write([{
      sql: "INSERT INTO setting(key, version, sealed) VALUES(?, ?, ?)",
      params: [PLACE.id, PLACE.version, await purpose.seal(PLACE, KNOWN_TEXT)],
    }]);
    return;
  }
  try {
    await purpose.open(PLACE, row.sealed);
  } catch (cause) {
    throw new AppError(
      "internal",
      "Wrong storage key: the data directory was sealed with another key. Restore the matching key file",
      { cause },
    );
  }
}
