/** Text chunks of a PNG in their three forms: tEXt, zTXt, iTXt. @see PNG, third edition, section 11.3.3 */
import { inflateSync } from "node:zlib";
import { AppError } from "../../errors.ts";
import { makeChunk, type PngChunk } from "../../attachments/images/png_chunks.ts";

/** Longest keyword, in bytes. */
const MAX_KEYWORD_BYTES = 79;

/** Gives the keyword of a text chunk as it stands there, or `undefined` for any other or a broken one. */
export function keywordOf({ type, data }: { type: string; data: Uint8Array }): string | undefined {
  if (type !== "tEXt" && type !== "zTXt" && type !== "iTXt") return undefined;
  const end = data.subarray(0, MAX_KEYWORD_BYTES + 1).indexOf(0);
  return end < 1 ? undefined : String.fromCharCode(...data.subarray(0, end));
}

/**
 * Gives the text of a text chunk as bytes: Latin-1 for tEXt and zTXt, UTF-8 for iTXt.
 *
 * @param maxBytes What it may become when it is inflated; the work ends there (deflate reaches 1000:1).
 * @throws {AppError} `unprocessable` for a chunk that is none or cannot be inflated, `too_large`
 */
export function textOf({ type, data }: { type: string; data: Uint8Array }, maxBytes: number): Uint8Array {
  let at = data.indexOf(0) + 1;
  let isDeflated = type === "zTXt";
  if (type === "zTXt") at++; // the method, of which there is one
  if (type === "iTXt") {
    isDeflated = data[at] === 1;
    at = data.indexOf(0, at + 2) + 1; // behind the language
    if (at > 0) at = data.indexOf(0, at) + 1; // behind the translated keyword
  }
  if (at <= 0 || at > data.length) throw new AppError("unprocessable", `Cannot read a ${type} chunk: it has no text`);
  const text = data.subarray(at);
  if (!isDeflated) {
    if (text.length > maxBytes) throw tooLarge(maxBytes);
    return text;
  }
  try {
    return inflateSync(text, { maxOutputLength: maxBytes });
  } catch (cause) {
    if (cause instanceof RangeError) throw tooLarge(maxBytes);
    throw new AppError("unprocessable", `Cannot read a ${type} chunk: its text cannot be inflated`, { cause });
  }
}

/** Makes a tEXt chunk. @param text Of Latin-1 letters, without zero. */
export function textChunk(keyword: string, text: string): PngChunk {
  const data = new Uint8Array(keyword.length + 1 + text.length);
  const { written } = new TextEncoder().encodeInto(keyword, data);
  new TextEncoder().encodeInto(text, data.subarray(written + 1));
  return makeChunk("tEXt", data);
}

function tooLarge(maxBytes: number): AppError {
  return new AppError("too_large", `The text inside the PNG is longer than ${maxBytes} bytes`);
}
