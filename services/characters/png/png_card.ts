/**
 * Cards in PNG text chunks: reads all known forms, writes the one that every program supports.
 *
 * @see https://www.w3.org/TR/png-3/#11textinfo
 */
import { inflateSync } from "node:zlib";
import {
  createChunk,
  hasValidCrc,
  joinPng,
  MAX_CHUNKS,
  parsePng,
  type PngChunk,
} from "../../attachments/images/png.ts";
import { AppError } from "../../errors.ts";
import type { JsonObject } from "../../json/type_guards.ts";
import { type Card, encodeChunkText, MAX_CARD_BYTES, parseCard, parseChunkText, toV2 } from "../card/card.ts";

/** Keywords of card chunks in lower case, most important first. `chara_card_v3` isn't documented but occurs. */
const KEYWORDS = ["ccv3", "chara_card_v3", "chara"];

/** Maximum number of chunks to try, since each may have to be inflated. */
const MAX_TRIES = 4;

/** Maximum text size of a card chunk: base64 adds a third, plus line breaks. */
export const MAX_TEXT_BYTES = Math.ceil(MAX_CARD_BYTES * 1.4);

/** A chunk that may contain a card. Its data is read on demand. */
export interface CardChunk {
  type: string;
  /** Lower case, see `getCardKeyword`. */
  keyword: string;
  data(): Uint8Array;
}

/** Returns the keyword of a card chunk; `undefined` for other chunks. */
export function getCardKeyword(chunk: { type: string; data: Uint8Array }): string | undefined {
  const keyword = getKeyword(chunk)?.toLowerCase();
  return keyword !== undefined && KEYWORDS.includes(keyword) ? keyword : undefined;
}

/** Reports whether no later chunk can take precedence over one with this keyword. */
export function hasTopPriority(keyword: string): boolean {
  return keyword === KEYWORDS[0];
}

/** Returns the chunks to try, the most important first. */
export function selectCardChunks<Chunk extends Pick<CardChunk, "keyword">>(chunks: readonly Chunk[]): Chunk[] {
  const rank = ({ keyword }: Chunk) => KEYWORDS.indexOf(keyword);
  return [...chunks].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_TRIES);
}

/**
 * Parses the card from card chunks: `ccv3` before `chara`, the first of several. Unreadable chunks are skipped if
 * another one is readable.
 *
 * @throws {AppError} `unprocessable`, `too_large`
 */
export function parseCardChunks(chunks: readonly CardChunk[]): Card {
  let failure: unknown;
  for (const [index, { type, data }] of selectCardChunks(chunks).entries()) {
    try {
      return parseChunkText(readTextChunk({ type, data: data() }, MAX_TEXT_BYTES));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (index === 0) failure = error;
    }
  }
  // Created only here: an unused error costs a twentieth of reading a card.
  throw failure ?? new AppError("unprocessable", "Can't read the character card: the PNG doesn't contain one");
}

/**
 * Parses the card of a PNG.
 *
 * @throws {AppError} `unprocessable` for a broken PNG or one without a card, `too_large`
 */
export function parsePngCard(png: Uint8Array): Card {
  return parseCardChunks(
    parsePng(png).chunks.flatMap((chunk) => {
      const keyword = getCardKeyword(chunk);
      return keyword === undefined ? [] : [{ type: chunk.type, keyword, data: () => getCheckedData(chunk) }];
    }),
  );
}

/**
 * Reports whether the JSON of one of a PNG's cards may be longer than this. Reads only chunk headers and keywords, so
 * compressed cards count as long. A broken PNG counts until it breaks.
 */
export function isCardLongerThan(png: Uint8Array, maxBytes: number): boolean {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  for (let at = 8, count = 0; count <= MAX_CHUNKS && at + 8 <= png.length; count++) {
    const length = view.getUint32(at);
    const data = png.subarray(at + 8, at + 8 + length);
    const type = String.fromCharCode(...png.subarray(at + 4, at + 8));
    if (getCardKeyword({ type, data }) !== undefined && isLongCardChunk({ type, length }, maxBytes)) return true;
    at += length + 12;
  }
  return false;
}

/** Reports whether the JSON in a chunk may be longer than this. */
export function isLongCardChunk({ type, length }: { type: string; length: number }, maxBytes: number): boolean {
  // Base64 adds a third.
  return maxBytes < Infinity && (type !== "tEXt" || length > Math.ceil(maxBytes / 3) * 4);
}

