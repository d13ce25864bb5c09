/** The JSON text of cards in files: plain or base64. */
import { Buffer } from "node:buffer";
import { AppError } from "../../errors.ts";
import { type Card, parseCard } from "./card.ts";

/** Maximum JSON size of a card, in bytes. A long novel has one million. */
export const MAX_CARD_BYTES = 10 * 1024 * 1024;

// Both drop a byte order mark. Without `fatal`, decoding is several times faster and yields U+FFFD for invalid UTF-8.
const utf8 = new TextDecoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
const latin1 = new TextDecoder("latin1");

/**
 * Parses a card from JSON text.
 *
 * @throws {AppError} `too_large`; `unprocessable` for invalid UTF-8, JSON or cards
 */
export function parseCardText(bytes: Uint8Array): Card {
  return parseWith(bytes, decodeUtf8);
}

function parseWith(bytes: Uint8Array, decoded: (bytes: Uint8Array) => string): Card {
  assertLength(bytes);
  let json: unknown;
  try {
    json = JSON.parse(decoded(bytes));
  } catch (cause) {
    throw new AppError("unprocessable", "Can't read the character card: its text isn't JSON in UTF-8", { cause });
  }
  return parseCard(json);
}

/**
 * Parses a card from the text of a PNG chunk: base64, or plain JSON as some programs write it.
 *
 * @throws {AppError} like `parseCardText`, and `unprocessable` for other text
 */
export function parseChunkText(bytes: Uint8Array): Card {
  if (startsWithBrace(bytes)) return parseWith(bytes, decodeChunk);
  let text: Uint8Array;
  try {
    // Tolerates white space and missing padding. Base64url also occurs.
    text = Uint8Array.fromBase64(utf8.decode(bytes).replaceAll("-", "+").replaceAll("_", "/"));
  } catch (cause) {
    throw new AppError("unprocessable", "Can't read the character card: its text is neither base64 nor JSON", {
      cause,
    });
  }
  return parseCardText(text);
}

/** Decodes UTF-8. @throws {TypeError} if it's invalid */
function decodeUtf8(bytes: Uint8Array): string {
  const text = utf8.decode(bytes);
  return text.includes("\ufffd") ? strictUtf8.decode(bytes) : text;
}

/** PNG requires Latin-1, but most programs write UTF-8. */
function decodeChunk(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes);
  } catch {
    return latin1.decode(bytes);
  }
}

/** Reports whether text starts with a brace, after white space. */
export function startsWithBrace(bytes: Uint8Array): boolean {
  const begin = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  for (let at = begin; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === 0x7b;
  }
  return false;
}

/**
 * Serializes a card.
 *
 * @param indent Spaces per level.
 * @throws {AppError} `too_large` if it couldn't be read again
 */
export function serializeCard(card: unknown, indent = 0): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(JSON.stringify(card, null, indent));
  assertLength(bytes);
  return bytes;
}

/** Encodes a card for a PNG chunk. @throws {AppError} `too_large` */
export function encodeChunkText(card: unknown): string {
  const { buffer, byteOffset, byteLength } = serializeCard(card);
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

function assertLength(bytes: Uint8Array): void {
  if (bytes.length <= MAX_CARD_BYTES) return;
  throw new AppError("too_large", `The character card is longer than ${MAX_CARD_BYTES} bytes`);
}
