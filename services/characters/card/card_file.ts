/** Reads card files of all formats, recognized by their content, and exports characters as such files. */
import { findEntry, findExif, sniffImage } from "../../attachments/images/image_header.ts";
import { createChunk, isPng, joinPng } from "../../attachments/images/png.ts";
import { AppError, ignoreErrors } from "../../errors.ts";
import { readPlainFile, toFileError } from "../../storage/atomic_file.ts";
import type { Sandbox } from "../../platform/sandbox/sandbox.ts";
import type { ZipEntry } from "../../storage/zip/zip_reader.ts";
import { createCharx, readCharx } from "../charx/charx.ts";
import { isCharx, isZip, removeEmbeddedAssets } from "../charx/charx_format.ts";
import { createNotZipError } from "../charx/charx_reader.ts";
import { embedCard, parsePngCard, parseWholePngCard } from "../png/png_card.ts";
import { type Card, MAX_CARD_BYTES, parseCardText, parseChunkText, startsWithBrace, withoutFolder } from "./card.ts";
import { isPngPath } from "./card_head.ts";
import { deflateSync } from "node:zlib";
import type { Characters } from "../characters.ts";

/** Maps a missing or invalid card to `undefined`. Other errors are thrown. */
export const NO_CARD = ignoreErrors("not_found", "unprocessable", "too_large");

/** Content of a card file. */
export interface CardFile {
  card: Card;
  /** Its image as PNG, which may contain another card. */
  avatarPng?: Uint8Array;
  /** Its image in another format, to be converted. */
  avatarImage?: Uint8Array;
  /** The other files of a CHARX: expressions, backgrounds, data of other programs. */
  others?: readonly ZipEntry[];
}

/** Enough bytes to recognize the format. */
const SIGNATURE_BYTES = 4;

/**
 * Parses a card file in memory: PNG, JSON or WebP. File name and media type are ignored.
 *
 * @throws {AppError} `unprocessable` for an invalid file, `too_large`
 */
export function parseCardBytes(bytes: Uint8Array): CardFile {
  if (isPng(bytes)) return { card: parseWholePngCard(bytes), avatarPng: bytes };
  if (startsWithBrace(bytes)) return { card: parseCardText(bytes) };
  if (sniffImage(bytes) !== undefined) return { card: parseExifCard(bytes), avatarImage: bytes };
  throw new AppError("unprocessable", "Can't read the character card: it isn't a PNG, JSON or CHARX file");
}

/**
 * Reads a card file from disk: PNG, JSON or CHARX.
 *
 * @throws {AppError} `unprocessable` for an invalid file, `too_large`, `internal`
 */
export async function readCardFile(path: string, sandbox: Sandbox): Promise<CardFile> {
  const begin = await readSignature(path);
  const charx = isCharx(begin) ? await readCharx(path, sandbox) : undefined;
  // An image may have a ZIP appended. A file that starts like a ZIP must be one.
  if (charx === undefined && !isZip(begin)) {
    return parseCardBytes((await readPlainFile(path))?.bytes ?? new Uint8Array());
  }
  if (charx === undefined) throw createNotZipError();
  const { card, image, others } = charx;
  const avatar = image !== undefined && isPng(image)
    ? { avatarPng: image } satisfies Partial<CardFile>
    : { avatarImage: image } satisfies Partial<CardFile>;
  return { card, ...avatar, others };
}

/**
 * Parses a file of a card folder.
 *
 * @param path Its extension distinguishes PNG and JSON.
 * @throws {AppError} `unprocessable`, `too_large`
 */
export function parseCardFile(path: string, bytes: Uint8Array): Card {
  return isPngPath(path) ? parsePngCard(bytes) : parseCardText(bytes);
}

async function readSignature(path: string): Promise<Uint8Array> {
  try {
    using file = await Deno.open(path);
    const begin = new Uint8Array(SIGNATURE_BYTES);
    return begin.subarray(0, await file.read(begin) ?? 0);
  } catch (cause) {
    throw toFileError(`Can't read "${path}"`, cause);
  }
}

const EXIF_DIRECTORY_TAG = 0x8769;
const USER_COMMENT_TAG = 0x9286;
/** The comment starts with its encoding; empty means unknown. */
const LETTERS_BYTES = 8;
const LETTERS = /^(ASCII|UNICODE|JIS|)\0*$/;
/** Decimal values take about four bytes each. No old card is larger. */
const MAX_DIGITS_BYTES = 2 * 1024 * 1024;

const latin1 = new TextDecoder("latin1");

/**
 * Parses the card of a WebP or JPEG file. Old versions of SillyTavern wrote it to the Exif comment, as JSON or as decimal
 * byte values.
 *
 * @throws {AppError} `unprocessable` if there is no valid card; `too_large`
 */
function parseExifCard(image: Uint8Array): Card {
  const comment = readUserComment(image);
  if (comment === undefined) {
    throw new AppError("unprocessable", "Can't read the character card: the image doesn't contain one");
  }
  return parseChunkText(comment);
}

