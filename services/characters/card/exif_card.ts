/**
 * Cards in WebP and JPEG files. Old versions of SillyTavern wrote them to the Exif comment, as JSON or as decimal byte
 * values.
 */
import { findEntry, findExif } from "../../attachments/images/exif.ts";
import { AppError } from "../../errors.ts";
import type { Card } from "./card.ts";
import { parseChunkText } from "./card_text.ts";

const EXIF_DIRECTORY_TAG = 0x8769;
const USER_COMMENT_TAG = 0x9286;
/** The comment starts with its encoding; empty means unknown. */
const LETTERS_BYTES = 8;
const LETTERS = /^(ASCII|UNICODE|JIS|)\0*$/;
/** Decimal values take about four bytes each. No old card is larger. */
const MAX_DIGITS_BYTES = 2 * 1024 * 1024;

const latin1 = new TextDecoder("latin1");

/**
 * Parses the card of a WebP or JPEG file.
 *
 * @throws {AppError} `unprocessable` if there is no valid card; `too_large`
 */
export function parseExifCard(picture: Uint8Array): Card {
  const comment = readUserComment(picture);
  if (comment === undefined) {
    throw new AppError("unprocessable", "Can't read the character card: the picture holds none");
  }
  return parseChunkText(comment);
}

function readUserComment(picture: Uint8Array): Uint8Array | undefined {
  const exif = findExif(picture);
  const pointer = exif && findEntry(exif, exif.firstAt, EXIF_DIRECTORY_TAG);
  if (exif === undefined || pointer === undefined) return undefined;
  const { tiff, isLittle } = exif;
  const entry = findEntry(exif, tiff.getUint32(pointer.valueAt, isLittle), USER_COMMENT_TAG);
  if (entry === undefined || entry.count <= LETTERS_BYTES) return undefined; // a short comment is stored inline
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
