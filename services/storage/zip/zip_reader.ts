/** Zips on disk, read entry by entry where they lie. What their names and numbers are trusted with is up to who reads. */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import { bytesAt } from "../bytes_at.ts";

/** What the directory of a zip says of an entry. */
export interface ZipEntry {
  /** As it stands there: it may lead anywhere. */
  path: string;
  /** 0 is stored, 8 deflated; -1 stands for an encrypted one. */
  method: number;
  crc: number;
  packedBytes: number;
  sizeBytes: number;
  /** Where its header stands in the file. */
  headerAt: number;
}

/** The directory of a zip. */
export interface ZipDirectory {
  entries: ZipEntry[];
  /** Bytes before the zip: it may stand behind a picture or a program. */
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
/** Deflate makes a thousand bytes of one, and all that comes of one piece is made at once. */
const PACKED_PIECE_BYTES = 16 * 1024;

/**
 * Reads the directory of a zip.
 *
 * @throws {AppError} `unprocessable` for what is no whole zip, `too_large` for one with more entries
 */
export async function readZipDirectory(file: Deno.FsFile, maxEntries: number): Promise<ZipDirectory> {
  const { tail, tailAt, end } = await tailOf(file);
  if (end < 0) throw damaged("its directory is missing, so it is no whole zip");
  let count = tail.getUint16(end + 10, true);
  let length = tail.getUint32(end + 12, true);
  let at = tail.getUint32(end + 16, true);
  let endAt = tailAt + end;
  const locator = end - LOCATOR64_BYTES;
  const isLarge = count === SATURATED_16 || length === SATURATED_32 || at === SATURATED_32;
  if (isLarge && locator >= 0 && tail.getUint32(locator, true) === LOCATOR64_MARK) {
    endAt = asNumber(tail.getBigUint64(locator + 8, true));
    const end64 = await readAt(file, endAt, END64_BYTES);
    if (end64.getUint32(0, true) !== END64_MARK) throw damaged("its directory is out of place");
    count = asNumber(end64.getBigUint64(32, true));
    length = asNumber(end64.getBigUint64(40, true));
    at = asNumber(end64.getBigUint64(48, true));
  }
  if (count > maxEntries) throw new AppError("too_large", `Cannot read the zip: it has more than ${maxEntries} files`);
  // Whoever puts a picture before a zip may leave its numbers as they were; the directory ends where its end begins.
  const shift = endAt - length - at;
  if (shift < 0 || length > MAX_DIRECTORY_BYTES) throw damaged("its directory is out of place");
  const entries = entriesIn(await readAt(file, at + shift, length), count);
  const first = entries.reduce((least, { headerAt }) => Math.min(least, headerAt), at);
  for (const entry of entries) entry.headerAt += shift;
  return { entries, beginsAt: shift > 0 ? shift : first };
}

/** Says whether a file ends as every ZIP does. */
export async function hasZipEnd(file: Deno.FsFile): Promise<boolean> {
  return (await tailOf(file)).end >= 0;
}

/** Gives the end of a file, and where in it the record stands that ends a ZIP; -1 where there is none. */
async function tailOf(file: Deno.FsFile): Promise<{ tail: DataView<ArrayBuffer>; tailAt: number; end: number }> {
  const { size } = await file.stat();
  const tailAt = Math.max(0, size - END_BYTES - MAX_COMMENT_BYTES - LOCATOR64_BYTES);
  const tail = await readAt(file, tailAt, size - tailAt);
  let end = tail.byteLength - END_BYTES;
  while (end >= 0 && tail.getUint32(end, true) !== END_MARK) end--;
  return { tail, tailAt, end };
}

/**
 * Gives the bytes of an entry as they lie in the zip, piece by piece.
 *
 * @throws {AppError} `unprocessable` when it is encrypted, packed in an unknown way, out of place or cut off
 */
export async function* packedPieces(file: Deno.FsFile, entry: ZipEntry): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { path, method, headerAt, packedBytes, sizeBytes } = entry;
  if (method === -1) throw damaged(`"${path}" is encrypted`);
  if (method !== 0 && method !== 8) throw damaged(`"${path}" is packed in a way that is not known`);
  if (method === 0 && packedBytes !== sizeBytes) throw damaged(`"${path}" is damaged`);
  const header = await readAt(file, headerAt, HEADER_BYTES);
  if (header.getUint32(0, true) !== HEADER_MARK) throw damaged(`"${path}" is out of place`);
  const begin = headerAt + HEADER_BYTES + header.getUint16(26, true) + header.getUint16(28, true);
  for (let at = 0; at < packedBytes; at += PIECE_BYTES) {
    const piece = await bytesAt(file, begin + at, Math.min(PIECE_BYTES, packedBytes - at));
    if (piece === undefined) throw damaged(`"${path}" is cut off`);
    yield piece;
  }
}

/**
 * Gives the content of an entry, piece by piece. It ends at the size that was stated: what comes behind it is never made.
 *
 * @throws {AppError} as `packedPieces`, and `unprocessable` when it is not as long as it says
 */
export async function* contentPieces(file: Deno.FsFile, entry: ZipEntry): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const packed = packedPieces(file, entry);
  if (entry.method === 0) return yield* packed;
  let made = 0;
  try {
    const inflating = ReadableStream.from(cut(packed)).pipeThrough(new DecompressionStream("deflate-raw"));
    for await (const piece of inflating) {
      made += piece.length;
      if (made > entry.sizeBytes) break;
      yield piece as Uint8Array<ArrayBuffer>;
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw damaged(`"${entry.path}" is damaged`, cause);
  }
  if (made !== entry.sizeBytes) throw damaged(`"${entry.path}" is damaged`);
}

/** Gives the content of an entry whole, its check sum compared. @throws {AppError} as `contentPieces` */
export async function contentOf(file: Deno.FsFile, entry: ZipEntry): Promise<Uint8Array<ArrayBuffer>> {
  const content = await wholeContentOf(file, entry);
  if (crc32(content) !== entry.crc) throw damaged(`"${entry.path}" is damaged`);
  return content;
}

/** Gives the content of an entry whole, whatever its check sum says. @throws {AppError} as `contentPieces` */
export async function wholeContentOf(file: Deno.FsFile, entry: ZipEntry): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(entry.sizeBytes);
  let at = 0;
  for await (const piece of contentPieces(file, entry)) {
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

function entriesIn(view: DataView<ArrayBuffer>, count: number): ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let at = 0; entries.length < count;) {
    if (at + ENTRY_BYTES > view.byteLength || view.getUint32(at, true) !== ENTRY_MARK) {
      throw damaged("its directory is cut off");
    }
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const nameAt = at + ENTRY_BYTES;
    const next = nameAt + nameBytes! + extraBytes! + commentBytes!;
    if (next > view.byteLength) throw damaged("its directory is cut off");
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

/** Numbers that do not fit stand in an extra field, in this order and only where they do not fit. */
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

async function readAt(file: Deno.FsFile, at: number, length: number): Promise<DataView<ArrayBuffer>> {
  const bytes = await bytesAt(file, at, length);
  if (bytes === undefined) throw damaged("it is cut off");
  return new DataView(bytes.buffer);
}

function asNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged("it states impossible sizes");
  return Number(value);
}

function damaged(found: string, cause?: unknown): AppError {
  return new AppError("unprocessable", `Cannot read the zip: ${found}`, { cause });
}
