/**
 * The files with RisuAI's database: its local backup, and the database in every format it has had, from plain
 * MessagePack to blocks of JSON.
 *
 * @see https://github.com/kwaroran/RisuAI storage/risuSave.ts at 460ecae (2025-12-31)
 */
import { ImportError } from "../../import_report.ts";
import { Buffer } from "node:buffer";
import { unzipSync } from "node:zlib";
import { decode, ExtensionCodec } from "@msgpack/msgpack";
import { AppError } from "../../../errors.ts";
import { asObject, asText, isJsonObject, type JsonObject, parseJsonBytes } from "../../../json/type_guards.ts";
import type { RemoteFile } from "../../../platform/sandbox/remote_file.ts";
import { readBytesAt } from "../../../storage/atomic_file.ts";
import { createTooLargeError, MAX_FILES } from "../../import_zip.ts";
import type { ImportSource, SourceFile } from "../../import_source.ts";

/** Name of the database in a backup. */
export const RISU_DATABASE = "database.risudat";

/** Maximum size of a database. Years of chats take about 100 MB; images are separate. */
export const MAX_SAVE_BYTES = 512 * 1024 * 1024;

/** Maximum length of a list. The declared length is allocated before the items are read. */
const MAX_LENGTH = 10_000_000;
const MARK = "\0RISUSAVE\0";
/** Format byte: plain MessagePack, or compressed by either of two libraries. */
const [PLAIN, PACKED, PACKED_STREAM] = [7, 8, 9];
const BLOCKS_MARK = "RISUSAVE\0";
const OLDEST_MARK = "\0\0RISU";

/** Types of blocks. Other types contain no data to import. */
const [ROOT, CHARACTER, PRESETS, MODULES, REMOTE] = [1, 2, 4, 5, 6];

/** Loads a character that is stored in a separate file. */
export type RemoteSource = (name: string) => Promise<Uint8Array | undefined>;

/** Decodes RisuAI's custom MessagePack type for `undefined`. */
const EXTENSIONS = new ExtensionCodec();
EXTENSIONS.register({ type: 0, encode: () => null, decode: () => undefined });

/**
 * Opens a database.
 *
 * @returns Its content, and the names of characters whose files are missing.
 * @throws {AppError} `unprocessable` if it isn't a database; `too_large` if it unpacks to more than 512 MiB.
 */
export async function openRisuSave(
  bytes: Uint8Array,
  remote: RemoteSource,
): Promise<{ database: JsonObject; missing: string[] }> {
  if (startsWith(bytes, BLOCKS_MARK)) return await joinBlocks(bytes.subarray(BLOCKS_MARK.length), remote);
  const database = toPlainValue(bytes);
  if (!isJsonObject(database)) throw new AppError("unprocessable", "not a RisuAI database");
  return { database, missing: [] };
}

/** Unpacks gzip or zlib data. @throws {AppError} `unprocessable`, `too_large` */
export function unpack(bytes: Uint8Array, maxBytes = MAX_SAVE_BYTES): Uint8Array {
  try {
    return unzipSync(bytes, { maxOutputLength: maxBytes });
  } catch (cause) {
    const isTooLong = asText(asObject(cause).code) === "ERR_BUFFER_TOO_LARGE" || cause instanceof RangeError;
    if (isTooLong) throw new AppError("too_large", `it decompresses to more than ${maxBytes} bytes`, { cause });
    throw new ImportError("risu_damaged", { cause });
  }
}

function toPlainValue(bytes: Uint8Array): unknown {
  const kind = startsWith(bytes, MARK) ? bytes[MARK.length] : undefined;
  const content = bytes.subarray(MARK.length + 1);
  if (kind === PLAIN) return decodeMessagePack(content);
  if (kind === PACKED || kind === PACKED_STREAM) return decodeMessagePack(unpack(content));
  if (startsWith(bytes, OLDEST_MARK)) return decodeMessagePack(bytes.subarray(OLDEST_MARK.length));
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return decodeMessagePack(bytes);
  const inner = unpack(bytes);
  return inner[0] === 0x7b ? parseBytes(inner) : decodeMessagePack(inner);
}

async function joinBlocks(
  bytes: Uint8Array,
  remote: RemoteSource,
): Promise<{ database: JsonObject; missing: string[] }> {
  const database: JsonObject = { characters: [] };
  const characters = database.characters as unknown[];
  const missing: string[] = [];
  let remainingBytes = MAX_SAVE_BYTES;
  for (const { type, name, readContent: packedContent } of readBlocks(bytes)) {
    const readContent = () => {
      const opened = packedContent(remainingBytes);
      remainingBytes -= opened.length;
      return opened;
    };
    if (type === ROOT) Object.assign(database, { ...asObject(parseBytes(readContent())), characters });
    else if (type === CHARACTER) characters.push(parseBytes(readContent()));
    else if (type === PRESETS) database.botPresets = parseBytes(readContent());
    else if (type === MODULES) database.modules = parseBytes(readContent());
    else if (type === REMOTE) {
      const far = await remote(name);
      if (far === undefined) missing.push(name);
      else characters.push(parseBytes(far));
    }
  }
  return { database, missing };
}

