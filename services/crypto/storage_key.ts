/** Finds or first makes the storage key. It judges the key file alone; whether the key fits is asked in key_check.ts. */

import { AppError } from "../errors.ts";
import { createKeyFile, isPrivateFile, KEY_BYTES, readKeyFile } from "./key_file.ts";

/** Length of the storage key. */
export const STORAGE_KEY_BYTES = KEY_BYTES;

/** Name of the key file inside the data directory. */
export const STORAGE_KEY_FILE_NAME = "storage-key";

/** What the file is called in errors. */
const WHAT = "storage key";

/** Where a storage key may lie. */
export interface StorageKeyOptions {
  dataDir: string;
  /** Key file outside the data directory; read only, never created, of any mode (a container's secret is open to all). */
  storageKeyFile?: string;
  /** True when the data directory holds anything sealed: then a missing key is an error, not a first start. */
  sealedDataExists: boolean;
}

/**
 * Reads the storage key, or makes it on the first start.
 *
 * A new key is made only in the data directory and only while nothing there is sealed.
 *
 * @returns 32 bytes.
 * @throws {AppError} `internal` when the key is missing beside sealed data, or its file is unreadable, open to others,
 *   no regular file, or no key.
 */
export async function loadStorageKey(options: StorageKeyOptions): Promise<Uint8Array> {
  const found = await findStorageKey(options);
  if (found !== undefined) return found;
  const path = `${options.dataDir}/${STORAGE_KEY_FILE_NAME}`;
  if (options.sealedDataExists) {
    throw new AppError(
      "internal",
      `Cannot find the storage key "${path}", and "${options.dataDir}" holds data sealed by it: ` +
        "put the key file back (parlor key import), or set storage_key_file to where it lies",
    );
  }
  await createKeyFile(path, WHAT);
  const made = await findStorageKey(options);
  if (made === undefined) {
    throw new AppError("internal", `Cannot read the storage key from "${path}": the file went away`);
  }
  return made;
}

/**
 * Reads the storage key and makes none.
 *
 * @returns 32 bytes, or `undefined` when the data directory has none and no other place is set.
 * @throws {AppError} `internal` as `loadStorageKey` does for a file that is no usable key.
 */
export async function findStorageKey(
  { dataDir, storageKeyFile }: Omit<StorageKeyOptions, "sealedDataExists">,
): Promise<Uint8Array | undefined> {
  const path = storageKeyFile ?? `${dataDir}/${STORAGE_KEY_FILE_NAME}`;
  if (storageKeyFile === undefined && !await isPrivateFile(path, WHAT)) return undefined;
  const content = await readKeyFile(path, WHAT);
  if (content !== undefined) return parseStorageKey(content, path);
  throw new AppError("internal", `Cannot read the storage key from "${path}": there is no such file`);
}

/**
 * Reads the three spellings of a key: 32 raw bytes, 64 hex digits, or base64 (either alphabet); a text may end in white space.
 *
 * @param path Named in the error only.
 * @throws {AppError} `internal` when it is none of them, or a key of zeros.
 */
export function parseStorageKey(content: Uint8Array, path: string): Uint8Array {
  const key = content.byteLength === STORAGE_KEY_BYTES ? new Uint8Array(content) : parseKeyText(content);
  if (key === undefined) {
    throw new AppError(
      "internal",
      `Cannot use "${path}" as storage key: it has ${content.byteLength} bytes, ` +
        "and a key is 32 raw bytes, 64 hex digits or 44 characters of base64",
    );
  }
  if (key.every((byte) => byte === 0)) {
    throw new AppError("internal", `Cannot use "${path}" as storage key: it is all zeros`);
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
