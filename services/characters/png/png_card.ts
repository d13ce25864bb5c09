/** Cards inside PNG files: found in any form they are met in, written in the one that every program reads. */
import { AppError } from "../../errors.ts";
import type { JsonObject } from "../../json/type_guards.ts";
import { type Card, cardOf, v2Of } from "../card/card.ts";
import { chunkText, MAX_CARD_BYTES, parseChunkText } from "../card/card_text.ts";
import { hasValidCrc, joinPng, type PngChunk, readPng } from "../../attachments/images/png_chunks.ts";
import { keywordOf, textChunk, textOf } from "./png_text.ts";

/** Keywords that cards are met under, lower case, the one that counts first; the last was seen in the wild only. */
const KEYWORDS = ["ccv3", "chara_card_v3", "chara"];

/** Chunks that are tried before a file is given up; each may have to be inflated. */
const MAX_TRIES = 4;

/** Longest text of a chunk with a card: base64 makes four letters of three bytes, and line breaks come on top. */
export const MAX_TEXT_BYTES = Math.ceil(MAX_CARD_BYTES * 1.4);

/** A chunk that may hold a card, its content read when it is wanted. */
export interface CardChunk {
  type: string;
  /** Lower case, as `cardKeyword` gives it. */
  keyword: string;
  data(): Uint8Array;
}

/** Gives the keyword of a chunk that holds a card or would be taken for one, `undefined` for any other. */
export function cardKeyword(chunk: { type: string; data: Uint8Array }): string | undefined {
  const keyword = keywordOf(chunk)?.toLowerCase();
  return keyword !== undefined && KEYWORDS.includes(keyword) ? keyword : undefined;
}

/** Says whether no chunk with a card could count more than one under this keyword that came before it. */
export function countsMost(keyword: string): boolean {
  return keyword === KEYWORDS[0];
}

/**
 * Reads the card out of the chunks that hold one: `ccv3` before `chara`, the first of several; one that cannot be read
 * counts only when no other can.
 *
 * @throws {AppError} `unprocessable`, `too_large`
 */
export function cardOfChunks(chunks: readonly CardChunk[]): Card {
  const rank = ({ keyword }: CardChunk) => KEYWORDS.indexOf(keyword);
  const candidates = [...chunks].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_TRIES);
  let failure: unknown;
  for (const [index, { type, data }] of candidates.entries()) {
    try {
      return parseChunkText(textOf({ type, data: data() }, MAX_TEXT_BYTES));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (index === 0) failure = error;
    }
  }
  // Made here alone: an error nobody throws costs a twentieth of reading a card.
  throw failure ?? new AppError("unprocessable", "Cannot read the character card: the PNG holds none");
}

/**
 * Reads the card of a PNG.
 *
 * @throws {AppError} `unprocessable` for a broken PNG or one without a card, `too_large`
 */
export function cardOfPng(png: Uint8Array): Card {
  return cardOfChunks(
    readPng(png).chunks.flatMap((chunk) => {
      const keyword = cardKeyword(chunk);
      return keyword === undefined ? [] : [{ type: chunk.type, keyword, data: () => checkedData(chunk) }];
    }),
  );
}

function checkedData(chunk: PngChunk): Uint8Array {
  if (hasValidCrc(chunk)) return chunk.data;
  throw new AppError("unprocessable", "Cannot read the character card: the check sum of its chunk is wrong");
}

/**
 * Puts a card into a PNG in place of any that is there. Every other chunk stays byte for byte, pixels included.
 *
 * @param options.versions `"v2"` leaves `ccv3` out; by default both are written, from the same data.
 * @throws {AppError} `unprocessable` for a broken PNG, `too_large` for a card that could not be read again.
 */
export function embedCard(
  png: Uint8Array,
  card: Card,
  options: { versions?: "v2" | "both" } = {},
): Uint8Array<ArrayBuffer> {
  const { chunks } = readPng(png);
  // Programs keep fields of their own beside `data` of the V2 copy alone.
  const v2 = v2Of(cardOf({ ...rootOfV2Alone(chunks), ...card }));
  const added = [textChunk("chara", chunkText(v2))];
  if (options.versions !== "v2") added.unshift(textChunk("ccv3", chunkText(card)));
  return joinPng(withCardChunks(chunks, added));
}

/**
 * Reads the card of a PNG for another file: with the fields beside `data` that only its V2 copy has.
 *
 * @throws {AppError} as `cardOfPng`
 */
export function wholeCardOfPng(png: Uint8Array): Card {
  const card = cardOfPng(png);
  const more = rootOfV2Alone(readPng(png).chunks);
  return Object.keys(more).length === 0 ? card : cardOf({ ...more, ...card });
}

/** Returns the fields beside `data` that the `chara` chunk has and the V3 card of the same file doesn't. */
function rootOfV2Alone(chunks: readonly PngChunk[]): JsonObject {
  const v3 = firstUnder(chunks, (keyword) => keyword !== "chara");
  const v2 = v3 && firstUnder(chunks, (keyword) => keyword === "chara");
  if (v3 === undefined || v2 === undefined) return {};
  return Object.fromEntries(Object.entries(v2).filter(([key]) => !Object.hasOwn(v3, key)));
}

function firstUnder(chunks: readonly PngChunk[], isWanted: (keyword: string) => boolean): Card | undefined {
  const chunk = chunks.find((one) => {
    const keyword = cardKeyword(one);
    return keyword !== undefined && isWanted(keyword);
  });
  try {
    return chunk && parseChunkText(textOf({ type: chunk.type, data: checkedData(chunk) }, MAX_TEXT_BYTES));
  } catch (error) {
    if (error instanceof AppError) return undefined; // what can't be read has nothing to keep
    throw error;
  }
}

/** Gives a PNG without its card, for a picture that stands for itself. */
export function withoutCard(png: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinPng(withCardChunks(readPng(png).chunks, []));
}

/** Directly behind the header: whoever lists cards finds them in a file's first bytes. */
function withCardChunks(chunks: PngChunk[], added: PngChunk[]): PngChunk[] {
  const [header, ...rest] = chunks.filter((chunk) => cardKeyword(chunk) === undefined);
  return [header!, ...added, ...rest];
}
