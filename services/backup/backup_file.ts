/** Format of a backup file: a line of JSON that describes it and how it is sealed, then a sealed archive of files. */
import { createHash } from "node:crypto";
import { isPassphraseSeal, openWithPassphrase, type PassphraseSeal, sealWithPassphrase } from "../crypto/passphrase.ts";
import { randomBytes } from "../crypto/random.ts";
import { bytesOfFile, openPieces, sealPieces } from "../crypto/sealed_pieces.ts";
import { type Aad, createSealer, type PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { isJsonObject } from "../json/type_guards.ts";

/** The unencrypted header of a backup. */
export interface BackupHead {
  format: 1;
  /** Version of the program that created it. */
  version: string;
  created_at: string;
  /** The key that opens it: its own, sealed with a passphrase, or the storage key of its data. */
  key: PassphraseSeal | "storage_key";
}

/** Keys to open a backup. */
export interface BackupKeys {
  /** Called only if the backup needs it. */
  getPassphrase?(): Promise<string>;
  /** Returns the storage key, or `undefined` if there is none. */
  getStorageKey?(): Promise<Uint8Array | undefined>;
}

/** A backup opened for reading. */
export interface OpenBackup extends Disposable {
  readonly head: BackupHead;
  /** Its files in order; can be read once. */
  readonly entries: AsyncIterable<ArchiveEntry>;
}

const MAGIC = "parlor backup ";
/** The header has about 300 bytes. */
const MAX_HEAD_BYTES = 4096;
const PURPOSE = "backup";

/** Writes a backup as a stream of bytes, for an atomic write. */
export async function* streamBackup(
  about: { version: string; nowMs: number },
  key: { passphrase: string } | { storageKey: Uint8Array },
  entries: AsyncIterable<ArchiveEntry>,
): AsyncGenerator<Uint8Array> {
  const isOwnKey = "passphrase" in key;
  const archiveKey = isOwnKey ? randomBytes(32) : key.storageKey;
  const head: BackupHead = {
    format: 1,
    version: about.version,
    created_at: new Date(about.nowMs).toISOString(),
    key: isOwnKey ? await sealWithPassphrase(key.passphrase, archiveKey) : "storage_key",
  };
  const line = `${MAGIC}${JSON.stringify(head)}\n`;
  yield new TextEncoder().encode(line);
  yield* sealPieces(createPieceSealer(archiveKey), toAad(line), writeArchive(entries));
}

/**
 * Opens a backup.
 *
 * @throws {AppError} `unprocessable` if it isn't a backup or a newer program created it; `invalid_request` for a wrong
 *   passphrase or a missing key. Reading its entries throws `internal` or `unprocessable` if it was modified or
 *   truncated.
 */
export async function openBackup(path: string, keys: BackupKeys): Promise<OpenBackup> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path);
  } catch (cause) {
    throw new AppError("invalid_request", `Can't read the backup "${path}": ${getErrorMessage(cause)}`, { cause });
  }
  try {
    const { line, head } = await readHead(file, path);
    const sealer = createPieceSealer(await deriveKey(head, keys, path));
    const begin = new TextEncoder().encode(line).byteLength;
    const { size } = await file.stat();
    await file.seek(begin, Deno.SeekMode.Start);
    const archive = openPieces(sealer, toAad(line), bytesOfFile(file, size - begin, path));
    return { head, entries: readArchive(archive), [Symbol.dispose]: () => file.close() };
  } catch (error) {
    file.close();
    throw error;
  }
}

async function readHead(file: Deno.FsFile, path: string): Promise<{ line: string; head: BackupHead }> {
  const { size } = await file.stat();
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of bytesOfFile(file, Math.min(size, MAX_HEAD_BYTES), path)) {
    text += decoder.decode(part, { stream: true });
  }
  const [, line, json] = /^(parlor backup (\{.*\})\n)/.exec(text) ?? [];
  if (line === undefined) throw new AppError("unprocessable", `Can't read "${path}": it isn't a Parlor backup`);
  const createDamagedError = () =>
    new AppError("unprocessable", `Can't read the backup "${path}": its header is damaged`);
  let head: unknown;
  try {
    head = JSON.parse(json!);
  } catch {
    throw createDamagedError();
  }
  if (isJsonObject(head) && typeof head.format === "number" && head.format > 1 && typeof head.version === "string") {
    throw new AppError(
      "unprocessable",
      `Can't read "${path}": it was created by a newer Parlor (${head.version}). Use that version`,
    );
  }
  if (!isBackupHead(head)) throw createDamagedError();
  return { line, head };
}

function isBackupHead(head: unknown): head is BackupHead {
  return isJsonObject(head) && head.format === 1 && typeof head.version === "string" &&
    typeof head.created_at === "string" && (head.key === "storage_key" || isPassphraseSeal(head.key));
}

