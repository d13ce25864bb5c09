/**
 * Finds and reads the card of a file with few reads: of a PNG only chunk headers and card chunks. Runs in children of the
 * sandbox.
 */
import { hasValidCrc, isPng, MAX_CHUNKS, parsePngHeader } from "../../attachments/images/png.ts";
import { AppError } from "../../errors.ts";
import { type RandomAccessFile, readBytesAt } from "../../storage/atomic_file.ts";
import {
  type CardChunk,
  getCardKeyword,
  hasTopPriority,
  isLongCardChunk,
  MAX_TEXT_BYTES,
  parseCardChunks,
  selectCardChunks,
} from "../png/png_card.ts";
import { type Card, MAX_CARD_BYTES, parseCardText } from "./card.ts";

/** Reads bytes of a file at a position; fewer at its end. */
export type ReadBytes = (at: number, length: number) => Promise<Uint8Array>;

/** Returns a reader of an open file. */
export function createReader(file: RandomAccessFile, size: number): ReadBytes {
  return async (at, length) =>
    await readBytesAt(file, at, Math.max(0, Math.min(length, size - at))) ?? new Uint8Array();
}

/** Minimum read: a chunk header and, for text chunks, the keyword. */
const BLOCK_BYTES = 128;
/** A remainder no longer than this is read at once. It often contains a card after the pixels. */
const END_BYTES = 16 * 1024;
/** Type of pixel chunks, as a number. */
const IDAT = 0x49444154;
/** A card chunk that isn't read yet. */
interface FoundChunk extends Pick<CardChunk, "type" | "keyword"> {
  begin: number;
  length: number;
}

/** Thrown for a card that takes too long to parse here. */
export class LongCardError extends Error {}

/**
 * Reads the card of a file.
 *
 * @param size File size in bytes.
 * @param maxBytes Maximum size of its JSON. Compressed text counts as longer.
 * @throws {AppError} `unprocessable`, `too_large`; {LongCardError} for a longer card
 */
export async function readCard(
  read: ReadBytes,
  size: number,
  isPngFile: boolean,
  maxBytes = Infinity,
): Promise<Card> {
  const blocks = new FileBlocks(read, size);
  if (isPngFile) return await readPngCard(blocks, maxBytes);
  if (size > maxBytes) throw new LongCardError();
  if (size > MAX_CARD_BYTES) throw new AppError("too_large", "The character card is too large");
  return parseCardText(await blocks.bytes(0, size));
}

async function readPngCard(blocks: FileBlocks, maxBytes: number): Promise<Card> {
  const found: FoundChunk[] = [];
  if (!isPng(await blocks.bytes(0, 8))) {
    throw new AppError("unprocessable", "Can't read the PNG: it has no PNG signature");
  }
  let at = 8;
  for (let count = 0; count < MAX_CHUNKS && at + 12 <= blocks.size; count++) {
    const head = await blocks.bytes(at, 8);
    const length = ((head[0]! << 24) | (head[1]! << 16) | (head[2]! << 8) | head[3]!) >>> 0;
    const type = String.fromCharCode(head[4]!, head[5]!, head[6]!, head[7]!);
    if (type === "IEND" || length > blocks.size - at - 12) break;
    const begin = at + 8;
    if (count === 0) parsePngHeader(await blocks.bytes(begin, length > 13 ? 0 : length));
    const isText = type === "tEXt" || type === "zTXt" || type === "iTXt";
    const keyword = isText
      ? getCardKeyword({ type, data: await blocks.bytes(begin, Math.min(length, 80)) })
      : undefined;
    if (keyword !== undefined) {
      const chunk = { type, keyword, begin, length };
      if (isLongCardChunk(chunk, maxBytes)) throw new LongCardError();
      const card = hasTopPriority(keyword) ? await tryReadCard(blocks, chunk) : undefined;
      if (card instanceof AppError || card === undefined) found.push(chunk);
      else return card;
    }
    at = begin + length + 4;
    if (type === "IDAT") at = await skipEqualChunks(blocks, at, length);
  }
  let failure: AppError | undefined;
  for (const chunk of selectCardChunks(found)) {
    const card = await tryReadCard(blocks, chunk);
    if (!(card instanceof AppError)) return card;
    failure ??= card;
  }
  throw failure ?? new AppError("unprocessable", "Can't read the character card: the PNG doesn't contain one");
}

/**
 * Skips pixel chunks of equal length.
 *
 * Encoders split pixels into chunks of one length, and no other chunk may be between them
 * (https://www.w3.org/TR/png-3/#5ChunkOrdering). So a valid header at a multiple of that length proves that all before
 * it are pixels, and a binary search is enough.
 *
 * @param at Offset after a pixel chunk.
 * @param length Length of its data.
 */
async function skipEqualChunks(blocks: FileBlocks, at: number, length: number): Promise<number> {
  const step = length + 12;
  const isAlike = async (count: number) => {
    const head = await blocks.bytes(at + (count - 1) * step, 8);
    const view = new DataView(head.buffer, head.byteOffset);
    return view.getUint32(0) === length && view.getUint32(4) === IDAT;
  };
  let [some, tooMany] = [0, Math.floor((blocks.size - at) / step) + 1];
  // Little follows the pixels, so the first guess is usually close.
  for (let count = tooMany - 1; tooMany - some > 1; count = (some + tooMany) >> 1) {
    if (await isAlike(count)) some = count;
    else tooMany = count;
  }
  return at + some * step;
}

/** Returns why a chunk can't be read: another one may be readable. */
async function tryReadCard(blocks: FileBlocks, { type, keyword, begin, length }: FoundChunk): Promise<Card | AppError> {
  if (length > MAX_TEXT_BYTES) return new AppError("too_large", "The text in the PNG is too long");
  const bytes = await blocks.bytes(begin - 8, length + 12);
  if (!hasValidCrc({ bytes })) return new AppError("unprocessable", "Can't read the PNG: a checksum is wrong");
  try {
    return parseCardChunks([{ type, keyword, data: () => bytes.subarray(8, -4) }]);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** Random access to a file with a small read-ahead. */
class FileBlocks {
  #block: Uint8Array = new Uint8Array();
  #start = 0;

  constructor(readonly read: ReadBytes, readonly size: number) {}

  /** Returns bytes of the file. @throws {AppError} `unprocessable` past the end */
  async bytes(at: number, length: number): Promise<Uint8Array> {
    if (at < this.#start || at + length > this.#start + this.#block.length) {
      const rest = this.size - at;
      this.#block = await this.read(at, Math.max(length, rest <= END_BYTES ? rest : BLOCK_BYTES));
      this.#start = at;
    }
    const bytes = this.#block.subarray(at - this.#start, at - this.#start + length);
    if (bytes.length < length) throw new AppError("unprocessable", "Can't read the card file: it's truncated");
    return bytes;
  }
}
