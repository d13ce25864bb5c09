/** Writes a ZIP file as a stream. Only the current chunk and the directory are in memory. */
import { crc32 } from "node:zlib";

/** A file of a ZIP file, already packed. */
export interface PackedEntry {
  /** With slashes. */
  path: string;
  isDeflated: boolean;
  /** CRC-32 of the unpacked content. */
  crc: number;
  packedBytes: number;
  sizeBytes: number;
  /** Its packed bytes. Read only once. */
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** Creates an entry from bytes in memory. @param deflated The same bytes, deflated; without it the file is stored. */
export function createEntry(path: string, bytes: Uint8Array, deflated?: Uint8Array): PackedEntry {
  const content = deflated ?? bytes;
  return {
    path,
    isDeflated: deflated !== undefined,
    crc: crc32(bytes),
    sizeBytes: bytes.length,
    packedBytes: content.length,
    content: [content],
  };
}

// PKWARE APPNOTE, sections 4.3.7 to 4.3.16
const HEADER_BYTES = 30;
const ENTRY_BYTES = 46;
const END64_BYTES = 56;
const LOCATOR64_BYTES = 20;
const END_BYTES = 22;
const LARGE_EXTRA_BYTES = 12;
const SATURATED_16 = 0xffff;
const SATURATED_32 = 0xffffffff;
const VERSION = 20;
const VERSION_LARGE = 45;
const IS_UTF8 = 0x0800;
const DEFLATED = 8;
/** 1980-01-01, the earliest date in a ZIP file. */
const DAY = 0x21;

const encoder = new TextEncoder();

/**
 * Yields the ZIP file in chunks.
 *
 * @param options.isLarge Writes ZIP64, which not every program reads. Plain ZIP is limited to 4 GiB and 65,535 files.
 */
export async function* writeZip(
  files: Iterable<PackedEntry> | AsyncIterable<PackedEntry>,
  { isLarge }: { isLarge: boolean },
): AsyncGenerator<Uint8Array> {
  const directory: Uint8Array[] = [];
  let at = 0;
  for await (const { path, isDeflated, content, ...facts } of files) {
    const entry: Entry = { ...facts, name: encoder.encode(path), at, method: isDeflated ? DEFLATED : 0, isLarge };
    const header = createHeader(entry);
    yield header;
    yield* content;
    at += header.length + facts.packedBytes;
    directory.push(toEntry(entry));
  }
  yield* directory;
  yield createEnd(directory.length, directory.reduce((sum, { length }) => sum + length, 0), at, isLarge);
}

/** Returns the size of the ZIP file that `writeZip` creates from these files, if it isn't large. */
export function zipBytes(files: Iterable<Pick<PackedEntry, "path" | "packedBytes">>): number {
  let sizeBytes = END_BYTES;
  for (const { path, packedBytes } of files) {
    sizeBytes += HEADER_BYTES + ENTRY_BYTES + 2 * encoder.encode(path).length + packedBytes;
  }
  return sizeBytes;
}

interface Entry {
  name: Uint8Array;
  /** Offset of its header. */
  at: number;
  crc: number;
  method: number;
  packedBytes: number;
  sizeBytes: number;
  isLarge: boolean;
}

function createHeader(entry: Entry): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + entry.name.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 0x04034b50, true);
  writeFacts(view, 4, entry);
  bytes.set(entry.name, HEADER_BYTES);
  return bytes;
}

/** Creates the directory entry. ZIP64 entries always have the extra field, so there is only one layout. */
function toEntry(entry: Entry): Uint8Array {
  const { isLarge } = entry;
  const bytes = new Uint8Array(ENTRY_BYTES + entry.name.length + (isLarge ? LARGE_EXTRA_BYTES : 0));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 0x02014b50, true);
  view.setUint16(4, isLarge ? VERSION_LARGE : VERSION, true);
  writeFacts(view, 6, entry);
  view.setUint32(42, isLarge ? SATURATED_32 : entry.at, true);
  bytes.set(entry.name, ENTRY_BYTES);
  if (!isLarge) return bytes;
  view.setUint16(30, LARGE_EXTRA_BYTES, true);
  const extra = ENTRY_BYTES + entry.name.length;
  view.setUint16(extra, 1, true);
  view.setUint16(extra + 2, LARGE_EXTRA_BYTES - 4, true);
  view.setBigUint64(extra + 4, BigInt(entry.at), true);
  return bytes;
}

/** Writes the fields that a local header and its directory entry have in common, starting with the required version. */
function writeFacts(view: DataView, at: number, entry: Entry): void {
  const { name, crc, method, packedBytes, sizeBytes, isLarge } = entry;
  view.setUint16(at, isLarge ? VERSION_LARGE : VERSION, true);
  view.setUint16(at + 2, IS_UTF8, true);
  view.setUint16(at + 4, method, true);
  view.setUint16(at + 8, DAY, true);
  view.setUint32(at + 10, crc, true);
  view.setUint32(at + 14, packedBytes, true);
  view.setUint32(at + 18, sizeBytes, true);
  view.setUint16(at + 22, name.length, true);
}

/** Writes both end records, the plain one last. A plain ZIP file has only that one. */
function createEnd(count: number, directoryBytes: number, at: number, isLarge: boolean): Uint8Array {
  const bytes = new Uint8Array(END64_BYTES + LOCATOR64_BYTES + END_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 0x06064b50, true);
  view.setBigUint64(4, BigInt(END64_BYTES - 12), true);
  view.setUint16(12, VERSION_LARGE, true);
  view.setUint16(14, VERSION_LARGE, true);
  for (const [offset, value] of [[24, count], [32, count], [40, directoryBytes], [48, at]] as const) {
    view.setBigUint64(offset, BigInt(value), true);
  }
  view.setUint32(END64_BYTES, 0x07064b50, true);
  view.setBigUint64(END64_BYTES + 8, BigInt(at + directoryBytes), true);
  view.setUint32(END64_BYTES + 16, 1, true);
  const end = END64_BYTES + LOCATOR64_BYTES;
  view.setUint32(end, 0x06054b50, true);
  view.setUint16(end + 8, Math.min(count, SATURATED_16), true);
  view.setUint16(end + 10, Math.min(count, SATURATED_16), true);
  view.setUint32(end + 12, Math.min(directoryBytes, SATURATED_32), true);
  view.setUint32(end + 16, isLarge ? SATURATED_32 : at, true);
  return isLarge ? bytes : bytes.subarray(end);
}
