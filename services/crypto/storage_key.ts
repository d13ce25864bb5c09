/** Finds or first makes the storage key. It judges the key file alone; whether the key fits is asked in key_check.ts. */

import { AppError, messageOf } from "../errors.ts";
import { randomBytes, randomToken } from "./random.ts";

/** Length of the storage key. */
export const STORAGE_KEY_BYTES = 32;

/** Name of the key file inside the data directory. */
export const STORAGE_KEY_FILE_NAME = "storage-key";

/** A key file is 64 hex digits and a line end at most; anything much longer is some other file. */
const MAX_KEY_FILE_BYTES = 1024;

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
  if (options.storageKeyFile !== undefined) {
    const path = options.storageKeyFile;
    const content = await readKeyFile(path);
    if (content === undefined) {
      throw new AppError("internal", `Cannot read the storage key from "${path}": there is no such file`);
    }
    return parseStorageKey(content, path);
  }
  const path = `${options.dataDir}/${STORAGE_KEY_FILE_NAME}`;
  if (!await isPrivateFile(path)) {
    if (options.sealedDataExists) {
      throw new AppError(
        "internal",
        `Cannot find the storage key "${path}", and "${options.dataDir}" holds data sealed by it: ` +
          "put the key file back, or set storage_key_file to where it lies",
      );
    }
    await createKeyFile(path);
  }
  const content = await readKeyFile(path);
  if (content === undefined) {
    throw new AppError("internal", `Cannot read the storage key from "${path}": the file went away`);
  }
  return parseStorageKey(content, path);
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

async function readKeyFile(path: string): Promise<Uint8Array | undefined> {
  try {
    using file = await Deno.open(path);
    const buffer = new Uint8Array(MAX_KEY_FILE_BYTES);
    let length = 0;
    while (length < buffer.byteLength) {
      const count = await file.read(buffer.subarray(length));
      if (count === null) break;
      length += count;
    }
    return buffer.subarray(0, length);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw new AppError("internal", `Cannot read the storage key from "${path}": ${messageOf(cause)}`, { cause });
  }
}

/** Says whether the key file is there; throws when it is something that must not be used. */
async function isPrivateFile(path: string): Promise<boolean> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw new AppError("internal", `Cannot read the storage key from "${path}": ${messageOf(cause)}`, { cause });
  }
  if (!info.isFile) {
    throw new AppError("internal", `Cannot use "${path}" as storage key: it is no regular file`);
  }
  if (Deno.build.os !== "windows" && info.mode !== null && (info.mode & 0o777) !== 0o600) {
    const mode = (info.mode & 0o777).toString(8).padStart(4, "0");
    throw new AppError(
      "internal",
      `Cannot use "${path}" as storage key: its mode is ${mode} and must be 0600, since others may have read it`,
    );
  }
  return true;
}

/** Makes the key under a temporary name and links it to its own, so that no start ever sees half a key. */
async function createKeyFile(path: string): Promise<void> {
  const temporary = `${path}.${randomToken(6)}.tmp`;
  try {
    await writeNewFile(temporary, randomBytes(STORAGE_KEY_BYTES));
    try {
      await Deno.link(temporary, path); // never replaces a key that another start made meanwhile
    } catch (cause) {
      if (cause instanceof Deno.errors.AlreadyExists) return;
      // A file system without hard links: the process lock keeps other starts away from this moment.
      await writeNewFile(path, await Deno.readFile(temporary));
    }
  } catch (cause) {
    throw new AppError("internal", `Cannot create the storage key "${path}": ${messageOf(cause)}`, { cause });
  } finally {
    await Deno.remove(temporary).catch(() => {});
  }
  await syncFolderOf(path);
}

async function writeNewFile(path: string, content: Uint8Array): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const count = await file.write(content);
  if (count !== content.byteLength) throw new Error(`only ${count} of ${content.byteLength} bytes could be written`);
  await file.sync();
}

async function syncFolderOf(path: string): Promise<void> {
  if (Deno.build.os === "windows") return; // a folder cannot be opened there
  using folder = await Deno.open(path.slice(0, path.lastIndexOf("/")) || "/");
  await folder.sync();
}