function getCheckedData(chunk: PngChunk): Uint8Array {
  if (hasValidCrc(chunk)) return chunk.data;
  throw new AppError("unprocessable", "Can't read the character card: the checksum of its chunk is wrong");
}

/**
 * Writes a card into a PNG and replaces an existing one. All other chunks, including pixels, stay byte for byte the
 * same.
 *
 * @param options.versions `"v2"` omits `ccv3`; by default both are written, from the same data.
 * @throws {AppError} `unprocessable` for a broken PNG, `too_large` if the card couldn't be read again
 */
export function embedCard(
  png: Uint8Array,
  card: Card,
  options: { versions?: "v2" | "both" } = {},
): Uint8Array<ArrayBuffer> {
  const { chunks } = parsePng(png);
  // Programs store their own fields only at the root of the V2 copy.
  const v2 = toV2(parseCard({ ...findV2RootFields(chunks), ...card }));
  const added = [createTextChunk("chara", encodeChunkText(v2))];
  if (options.versions !== "v2") added.unshift(createTextChunk("ccv3", encodeChunkText(card)));
  return joinPng(placeCardChunks(chunks, added));
}

/**
 * Parses the card of a PNG for another file, including root fields that only its V2 copy has.
 *
 * @throws {AppError} like `parsePngCard`
 */
export function parseWholePngCard(png: Uint8Array): Card {
  const card = parsePngCard(png);
  const more = findV2RootFields(parsePng(png).chunks);
  return Object.keys(more).length === 0 ? card : parseCard({ ...more, ...card });
}

/** Returns the root fields of the `chara` chunk that the V3 card of the same file lacks. */
function findV2RootFields(chunks: readonly PngChunk[]): JsonObject {
  const v3 = findFirstCard(chunks, (keyword) => keyword !== "chara");
  const v2 = v3 && findFirstCard(chunks, (keyword) => keyword === "chara");
  if (v3 === undefined || v2 === undefined) return {};
  return Object.fromEntries(Object.entries(v2).filter(([key]) => !Object.hasOwn(v3, key)));
}

function findFirstCard(chunks: readonly PngChunk[], isWanted: (keyword: string) => boolean): Card | undefined {
  const chunk = chunks.find((one) => {
    const keyword = getCardKeyword(one);
    return keyword !== undefined && isWanted(keyword);
  });
  try {
    return chunk && parseChunkText(readTextChunk({ type: chunk.type, data: getCheckedData(chunk) }, MAX_TEXT_BYTES));
  } catch (error) {
    if (error instanceof AppError) return undefined; // An unreadable chunk has nothing to preserve.
    throw error;
  }
}

/** Returns a PNG without its card. */
export function removeCard(png: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinPng(placeCardChunks(parsePng(png).chunks, []));
}

/** Right after the header, so that listing finds the card in the first bytes. */
function placeCardChunks(chunks: PngChunk[], added: PngChunk[]): PngChunk[] {
  const [header, ...rest] = chunks.filter((chunk) => getCardKeyword(chunk) === undefined);
  return [header!, ...added, ...rest];
}

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
  if (type === "zTXt") at++; // Compression method; there is only one.
  if (type === "iTXt") {
    isDeflated = data[at] === 1;
    at = data.indexOf(0, at + 2) + 1; // After the language
    if (at > 0) at = data.indexOf(0, at) + 1; // After the translated keyword
  }
  if (at <= 0 || at > data.length) throw new AppError("unprocessable", `Can't read a ${type} chunk: it has no text`);
  const text = data.subarray(at);
  if (!isDeflated) {
    if (text.length > maxBytes) throw createTooLargeError(maxBytes);
    return text;
  }
  try {
    return inflateSync(text, { maxOutputLength: maxBytes });
  } catch (cause) {
    if (cause instanceof RangeError) throw createTooLargeError(maxBytes);
    throw new AppError("unprocessable", `Can't read a ${type} chunk: its text can't be decompressed`, { cause });
  }
}

/** Creates a tEXt chunk. @param text Latin-1 without NUL. */
function createTextChunk(keyword: string, text: string): PngChunk {
  const data = new Uint8Array(keyword.length + 1 + text.length);
  const { written } = new TextEncoder().encodeInto(keyword, data);
  new TextEncoder().encodeInto(text, data.subarray(written + 1));
  return createChunk("tEXt", data);
}

function createTooLargeError(maxBytes: number): AppError {
  return new AppError("too_large", `The text in the PNG is longer than ${maxBytes} bytes`);
}
