/** Reads ZIP files on disk, entry by entry. Names and numbers are untrusted; callers decide what to accept. */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import { type RandomAccessFile, readBytesAt } from "../atomic_file.ts";

/** Directory record of an entry. */
export interface ZipEntry {
  /** As written in the file; may contain `..` or an absolute path. */
  path: string;
  /** 0 is stored, 8 is deflated, -1 is encrypted. */
  method: number;
  crc: number;
  packedBytes: number;
  sizeBytes: number;
  /** Offset of its header in the file. */
  headerAt: number;
}

/** The directory of a ZIP file. */
export interface ZipDirectory {
  entries: ZipEntry[];
  /** Number of bytes before the ZIP data, which may follow an image or a program. */
  beginsAt: number;
}

// PKWARE APPNOTE, sections 4.3.7 to 4.3.16
const END_BYTES = 22;
const END_MARK = 0x06054b50;
const END64_MARK = 0x06064b50;
const LOCATOR64_MARK = 0x07064b50;
const LOCATOR64_BYTES = 20;
const END64_BYTES = 56;
const ENTRY_MARK = 0x02014b50;
const ENTRY_BYTES = 46;
const HEADER_MARK = 0x04034b50;
const HEADER_BYTES = 30;
const MAX_COMMENT_BYTES = 65_535;
const MAX_DIRECTORY_BYTES = 256 * 1024 * 1024;
const SATURATED_16 = 0xffff;
const SATURATED_32 = 0xffffffff;
const IS_ENCRYPTED = 1;

const PIECE_BYTES = 256 * 1024;
/** Size of the chunks to decompress. Deflate can expand one byte to a thousand. */
const PACKED_PIECE_BYTES = 16 * 1024;

/**
 * Reads the directory of a ZIP file.
 *
 * @throws {AppError} `unprocessable` if it isn't a complete ZIP file, `too_large` if it has more entries.
 */
export async function readZipDirectory(file: RandomAccessFile, maxEntries: number): Promise<ZipDirectory> {
  const { tail, tailAt, end } = await readTail(file);
  if (end < 0) throw createDamagedError("its directory is missing, so the file is incomplete");
  let count = tail.getUint16(end + 10, true);
  let length = tail.getUint32(end + 12, true);
  let at = tail.getUint32(end + 16, true);
  let endAt = tailAt + end;
  const locator = end - LOCATOR64_BYTES;
  const isLarge = count === SATURATED_16 || length === SATURATED_32 || at === SATURATED_32;
  if (isLarge && locator >= 0 && tail.getUint32(locator, true) === LOCATOR64_MARK) {
    endAt = asNumber(tail.getBigUint64(locator + 8, true));
    const end64 = await readAt(file, endAt, END64_BYTES);
    if (end64.getUint32(0, true) !== END64_MARK) throw createDamagedError("its directory is in the wrong place");
    count = asNumber(end64.getBigUint64(32, true));
    length = asNumber(end64.getBigUint64(40, true));
    at = asNumber(end64.getBigUint64(48, true));
  }
  if (count > maxEntries) {
    throw new AppError("too_large", `Can't read the ZIP file: it has more than ${maxEntries} files`);
  }
  // Programs that put an image before a ZIP file may leave its offsets unchanged. The directory ends where its end
  // record starts.
  const shift = endAt - length - at;
  if (shift < 0 || length > MAX_DIRECTORY_BYTES) throw createDamagedError("its directory is in the wrong place");
  const entries = readEntries(await readAt(file, at + shift, length), count);
  const first = entries.reduce((least, { headerAt }) => Math.min(least, headerAt), at);
  for (const entry of entries) entry.headerAt += shift;
  return { entries, beginsAt: shift > 0 ? shift : first };
}

/** Reports whether a file ends like a ZIP file. */
export async function hasZipEnd(file: RandomAccessFile): Promise<boolean> {
  return (await readTail(file)).end >= 0;
}

/** Returns the end of a file and the position of its end-of-directory record; -1 if there is none. */
async function readTail(file: RandomAccessFile): Promise<{ tail: DataView<ArrayBuffer>; tailAt: number; end: number }> {
  const { size } = await file.stat();
  const tailAt = Math.max(0, size - END_BYTES - MAX_COMMENT_BYTES - LOCATOR64_BYTES);
  const tail = await readAt(file, tailAt, size - tailAt);
  let end = tail.byteLength - END_BYTES;
  while (end >= 0 && tail.getUint32(end, true) !== END_MARK) end--;
  return { tail, tailAt, end };
}

/**
 * Yields the packed bytes of an entry.
 *
 * @throws {AppError} `unprocessable` if it's encrypted, compressed with an unknown method, in the wrong place or
 *   incomplete.
 */
