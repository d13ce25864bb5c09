/** A zip on disk, read entry by entry where it lies: of gigabytes no more is held than its directory and one entry. */
import { crc32 } from "node:zlib";
import { AppError } from "../errors.ts";
import { bytesAt } from "./bytes_at.ts";
import { type ImportSource, MAX_FILES, type SourceFile, tooLarge } from "./import_source.ts";

/** What the directory says of an entry. */
interface ZipEntry extends SourceFile {
  method: number;
  crc: number;
  packedBytes: number;
  headerAt: number;
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

/** Text is packed to a tenth; a thousandth, read file by file without end, is somebody's trap. */
const MOST_INFLATED = 100;
const ALWAYS_INFLATED_BYTES = 256 * 1024 * 1024;

/** Opens a zip. @throws {AppError} `unprocessable`, `too_large` */
export async function openZip(path: string): Promise<ImportSource> {
  const file = await Deno.open(path);
  try {
    const { size } = await file.stat();
    const entries = new Map<string, ZipEntry>();
    const passedOver: string[] = [];
    for (const entry of await directoryOf(file, size)) {
      if (entry.path.endsWith("/")) continue;
      if (isPlainPath(entry.path) && !entries.has(entry.path)) entries.set(entry.path, entry);
      else passedOver.push(entry.path);
    }
    const maxInflated = size * MOST_INFLATED + ALWAYS_INFLATED_BYTES;
    let inflated = 0;
    return {
      files: [...entries.values()].map(({ path, sizeBytes }) => ({ path, sizeBytes }))
        .sort((a, b) => a.path < b.path ? -1 : 1),
      passedOver,
      async read({ path }, maxBytes) {
        const entry = entries.get(path);
        if (entry === undefined) throw new AppError("not_found", `The zip has no "${path}"`);
        if (entry.sizeBytes > maxBytes) throw tooLarge(path, maxBytes);
        inflated += entry.sizeBytes;
        if (inflated > maxInflated) {
          throw new AppError("too_large", "Cannot import the zip: it inflates to more than a hundred times its size");
        }
        return await contentOf(file, entry, size);
      },
      close: () => file.close(),
    };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Says whether a path stays inside: it is never opened, but what pretends to lie outside is not what it claims to be. */
export function isPlainPath(path: string): boolean {
  return path !== "" && path.length <= 4096 && !/^[/\\]|^[A-Za-z]:|\\|\0/.test(path) &&
    !path.split("/").some((name) => name === ".." || name === "." || name === "");
}

async function directoryOf(file: Deno.FsFile, size: number): Promise<ZipEntry[]> {
  const tailAt = Math.max(0, size - END_BYTES - MAX_COMMENT_BYTES - LOCATOR64_BYTES);
  const tail = await readAt(file, tailAt, size - tailAt);
  let end = tail.byteLength - END_BYTES;
  while (end >= 0 && tail.getUint32(end, true) !== END_MARK) end--;
  if (end < 0) throw damaged("its directory is missing, so it is no whole zip");
  let count = tail.getUint16(end + 10, true);
  let length = tail.getUint32(end + 12, true);
  let at = tail.getUint32(end + 16, true);
  const locator = end - LOCATOR64_BYTES;
  const isLarge = count === SATURATED_16 || length === SATURATED_32 || at === SATURATED_32;
  if (isLarge && locator >= 0 && tail.getUint32(locator, true) === LOCATOR64_MARK) {
    const end64 = await readAt(file, asNumber(tail.getBigUint64(locator + 8, true)), END64_BYTES);
    if (end64.getUint32(0, true) !== END64_MARK) throw damaged("its directory is out of place");
    count = asNumber(end64.getBigUint64(32, true));
    length = asNumber(end64.getBigUint64(40, true));
    at = asNumber(end64.getBigUint64(48, true));
  }
  if (count > MAX_FILES) throw new AppError("too_large", `Cannot import the zip: it has more than ${MAX_FILES} files`);
  if (at + length > size || length > MAX_DIRECTORY_BYTES) throw damaged("its directory is out of place");
  return entriesIn(await readAt(file, at, length), count);
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

async function contentOf(file: Deno.FsFile, entry: ZipEntry, size: number): Promise<Uint8Array<ArrayBuffer>> {
  const { path, method, headerAt, packedBytes, sizeBytes, crc } = entry;
  if (method === -1) throw damaged(`"${path}" is encrypted`);
  if (method !== 0 && method !== 8) throw damaged(`"${path}" is packed in a way that is not known`);
  const header = await readAt(file, headerAt, HEADER_BYTES);
  if (header.getUint32(0, true) !== HEADER_MARK) throw damaged(`"${path}" is out of place`);
  const begin = headerAt + HEADER_BYTES + header.getUint16(26, true) + header.getUint16(28, true);
  if (begin + packedBytes > size) throw damaged(`"${path}" is cut off`);
  const { buffer } = await readAt(file, begin, packedBytes);
  const packed = new Uint8Array(buffer);
  const content = method === 0 ? packed : await inflated(packed, sizeBytes, path);
  if (content.length !== sizeBytes || crc32(content) !== crc) throw damaged(`"${path}" is damaged`);
  return content;
}

/** Stops at the size that was stated: what comes behind it is never made. */
async function inflated(
  packed: Uint8Array<ArrayBuffer>,
  sizeBytes: number,
  path: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(sizeBytes);
  let at = 0;
  try {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    for await (const piece of stream) {
      if (at + piece.length > sizeBytes) throw new RangeError("It is longer than it says");
      whole.set(piece, at);
      at += piece.length;
    }
  } catch (cause) {
    throw new AppError("unprocessable", `Cannot import the zip: "${path}" is damaged`, { cause });
  }
  return whole.subarray(0, at);
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

function damaged(found: string): AppError {
  return new AppError("unprocessable", `Cannot import the zip: ${found}`);
}
