/** Validates CHARX files and reads card and image. Runs in children of the sandbox. */
import { isJsonObject, parseJsonBytes } from "../../json/type_guards.ts";
import { AppError } from "../../errors.ts";
import type { RemoteFile } from "../../platform/sandbox/remote_file.ts";
import { type RandomAccessFile, readBytesAt } from "../../storage/atomic_file.ts";
import {
  hasZipEnd,
  readWholeContent,
  readZipDirectory,
  streamContent,
  type ZipEntry,
} from "../../storage/zip/zip_reader.ts";
import {
  type AssetHolder,
  CARD_PATH,
  findMainIcon,
  IMAGE_PATH,
  isSafeCharxPath,
  MAX_CHARX_BYTES,
  MAX_CHARX_IMAGE_BYTES,
  parseEmbeddedPath,
} from "./charx_format.ts";
import { type Card, parseCardText } from "../card/card.ts";
import { removeCard } from "../png/png_card.ts";

/** The result. Its bytes are the content of card.json, and the main image in any format if there is one. */
export interface CharxResponse {
  /** All other files. */
  others?: ZipEntry[];
  /** True if there is no ZIP directory. */
  isNotZip?: boolean;
  failure?: { code: "unprocessable" | "too_large"; message: string };
}

/** What is in a file. */
export interface CharxFiles {
  value: CharxResponse;
  bytes?: Uint8Array<ArrayBuffer>[];
}

/** Expressions and backgrounds make hundreds of entries. */
const MAX_ENTRIES = 10_000;
const MAX_CARD_BYTES = 10 * 1024 * 1024;
/** Maximum growth by inflating. Images are already compressed. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
const IMAGE_ENDINGS = /\.(png|apng|jpe?g|jfif|webp|gif)$/i;

/** Thrown for an invalid or too large file. */
class CharxError extends Error {
  constructor(readonly code: "unprocessable" | "too_large", found: string) {
    super(`Can't read the CHARX file: ${found}`);
  }
}

/** Reads a file. @throws {CharxError}, or {AppError} of the ZIP reader */
export async function readCharxFile(file: RemoteFile): Promise<CharxFiles> {
  const size = file.sizeBytes;
  if (!await hasZipEnd(file)) return { value: { isNotZip: true } };
  const { entries, beginsAt } = await readZipDirectory(file, MAX_ENTRIES);
  const files = checkEntries(entries, size);
  const cardEntry = files.get(CARD_PATH);
  if (cardEntry === undefined) throw new CharxError("unprocessable", "it has no card.json");
  const card = await readWholeContent(file, cardEntry);
  files.delete(CARD_PATH);
  const named = findMainIconPath(card);
  const inside = named !== undefined && files.has(named) ? named : undefined;
  const image = await readMainImage(file, files, inside, beginsAt);
  // A bare PNG is stored as the character's image. Any other image is converted, and the original is preserved, too.
  const own = inside ?? IMAGE_PATH;
  if (image !== undefined && image.path === own && isBarePng(own, image.bytes)) files.delete(own);
  const others = [...files.values()];
  for (const entry of others) if (entry.method !== 0) await checkInflates(file, entry);
  return { value: { others }, bytes: image === undefined ? [card] : [card, image.bytes] };
}

async function readMainImage(
  file: RandomAccessFile,
  files: Map<string, ZipEntry>,
  inside: string | undefined,
  beginsAt: number,
): Promise<{ path?: string; bytes: Uint8Array<ArrayBuffer> } | undefined> {
  const isBehindImage = inside === undefined && beginsAt > 0 && (await readBytesAt(file, 0, 1))?.[0] === 0xff;
  if (isBehindImage && beginsAt > MAX_CHARX_IMAGE_BYTES) {
    throw new CharxError("too_large", "its main image is too large");
  }
  if (isBehindImage) return { bytes: (await readBytesAt(file, 0, beginsAt))! };
  const entry = files.get(inside ?? IMAGE_PATH);
  if (entry === undefined) return undefined;
  if (entry.sizeBytes > MAX_CHARX_IMAGE_BYTES) throw new CharxError("too_large", "its main image is too large");
  return { path: entry.path, bytes: await readWholeContent(file, entry) };
}