async function deriveKey({ key }: BackupHead, keys: BackupKeys, path: string): Promise<Uint8Array> {
  if (key !== "storage_key") {
    if (keys.getPassphrase === undefined) {
      throw new AppError("invalid_request", `Can't open "${path}": its passphrase is required`);
    }
    return await openWithPassphrase(await keys.getPassphrase(), key);
  }
  const storageKey = await keys.getStorageKey?.();
  if (storageKey !== undefined) return storageKey;
  throw new AppError(
    "invalid_request",
    `Can't open "${path}": it was encrypted with the storage key of the original data. Import that key into the data ` +
      "folder (parlor key import), or pass it with --storage-key-file",
  );
}

function createPieceSealer(key: Uint8Array): PurposeSealer {
  return createSealer(key).forPurpose(PURPOSE);
}

/** The header is authenticated with the archive. */
function toAad(line: string): Aad {
  return { table: "backup", id: createHash("sha256").update(line).digest("hex"), field: "archive", version: 1 };
}

/** A file of an archive. */
export interface ArchiveEntry {
  /** Relative, with slashes: `"characters/Ann.png"`. */
  path: string;
  sizeBytes: number;
  /** Time of the last modification, in milliseconds since 1970, if it matters. */
  mtimeMs?: number;
  /** Exactly `sizeBytes` bytes. */
  content: AsyncIterable<Uint8Array>;
}

type Head = { path: string; size: number; mtime?: number } | { end: true; entries: number };

const LENGTH_BYTES = 4;
/** A header is a path of at most 4 kB and a number. */
const MAX_ENTRY_HEAD_BYTES = 64 * 1024;
const encoder = new TextEncoder();

/**
 * Writes files one after another as one stream: for each a header, then its bytes; the last header has the number of
 * files.
 *
 * @throws {AppError} `internal` if a file doesn't have its declared size.
 */
async function* writeArchive(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const { path, sizeBytes, mtimeMs, content } of entries) {
    yield encodeHead({ path, size: sizeBytes, mtime: mtimeMs });
    let written = 0;
    for await (const chunk of content) {
      written += chunk.byteLength;
      yield chunk;
    }
    if (written !== sizeBytes) {
      throw new AppError(
        "internal",
        `Can't archive "${path}": it has ${written} bytes instead of ${sizeBytes}`,
      );
    }
    count++;
  }
  yield encodeHead({ end: true, entries: count });
}

/**
 * Reads an archive. Read or skip the content of each file before the next.
 *
 * @throws {AppError} `unprocessable` if it isn't an archive or is incomplete.
 */
async function* readArchive(source: AsyncIterable<Uint8Array>): AsyncGenerator<ArchiveEntry> {
  const bytes = new ByteSource(source);
  for (let count = 0;; count++) {
    const head = await readEntryHead(bytes);
    if ("end" in head) {
      if (head.entries !== count || !await bytes.isAtEnd()) throw createDamagedError("the last entry is wrong");
      return;
    }
    const content = bytes.take(head.size);
    yield { path: head.path, sizeBytes: head.size, mtimeMs: head.mtime, content };
    for await (const _ of content); // Skip what wasn't read.
  }
}

function encodeHead(head: Head): Uint8Array {
  const text = encoder.encode(JSON.stringify(head));
  const bytes = new Uint8Array(LENGTH_BYTES + text.byteLength);
  new DataView(bytes.buffer).setUint32(0, text.byteLength);
  bytes.set(text, LENGTH_BYTES);
  return bytes;
}

async function readEntryHead(bytes: ByteSource): Promise<Head> {
  const length = await bytes.readExactly(LENGTH_BYTES);
  const size = new DataView(length.buffer, length.byteOffset).getUint32(0);
  if (size > MAX_ENTRY_HEAD_BYTES) throw createDamagedError("the header of a file is too long");
  const head = JSON.parse(new TextDecoder().decode(await bytes.readExactly(size)));
  const isFile = typeof head.path === "string" && Number.isSafeInteger(head.size) && head.size >= 0 &&
    (head.mtime === undefined || Number.isSafeInteger(head.mtime));
  if (!isFile && !(head.end === true && Number.isSafeInteger(head.entries))) {
    throw createDamagedError("the header of a file is invalid");
  }
  return head;
}

/** Takes exact numbers of bytes from a stream of chunks. */
class ByteSource {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#iterator = source[Symbol.asyncIterator]();
  }

  async readExactly(size: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(size);
    let at = 0;
    for await (const part of this.take(size)) {
      bytes.set(part, at);
      at += part.byteLength;
    }
    return bytes;
  }

  async *take(size: number): AsyncGenerator<Uint8Array> {
    for (let left = size; left > 0;) {
      if (!await this.#fill()) throw createDamagedError("the file is truncated");
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.byteLength);
      left -= part.byteLength;
      yield part;
    }
  }

  async isAtEnd(): Promise<boolean> {
    return !await this.#fill();
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.byteLength === 0) {
      const { done, value } = await this.#iterator.next();
      if (done) return false;
      this.#rest = value;
    }
    return true;
  }
}

function createDamagedError(found: string): AppError {
  return new AppError("unprocessable", `Can't read the backup: ${found}`);
}
