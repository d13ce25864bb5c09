/**
 * Finds the storage key, or creates it on the first start. `verifyStorageKey` checks that it belongs to the data. Files
 * with a secret key are private (0600), created atomically and never overwritten.
 *
 * Also creates and checks proofs, with which a command on the server's machine shows that it can read the data folder:
 * statements signed with the session key. Anyone who can read that key could sign a session, so a proof grants no
 * additional access. It works like the loopback bypass, even if the bypass is off.
 */
import { AppError, getErrorMessage } from "../errors.ts";
import type { Aad, Sealer } from "./sealer.ts";
import { nodeCrypto, randomBytes, randomToken } from "./random.ts";
import { Buffer } from "node:buffer";

/** Length of a key. */
export const KEY_BYTES = 32;

/** Name of the key file in the data directory. */
export const STORAGE_KEY_FILE_NAME = "storage-key";

/** Name of the key in error messages. */
const WHAT = "storage key";

/** Where the storage key can be. */
interface StorageKeyOptions {
  dataDir: string;
  /**
   * Key file outside the data directory. It is never created and can have any mode, because container secrets are
   * readable by everyone.
   */
  storageKeyFile?: string;
  /** True if the data directory has sealed data. Then a missing key is an error instead of a first start. */
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
      `Can't find the storage key "${path}", but "${options.dataDir}" has data encrypted with it. ` +
        "Restore the key file (parlor key import), or set storage_key_file to its path",
    );
  }
  await createKeyFile(path, WHAT);
  const key = await findStorageKey(options);
  if (key === undefined) {
    throw new AppError("internal", `Can't read the storage key from "${path}": the file disappeared`);
  }
  return key;
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
  throw new AppError("internal", `Can't read the storage key from "${path}": the file doesn't exist`);
}

/**
 * Parses a key: 32 raw bytes, 64 hex digits, or base64 (either alphabet). Text may end with white space.
 *
 * @param path Path for the error message.
 * @throws {AppError} `internal` for other content or an all-zero key.
 */
export function parseStorageKey(content: Uint8Array, path: string): Uint8Array {
  const key = content.byteLength === KEY_BYTES ? new Uint8Array(content) : parseKeyText(content);
  if (key === undefined) {
    throw new AppError(
      "internal",
      `Can't use "${path}" as storage key: it has ${content.byteLength} bytes, ` +
        "but a key has 32 raw bytes, 64 hex digits or 44 characters of base64",
    );
  }
  if (key.every((byte) => byte === 0)) {
    throw new AppError("internal", `Can't use "${path}" as storage key: all bytes are zero`);
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
const AAD: Aad = { table: "setting", id: "storage_key_check", field: "sealed", version: 1 };
const KNOWN_TEXT = "parlor";

/** The database operations that the check needs. */
interface KeyCheckStore {
  get<T>(sql: string, ...params: string[]): T | undefined;
  write(statements: { sql: string; params: (string | number | Uint8Array)[] }[]): Promise<unknown>;
}

/**
 * Verifies that the data was sealed with this storage key. A new data directory records the key.
 *
 * The check is a known text, encrypted in a row of the table `setting`.
 *
 * @throws {AppError} `internal` if the data was sealed with another key, or the check was modified.
 */
export async function verifyStorageKey(sealer: Sealer, store: KeyCheckStore): Promise<void> {
  const purpose = sealer.forPurpose(PURPOSE);
  const row = store.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", AAD.id);
  if (row === undefined) {
    await store.write([{
      sql: "INSERT INTO setting(key, version, sealed) VALUES(?, ?, ?)",
      params: [AAD.id, AAD.version, await purpose.seal(AAD, KNOWN_TEXT)],
    }]);
    return;
  }
  try {
    await purpose.open(AAD, row.sealed);
  } catch (cause) {
    throw new AppError(
      "internal",
      "Wrong storage key: the data was encrypted with another key. Restore the matching key file",
      { cause },
    );
  }
}

/** A key file has at most 64 hex digits and a line break. A much longer file is something else. */
const MAX_KEY_FILE_BYTES = 1024;

/**
 * Reads a key file, at most 1 KiB.
 *
 * @param what Name of the key in error messages: `"storage key"`.
 * @returns `undefined` if the file doesn't exist.
 * @throws {AppError} `internal` if the file can't be read.
 */
export async function readKeyFile(path: string, what: string): Promise<Uint8Array | undefined> {
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
    throw new AppError("internal", `Can't read the ${what} from "${path}": ${getErrorMessage(cause)}`, { cause });
  }
}

/**
 * Reports whether a key file exists.
 *
 * @throws {AppError} `internal` if it isn't a regular file, or if other users can read it.
 */
export async function isPrivateFile(path: string, what: string): Promise<boolean> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw new AppError("internal", `Can't read the ${what} from "${path}": ${getErrorMessage(cause)}`, { cause });
  }
  if (!info.isFile) {
    throw new AppError("internal", `Can't use "${path}" as ${what}: it isn't a regular file`);
  }
  if (Deno.build.os !== "windows" && info.mode !== null && (info.mode & 0o777) !== 0o600) {
    const mode = (info.mode & 0o777).toString(8).padStart(4, "0");
    throw new AppError(
      "internal",
      `Can't use "${path}" as ${what}: other users could have read it, because its mode is ${mode} instead of 0600`,
    );
  }
  return true;
}

