/** PNG text chunks: tEXt, zTXt, iTXt. @see https://www.w3.org/TR/png-3/#11textinfo */
import { inflateSync } from "node:zlib";
import { AppError } from "../../errors.ts";
import { createChunk, type PngChunk } from "../../attachments/images/png_chunks.ts";

/** Maximum keyword length in bytes. */
const MAX_KEYWORD_BYTES = 79;

/** Returns the keyword of a text chunk; `undefined` for other or broken chunks. */
export function getKeyword({ type, data }: { type: string; data: Uint8Array }): string | undefined {
  if (type !== "tEXt" && type !== "zTXt" && type !== "iTXt") return undefined;
  const end = data.subarray(0, MAX_KEYWORD_BYTES + 1).indexOf(0);
  return end < 1 ? undefined : String.fromCharCode(...data.subarray(0, end));
}

/**
 * Returns the text of a text chunk as bytes: Latin-1 for tEXt and zTXt, UTF-8 for iTXt.
 *
 * @param maxBytes Limit when inflating; deflate reaches 1000:1.
 * @throws {AppError} `unprocessable` for other chunks or if inflating fails, `too_large`
 */
export function readTextChunk({ type, data }: { type: string; data: Uint8Array }, maxBytes: number): Uint8Array {
  let at = data.indexOf(0) + 1;
  let isDeflated = type === "zTXt";
  if (type === "zTXt") at++; // compression method; there is only one
  if (type === "iTXt") {
    isDeflated = data[at] === 1;
    at = data.indexOf(0, at + 2) + 1; // after the language
    if (at > 0) at = data.indexOf(0, at) + 1; // after the translated keyword
  }
  if (at <= 0 || at > data.length) throw new AppError("unprocessable", `Can't read a ${type} chunk: it has no text`);
  const text = data.subarray(at);
  if (!isDeflated) {
    if (text.length > maxBytes) throw tooLarge(maxBytes);
    return text;
  }
  try {
    return inflateSync(text, { maxOutputLength: maxBytes });
  } catch (cause) {
    if (cause instanceof RangeError) throw tooLarge(maxBytes);
    throw new AppError("unprocessable", `Can't read a ${type} chunk: its text cannot be inflated`, { cause });
  }
}

/** Creates a tEXt chunk. @param text Latin-1 without NUL. */
export function createTextChunk(keyword: string, text: string): PngChunk {
  const data = new Uint8Array(keyword.length + 1 + text.length);
  const { written } = new TextEncoder().encodeInto(keyword, data);
  new TextEncoder().encodeInto(text, data.subarray(written + 1));
  return createChunk("tEXt", data);
}

function tooLarge(maxBytes: number): AppError {
  return new AppError("too_large", `The text inside the PNG is longer than ${maxBytes} bytes`);
}