/** A block: type, compression flag, name and content, the last two with their lengths. */
function* readBlocks(
  bytes: Uint8Array,
): Generator<{ type: number; name: string; readContent: (maxBytes: number) => Uint8Array }> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length;) {
    const lengthAt = at + 3 + (bytes[at + 2] ?? 0);
    const length = lengthAt + 4 <= bytes.length ? view.getUint32(lengthAt, true) : Infinity;
    const end = lengthAt + 4 + length;
    if (end > bytes.length) throw new ImportError("risu_cut_off");
    const [type, isPacked] = [bytes[at]!, bytes[at + 1] === 1];
    const content = bytes.subarray(lengthAt + 4, end);
    yield {
      type,
      name: new TextDecoder().decode(bytes.subarray(at + 3, lengthAt)),
      readContent: (maxBytes) => isPacked ? unpack(content, maxBytes) : content,
    };
    at = end;
  }
}

/** Decodes RisuAI's MessagePack. @throws {AppError} `unprocessable` */
export function decodeMessagePack(bytes: Uint8Array): unknown {
  try {
    return decode(bytes, { extensionCodec: EXTENSIONS, maxArrayLength: MAX_LENGTH, maxMapLength: MAX_LENGTH });
  } catch (cause) {
    throw new ImportError("risu_foreign", { cause });
  }
}

function parseBytes(bytes: Uint8Array): unknown {
  try {
    return parseJsonBytes(bytes);
  } catch (cause) {
    throw new ImportError("risu_foreign", { cause });
  }
}

function startsWith(bytes: Uint8Array, mark: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(mark.length, bytes.length)).toString("latin1") === mark;
}

interface Entry extends SourceFile {
  at: number;
}

/** Maximum length of a name, which is a hash with an extension, or the name of the database. */
const MAX_NAME_BYTES = 512;
const LENGTH_BYTES = 4;

/**
 * Opens a local backup: entries of a name and content, each with its length. Images come first and the database last,
 * so a backup of gigabytes is scanned by its lengths. Returns `undefined` if the file doesn't start like a backup; an
 * incomplete last entry is ignored.
 *
 * @see https://github.com/kwaroran/RisuAI drive/backuplocal.ts at 460ecae (2025-12-31)
 */
export async function openRisuBackup(file: RemoteFile): Promise<ImportSource | undefined> {
  const entries = await readEntries(file, file.sizeBytes);
  if (entries.size === 0) return undefined;
  const read: ImportSource["read"] = async ({ path: name }, maxBytes) => {
    const entry = entries.get(name);
    if (entry === undefined) throw new AppError("not_found", `The backup has no "${name}"`);
    if (entry.sizeBytes > maxBytes) throw createTooLargeError(name, maxBytes);
    const bytes = await readBytesAt(file, entry.at, entry.sizeBytes);
    if (bytes === undefined) throw new AppError("unprocessable", `"${name}" is incomplete`);
    return bytes;
  };
  return {
    files: [...entries.values()].map(({ path, sizeBytes }) => ({ path, sizeBytes })),
    skippedPaths: [],
    read,
    async *stream(entry, maxBytes) {
      yield await read(entry, maxBytes);
    },
  };
}

async function readEntries(file: RemoteFile, size: number): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  for (let at = 0; at + LENGTH_BYTES <= size;) {
    const nameBytes = await readLength(file, at);
    if (nameBytes === undefined || nameBytes === 0 || nameBytes > MAX_NAME_BYTES) break;
    const name = await readBytesAt(file, at + LENGTH_BYTES, nameBytes);
    const sizeBytes = await readLength(file, at + LENGTH_BYTES + nameBytes);
    if (name === undefined || sizeBytes === undefined) break;
    const path = new TextDecoder().decode(name);
    if (path !== RISU_DATABASE && !/^[^/\\\0]+\.[a-z0-9]{2,5}$/i.test(path)) break;
    const contentAt = at + 2 * LENGTH_BYTES + nameBytes;
    if (contentAt + sizeBytes > size) break;
    entries.set(path, { path, sizeBytes, at: contentAt });
    if (entries.size > MAX_FILES) {
      throw new AppError("too_large", `Can't import the backup: it has more than ${MAX_FILES} files`);
    }
    at = contentAt + sizeBytes;
  }
  return entries;
}

async function readLength(file: RemoteFile, at: number): Promise<number | undefined> {
  const bytes = await readBytesAt(file, at, LENGTH_BYTES);
  return bytes && new DataView(bytes.buffer).getUint32(0, true);
}