function readUserComment(image: Uint8Array): Uint8Array | undefined {
  const exif = findExif(image);
  const pointer = exif && findEntry(exif, exif.firstAt, EXIF_DIRECTORY_TAG);
  if (exif === undefined || pointer === undefined) return undefined;
  const { tiff, isLittle } = exif;
  const entry = findEntry(exif, tiff.getUint32(pointer.valueAt, isLittle), USER_COMMENT_TAG);
  if (entry === undefined || entry.count <= LETTERS_BYTES) return undefined; // A short comment is stored inline.
  const at = tiff.getUint32(entry.valueAt, isLittle);
  if (entry.count > tiff.byteLength - at) return undefined;
  const whole = new Uint8Array(tiff.buffer, tiff.byteOffset + at, entry.count);
  const letters = LETTERS.exec(latin1.decode(whole.subarray(0, LETTERS_BYTES)))?.[1];
  const text = letters === undefined ? whole : whole.subarray(LETTERS_BYTES);
  if (letters === "UNICODE") {
    return new TextEncoder().encode(new TextDecoder(isLittle ? "utf-16le" : "utf-16be").decode(text));
  }
  const end = text.indexOf(0);
  return decodeDigits(end < 0 ? text : text.subarray(0, end));
}

/** Decodes `123,34,…` to bytes. */
function decodeDigits(text: Uint8Array): Uint8Array {
  const isDigits = text.length < MAX_DIGITS_BYTES &&
    text.every((byte) => byte === 0x2c || byte >= 0x30 && byte <= 0x39);
  return isDigits ? parseDigits(text) : text;
}

/** Parses comma-separated numbers without splitting: an array of a million strings would be slow. */
function parseDigits(text: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(text.length + 1);
  let [count, value] = [0, 0];
  for (const byte of text) {
    if (byte === 0x2c) {
      bytes[count++] = value;
      value = 0;
    } else value = (value * 10 + byte - 0x30) & 0xff;
  }
  bytes[count++] = value;
  return bytes.subarray(0, count);
}

/** Export formats. */
export const CARD_FORMATS = ["png", "json", "charx"] as const;
export type CardFormat = (typeof CARD_FORMATS)[number];

/** An exported file. Dispose it after use. */
export interface ExportedCard extends Disposable {
  /**
   * Yields the file from the start, always with the same bytes. @throws {AppError} `unprocessable` for damaged assets
   */
  stream(): AsyncGenerator<Uint8Array>;
  contentType: string;
  sizeBytes: number;
  /** True if the import would reject a file of this size. */
  isTooLargeToImport: boolean;
  /** The character's name, as written by the author, with the extension of the format. */
  fileName: string;
}

const CONTENT_TYPES: Record<CardFormat, string> = {
  png: "image/png",
  json: "application/json",
  // V3 doesn't define a media type.
  charx: "application/zip",
};

/**
 * Exports a character. PNG exports without an image get a blank one. CHARX assets are only included in CHARX exports:
 * V3 discourages them in PNG, and JSON has no place for them.
 *
 * @param options.maxImportBytes Import limit for PNG and JSON.
 * @param options.keepsFolder Whether the card includes its folder; false for cards to share.
 * @throws {AppError} `not_found`, `unprocessable`
 */
export async function exportCard(
  characters: Characters,
  id: string,
  format: CardFormat,
  { maxImportBytes = Infinity, keepsFolder = false } = {},
): Promise<ExportedCard> {
  const { stored, file, card: own } = await characters.open(id);
  const card = keepsFolder ? own : withoutFolder(own);
  const image = isPngPath(stored.path) ? file.bytes : undefined;
  const facts = { contentType: CONTENT_TYPES[format], fileName: `${card.data.name}.${format}` };
  if (format === "charx") {
    const others = await characters.openCharxFiles(stored);
    const charx = await createCharx(card, image, others);
    return {
      ...facts,
      sizeBytes: charx.sizeBytes,
      isTooLargeToImport: charx.isTooLarge,
      stream: () => charx.stream(),
      [Symbol.dispose]: () => others?.[Symbol.dispose](),
    };
  }
  const named = await characters.hasCharxFiles(stored) ? removeEmbeddedAssets(card, image !== undefined) : card;
  const bytes = toFile(named, image, format);
  return {
    ...facts,
    sizeBytes: bytes.length,
    isTooLargeToImport: bytes.length > (format === "json" ? Math.min(maxImportBytes, MAX_CARD_BYTES) : maxImportBytes),
    async *stream() {
      yield bytes;
    },
    [Symbol.dispose]: () => {},
  };
}

function toFile(card: Card, image: Uint8Array | undefined, format: "png" | "json"): Uint8Array<ArrayBuffer> {
  if (format === "png") return embedCard(image ?? createBlankImage(), card);
  const indented = new TextEncoder().encode(JSON.stringify(card, null, 4)); // Like SillyTavern
  return indented.length <= MAX_CARD_BYTES ? indented : new TextEncoder().encode(JSON.stringify(card));
}

const EMPTY_WIDTH_PX = 400;
const EMPTY_HEIGHT_PX = 600;

/** Creates a plain gray portrait, for programs that only read cards in PNG files. */
function createBlankImage(): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, EMPTY_WIDTH_PX);
  view.setUint32(4, EMPTY_HEIGHT_PX);
  header[8] = 8; // Bit depth. Color type 0 is gray.
  const rows = new Uint8Array((EMPTY_WIDTH_PX + 1) * EMPTY_HEIGHT_PX).fill(0x80);
  for (let y = 0; y < EMPTY_HEIGHT_PX; y++) rows[y * (EMPTY_WIDTH_PX + 1)] = 0; // No filter
  return joinPng([
    createChunk("IHDR", header),
    createChunk("IDAT", deflateSync(rows)),
    createChunk("IEND", new Uint8Array()),
  ]);
}