/**
 * Returns all files by exact name, the first of duplicates. Unsafe paths are skipped. Sizes are as stated in the
 * directory.
 */
function checkEntries(entries: readonly ZipEntry[], fileBytes: number): Map<string, ZipEntry> {
  const files = new Map<string, ZipEntry>();
  const maxBytes = fileBytes + MAX_INFLATED_BYTES;
  let total = 0;
  for (const entry of entries) {
    const { path, sizeBytes, packedBytes, method } = entry;
    if (!isSafeCharxPath(path) || files.has(path)) continue;
    files.set(path, entry);
    total += sizeBytes;
    const isTooLarge = path === CARD_PATH && sizeBytes > MAX_CARD_BYTES;
    if (isTooLarge || packedBytes > fileBytes) throw new CharxError("too_large", `its ${path} is too large`);
    if (total > maxBytes) throw new CharxError("too_large", `its files together are larger than ${maxBytes} bytes`);
    if (method !== 0 && method !== 8) {
      throw new CharxError("unprocessable", `its ${path} uses an unsupported compression method or encryption`);
    }
  }
  return files;
}

/** Inflates a file to check that its size is as stated. */
async function checkInflates(file: RandomAccessFile, entry: ZipEntry): Promise<void> {
  for await (const _ of streamContent(file, entry));
}

/** Reports whether a PNG equals the character's image without its card. */
function isBarePng(path: string, image: Uint8Array): boolean {
  if (!/\.png$/i.test(path)) return false;
  try {
    const bare = removeCard(image);
    return bare.length === image.length && bare.every((byte, at) => byte === image[at]);
  } catch {
    return false; // Not a PNG, regardless of its name
  }
}

function findMainIconPath(card: Uint8Array): string | undefined {
  const path = parseEmbeddedPath(findMainIcon(parseAssetHolder(card))?.uri);
  return path !== undefined && IMAGE_ENDINGS.test(path) ? path : undefined;
}

/** Invalid cards are reported when the card is parsed. */
function parseAssetHolder(card: Uint8Array): AssetHolder {
  try {
    const json = parseJsonBytes(card);
    return isJsonObject(json) && isJsonObject(json.data) ? json as unknown as AssetHolder : { data: {} };
  } catch {
    return { data: {} };
  }
}

/** Returns what is told about a file that can't be read. */
export function toFailure(error: unknown): CharxResponse["failure"] {
  if (error instanceof CharxError) return { code: error.code, message: error.message };
  const isKnown = error instanceof AppError && (error.code === "unprocessable" || error.code === "too_large");
  if (isKnown) return { code: error.code as "unprocessable" | "too_large", message: error.message };
  return { code: "unprocessable", message: "Can't read the CHARX file: it's damaged" };
}

/**
 * Reads the card of a file and lists its other files.
 *
 * @throws {AppError} `unprocessable`, `too_large`
 */
export async function readCharxCard(file: RemoteFile): Promise<{ card: Card; others: readonly ZipEntry[] }> {
  if (file.sizeBytes > MAX_CHARX_BYTES) throw createTooLargeError();
  try {
    const { value: { others = [], isNotZip }, bytes: [text] = [] } = await readCharxFile(file);
    if (isNotZip || text === undefined) throw createNotZipError();
    return { card: parseCardText(text), others };
  } catch (error) {
    if (error instanceof AppError && error.code !== "internal") throw error;
    const { code, message } = toFailure(error)!;
    throw new AppError(code, message, { cause: error });
  }
}

/** Creates the error for a file above 512 MiB. */
export function createTooLargeError(): AppError {
  return new AppError("too_large", `The CHARX file is larger than ${MAX_CHARX_BYTES} bytes`);
}

/** Creates the error for a file that only starts like a ZIP file. */
export function createNotZipError(): AppError {
  return new AppError("unprocessable", "Can't read the CHARX file: it isn't a complete ZIP file");
}