/**
 * Creates a key file atomically: writes a temporary file and hard-links it to the final name. If another process
 * created the file first, that file stays.
 *
 * @throws {AppError} `internal`
 */
export async function createKeyFile(path: string, what: string): Promise<void> {
  const temporary = `${path}.${randomToken(6)}.tmp`;
  try {
    await writeNewFile(temporary, randomBytes(KEY_BYTES));
    try {
      await Deno.link(temporary, path); // Never replaces a key that another process created first.
    } catch (cause) {
      if (cause instanceof Deno.errors.AlreadyExists) return;
      // The file system has no hard links. The lock on the data folder prevents a concurrent start.
      await writeNewFile(path, await Deno.readFile(temporary));
    }
  } catch (cause) {
    throw new AppError("internal", `Can't create the ${what} "${path}": ${getErrorMessage(cause)}`, { cause });
  } finally {
    await Deno.remove(temporary).catch(() => {});
  }
  await syncFolderOf(path);
}

async function writeNewFile(path: string, content: Uint8Array): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const count = await file.write(content);
  if (count !== content.byteLength) throw new Error(`wrote only ${count} of ${content.byteLength} bytes`);
  await file.sync();
}

async function syncFolderOf(path: string): Promise<void> {
  if (Deno.build.os === "windows") return; // Windows can't open folders.
  using folder = await Deno.open(path.slice(0, path.lastIndexOf("/")) || "/");
  await folder.sync();
}

const PREFIX = "parlor-operator.";
/** Long enough for a slow machine, and too short to be useful if it leaks into a shell history. */
const VALID_MS = 60_000;

/** Creates a proof, sent as `Authorization: Bearer`. */
export function createOperatorProof(sessionKey: Uint8Array, nowMs: number): string {
  const signed = `${PREFIX}${nowMs}`;
  return `${signed}.${computeMac(sessionKey, signed)}`;
}

/** Reports whether a bearer token is a proof signed with this key within the last minute. */
export function isOperatorProof(token: string, sessionKey: Uint8Array, nowMs: number): boolean {
  if (!token.startsWith(PREFIX) || token.length > 200) return false;
  const end = token.lastIndexOf(".");
  const signed = token.slice(0, end);
  const actual = Buffer.from(token.slice(end + 1));
  const expected = Buffer.from(computeMac(sessionKey, signed));
  if (actual.byteLength !== expected.byteLength || !nodeCrypto().timingSafeEqual(actual, expected)) return false;
  return Math.abs(nowMs - Number(signed.slice(PREFIX.length))) <= VALID_MS;
}

function computeMac(key: Uint8Array, signed: string): string {
  return nodeCrypto().createHmac("sha256", key).update(signed).digest("base64url");
}