export async function* streamPacked(file: RandomAccessFile, entry: ZipEntry): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { path, method, headerAt, packedBytes, sizeBytes } = entry;
  if (method === -1) throw createDamagedError(`"${path}" is encrypted`);
  if (method !== 0 && method !== 8) throw createDamagedError(`"${path}" uses an unsupported compression method`);
  if (method === 0 && packedBytes !== sizeBytes) throw createDamagedError(`"${path}" is damaged`);
  const header = await readAt(file, headerAt, HEADER_BYTES);
  if (header.getUint32(0, true) !== HEADER_MARK) throw createDamagedError(`"${path}" is in the wrong place`);
  const begin = headerAt + HEADER_BYTES + header.getUint16(26, true) + header.getUint16(28, true);
  for (let at = 0; at < packedBytes; at += PIECE_BYTES) {
    const piece = await readBytesAt(file, begin + at, Math.min(PIECE_BYTES, packedBytes - at));
    if (piece === undefined) throw createDamagedError(`"${path}" is truncated`);
    yield piece;
  }
}

/**
 * Yields the content of an entry. Stops at the declared size: bytes beyond it are never inflated.
 *
 * @throws {AppError} Like `streamPacked`; `unprocessable` if it's shorter than declared
 */
export async function* streamContent(file: RandomAccessFile, entry: ZipEntry): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const packed = streamPacked(file, entry);
  if (entry.method === 0) return yield* packed;
  let unpackedBytes = 0;
  try {
    const inflating = ReadableStream.from(cut(packed)).pipeThrough(new DecompressionStream("deflate-raw"));
    for await (const piece of inflating) {
      unpackedBytes += piece.length;
      if (unpackedBytes > entry.sizeBytes) break;
      yield piece as Uint8Array<ArrayBuffer>;
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw createDamagedError(`"${entry.path}" is damaged`, cause);
  }
  if (unpackedBytes !== entry.sizeBytes) throw createDamagedError(`"${entry.path}" is damaged`);
}

/** Returns the whole content of an entry and verifies its checksum. @throws {AppError} Like `streamContent` */
export async function readContent(file: RandomAccessFile, entry: ZipEntry): Promise<Uint8Array<ArrayBuffer>> {
  const content = await readWholeContent(file, entry);
  if (crc32(content) !== entry.crc) throw createDamagedError(`"${entry.path}" is damaged`);
  return content;
}

/** Returns the whole content of an entry without verifying its checksum. @throws {AppError} Like `streamContent` */
export async function readWholeContent(file: RandomAccessFile, entry: ZipEntry): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(entry.sizeBytes);
  let at = 0;
  for await (const piece of streamContent(file, entry)) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

async function* cut(pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += PACKED_PIECE_BYTES) yield piece.subarray(at, at + PACKED_PIECE_BYTES);
  }
}

function readEntries(view: DataView<ArrayBuffer>, count: number): ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let at = 0; entries.length < count;) {
    if (at + ENTRY_BYTES > view.byteLength || view.getUint32(at, true) !== ENTRY_MARK) {
      throw createDamagedError("its directory is truncated");
    }
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const nameAt = at + ENTRY_BYTES;
    const next = nameAt + nameBytes! + extraBytes! + commentBytes!;
    if (next > view.byteLength) throw createDamagedError("its directory is truncated");
    const name = new Uint8Array(view.buffer, view.byteOffset + nameAt, nameBytes!);
    const entry: ZipEntry = {
      path: new TextDecoder().decode(name),
      method: (view.getUint16(at + 8, true) & IS_ENCRYPTED) !== 0 ? -1 : view.getUint16(at + 10, true),
      crc: view.getUint32(at + 16, true),
      packedBytes: view.getUint32(at + 20, true),
      sizeBytes: view.getUint32(at + 24, true),
      headerAt: view.getUint32(at + 42, true),
    };
    takeLargeNumbers(entry, new DataView(view.buffer, view.byteOffset + nameAt + nameBytes!, extraBytes));
    entries.push(entry);
    at = next;
  }
  return entries;
}

/** Reads ZIP64 numbers. Numbers that don't fit in the record are in an extra field, in this order. */
function takeLargeNumbers(entry: ZipEntry, extra: DataView): void {
  for (let at = 0; at + 4 <= extra.byteLength;) {
    const [id, length] = [extra.getUint16(at, true), extra.getUint16(at + 2, true)];
    const end = Math.min(extra.byteLength, at + 4 + length);
    let field = at + 4;
    at = end;
    if (id !== 1) continue;
    for (const name of ["sizeBytes", "packedBytes", "headerAt"] as const) {
      if (entry[name] !== SATURATED_32 || field + 8 > end) continue;
      entry[name] = asNumber(extra.getBigUint64(field, true));
      field += 8;
    }
  }
}

async function readAt(file: RandomAccessFile, at: number, length: number): Promise<DataView<ArrayBuffer>> {
  const bytes = await readBytesAt(file, at, length);
  if (bytes === undefined) throw createDamagedError("it's truncated");
  return new DataView(bytes.buffer);
}

function asNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw createDamagedError("it declares impossible sizes");
  return Number(value);
}

function createDamagedError(found: string, cause?: unknown): AppError {
  return new AppError("unprocessable", `Can't read the ZIP file: ${found}`, { cause });
}
