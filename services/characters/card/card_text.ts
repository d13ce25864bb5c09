/** The JSON text of a card, as files carry it: plain, or in base64. */
import { Buffer } from "node:buffer";
import { AppError } from "../../errors.ts";
import { type Card, cardOf } from "./card.ts";

/** Longest JSON text of a card, in bytes. A long novel has one million. */
export const MAX_CARD_BYTES = 10 * 1024 * 1024;

// Both drop a byte-order mark. Without `fatal` a decoder is several times as fast, and makes what is no UTF-8 into U+FFFD.
const utf8 = new TextDecoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
const latin1 = new TextDecoder("latin1");

/**
 * Reads a card out of JSON text.
 *
 * @throws {AppError} `too_large`; `unprocessable` for what is no UTF-8, no JSON or no card.
 */
export function parseCardText(bytes: Uint8Array): Card {
  return parsed(bytes, utf8Letters);
}

function parsed(bytes: Uint8Array, decoded: (bytes: Uint8Array) => string): Card {
  assertLength(bytes);
  let json: unknown;
  try {
    json = JSON.parse(decoded(bytes));
  } catch (cause) {
    throw new AppError("unprocessable", "Cannot read the character card: its text is no JSON in UTF-8", { cause });
  }
  return cardOf(json);
}

/**
 * Reads a card out of the text of a PNG chunk: base64, or the JSON itself as some programs write it.
 *
 * @throws {AppError} as `parseCardText`, and `unprocessable` for what is neither.
 */
export function parseChunkText(bytes: Uint8Array): Card {
  if (isJsonObject(bytes)) return parsed(bytes, chunkLetters);
  let text: Uint8Array;
  try {
    // White space and missing padding are no fault to it; the letters for addresses of pages are met, too.
    text = Uint8Array.fromBase64(utf8.decode(bytes).replaceAll("-", "+").replaceAll("_", "/"));
  } catch (cause) {
    throw new AppError("unprocessable", "Cannot read the character card: its text is neither base64 nor JSON", {
      cause,
    });
  }
  return parseCardText(text);
}

/** Gives the letters of UTF-8. @throws {TypeError} for what is none */
function utf8Letters(bytes: Uint8Array): string {
  const text = utf8.decode(bytes);
  return text.includes("\ufffd") ? strictUtf8.decode(bytes) : text;
}

/** What programs write into text chunks is UTF-8 more often than the Latin-1 that PNG asks for. */
function chunkLetters(bytes: Uint8Array): string {
  try {
    return utf8Letters(bytes);
  } catch {
    return latin1.decode(bytes);
  }
}

/** Says whether the first thing in a text is the brace of an object. */
export function isJsonObject(bytes: Uint8Array): boolean {
  const begin = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  for (let at = begin; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === 0x7b;
  }
  return false;
}

/**
 * Gives the text of a card.
 *
 * @param indent Spaces a level, for people who look into it.
 * @throws {AppError} `too_large` for one that could not be read again.
 */
export function cardBytes(card: unknown, indent = 0): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(JSON.stringify(card, null, indent));
  assertLength(bytes);
  return bytes;
}

/** Gives the text that a PNG chunk carries for a card. @throws {AppError} `too_large` */
export function chunkText(card: unknown): string {
  const { buffer, byteOffset, byteLength } = cardBytes(card);
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

function assertLength(bytes: Uint8Array): void {
  if (bytes.length <= MAX_CARD_BYTES) return;
  throw new AppError("too_large", `The character card is longer than ${MAX_CARD_BYTES} bytes`);
}
