/**
 * Cards in a WebP or JPEG: SillyTavern once wrote them into the comment of the Exif block, as JSON or as its bytes in
 * decimal digits with commas. No specification has them, and nothing writes them any more.
 */
import { findEntry, findExif } from "../../attachments/images/exif.ts";
import { AppError } from "../../errors.ts";
import type { Card } from "./card.ts";
import { parseChunkText } from "./card_text.ts";

const EXIF_DIRECTORY_TAG = 0x8769;
const USER_COMMENT_TAG = 0x9286;
/** The comment begins with what its letters are; empty stands for not known. */
const LETTERS_BYTES = 8;
const LETTERS = /^(ASCII|UNICODE|JIS|)\0*$/;
/** Digits take four letters for a byte: more than any card of that time. */
const MAX_DIGITS_BYTES = 2 * 1024 * 1024;

const latin1 = new TextDecoder("latin1");

/**
 * Reads the card of a WebP or JPEG.
 *
 * @throws {AppError} `unprocessable` for a picture without a card, or with one that is broken; `too_large`
 */
export function cardOfExif(picture: Uint8Array): Card {
  const comment = commentIn(picture);
  if (comment === undefined) {
    throw new AppError("unprocessable", "Cannot read the character card: the picture holds none");
  }
  return parseChunkText(comment);
}

function commentIn(picture: Uint8Array): Uint8Array | undefined {
  const exif = findExif(picture);
  const pointer = exif && findEntry(exif, exif.firstAt, EXIF_DIRECTORY_TAG);
  if (exif === undefined || pointer === undefined) return undefined;
  const { tiff, isLittle } = exif;
  const entry = findEntry(exif, tiff.getUint32(pointer.valueAt, isLittle), USER_COMMENT_TAG);
  if (entry === undefined || entry.count <= LETTERS_BYTES) return undefined; // a short one stands in its own place
  const at = tiff.getUint32(entry.valueAt, isLittle);
  if (entry.count > tiff.byteLength - at) return undefined;
  const whole = new Uint8Array(tiff.buffer, tiff.byteOffset + at, entry.count);
  const letters = LETTERS.exec(latin1.decode(whole.subarray(0, LETTERS_BYTES)))?.[1];
  const text = letters === undefined ? whole : whole.subarray(LETTERS_BYTES);
  if (letters === "UNICODE") {
    return new TextEncoder().encode(new TextDecoder(isLittle ? "utf-16le" : "utf-16be").decode(text));
  }
  const end = text.indexOf(0);
  return ofDigits(end < 0 ? text : text.subarray(0, end));
}

/** `123,34,…` is the bytes of a text. */
function ofDigits(text: Uint8Array): Uint8Array {
  const isDigits = text.length < MAX_DIGITS_BYTES &&
    text.every((byte) => byte === 0x2c || byte >= 0x30 && byte <= 0x39);
  return isDigits ? bytesOfDigits(text) : text;
}

/** Reads numbers between commas. A list of their texts would be a million values long. */
function bytesOfDigits(text: Uint8Array): Uint8Array {
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
