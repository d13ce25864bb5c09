/** Parses card files in memory, of all formats but CHARX, recognized by their content. */
import { findEntry, findExif, sniffImage } from "../../attachments/images/image_header.ts";
import { isPng } from "../../attachments/images/png.ts";
import { AppError, ignoreErrors } from "../../errors.ts";
import { parsePngCard, parseWholePngCard } from "../png/png_card.ts";
import { type Card, parseCardText, parseChunkText, startsWithBrace } from "./card.ts";
import { isPngPath } from "./card_head.ts";

/** Maps a missing or invalid card to `undefined`. Other errors are thrown. */
export const NO_CARD = ignoreErrors("not_found", "unprocessable", "too_large");

/** A card, and the image of its file. */
export interface ParsedCardFile {
  card: Card;
  /** As PNG, which may contain another card. */
  avatarPng?: Uint8Array;
  /** In another format, to be converted. */
  avatarImage?: Uint8Array;
}

/**
 * Parses a card file in memory: PNG, JSON or WebP. File name and media type are ignored.
 *
 * @throws {AppError} `unprocessable` for an invalid file, `too_large`
 */
export function parseCardBytes(bytes: Uint8Array): ParsedCardFile {
  if (isPng(bytes)) return { card: parseWholePngCard(bytes), avatarPng: bytes };
  if (startsWithBrace(bytes)) return { card: parseCardText(bytes) };
  if (sniffImage(bytes) !== undefined) return { card: parseExifCard(bytes), avatarImage: bytes };
  throw new AppError("unprocessable", "Can't read the character card: it isn't a PNG, JSON or CHARX file");
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
