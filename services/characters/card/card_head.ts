/** Extracts what lists show from card files, reading as little as possible. Runs in the scan Worker. */
import { createHash } from "node:crypto";
import { AppError } from "../../errors.ts";
import { foldForSearch } from "../../json/search_fold.ts";
import { foldForSorting, quoteKey } from "../../json/text.ts";
import { type Card, getFolder, MAX_CARD_BYTES, parseCardText } from "./card.ts";
import { type CardChunk, getCardKeyword, hasTopPriority, MAX_TEXT_BYTES, parseCardChunks } from "../png/png_card.ts";
import { hasValidCrc, isPng, MAX_CHUNKS, parsePngHeader } from "../../attachments/images/png.ts";

/** A character in a list. `updated_at` is the time of its file. */
export interface CharacterItem {
  id: string;
  name: string;
  external: boolean;
  has_avatar: boolean;
  updated_at: string;
  tags: string[];
  creator: string;
  /** Marked as a favorite, as in SillyTavern: `extensions.fav` of the card. */
  favorite: boolean;
  /** `null` if it's in no folder. */
  folder: string | null;
  /** Set if the file has no readable card: only ID, time and the last known name are right then. */
  unreadable?: true;
}

/** One row of table `card_file`. */
export interface CardRow {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
  hasAvatar: boolean;
  /** Sort key, see `quoteKey`; `null` for a file of another program without a readable card, which no list has. */
  name: string | null;
  /** Text for searching. */
  search: string;
  /** Case-folded, without duplicates. */
  tags: string[];
  /** JSON of a `CharacterItem`; `""` if there is none. */
  item: string;
  /** Set for a file of ours without a readable card. */
  isUnreadable?: true;
}

/** A card file on disk. */
export interface CardFileStat {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
}

/** Maximum number of tags in a list item. */
const MAX_LISTED_TAGS = 100;
const MAX_LISTED_CHARACTERS = 500;

/** Minimum read: a chunk header and, for text chunks, the keyword. */
const BLOCK_BYTES = 128;
/** A remainder no longer than this is read at once. It often contains a card after the pixels. */
const END_BYTES = 16 * 1024;
/** Type of pixel chunks, as a number. */
const IDAT = 0x49444154;
/** Most reads are shorter and share one buffer. */
export const BUFFER_BYTES = 64 * 1024;

/** Returns what lists show of a card. */
export function toCharacterItem(file: CardFileStat, card: Card): CharacterItem {
  const { data } = card;
  return {
    id: file.id,
    name: data.name.slice(0, MAX_LISTED_CHARACTERS),
    external: file.isExternal,
    has_avatar: isPngPath(file.path),
    updated_at: new Date(file.mtimeMs).toISOString(),
    tags: data.tags.slice(0, MAX_LISTED_TAGS).map((tag) => tag.slice(0, MAX_LISTED_CHARACTERS)),
    creator: data.creator.slice(0, MAX_LISTED_CHARACTERS),
    // Old versions of SillyTavern write the string.
    favorite: data.extensions.fav === true || data.extensions.fav === "true",
    folder: getFolder(card),
  };
}

/** Returns the row of a card. */
export function toCardRow(file: CardFileStat, card: Card): CardRow {
  const item = toCharacterItem(file, card);
  const tags = [...new Set(item.tags.map(foldForSorting))];
  return {
    ...file,
    hasAvatar: item.has_avatar,
    name: quoteKey(item.name),
    search: [item.name, item.creator, ...item.tags].map(foldForSearch).join("\n"),
    tags,
    item: JSON.stringify(item),
  };
}

/**
 * Returns the row of a file without a readable card. It's read again when it changes.
 *
 * @param knownName Its name when it was last read; the ID by default.
 */
export function toUnreadableRow(file: CardFileStat, knownName = file.id): CardRow {
  const row = { ...file, hasAvatar: isPngPath(file.path), tags: [] };
  if (file.isExternal) return { ...row, name: null, search: "", item: "" };
  const item: CharacterItem = {
    id: file.id,
    name: knownName,
    external: false,
    has_avatar: false,
    updated_at: new Date(file.mtimeMs).toISOString(),
    tags: [],
    creator: "",
    favorite: false,
    folder: null,
    unreadable: true,
  };
  return {
    ...row,
    name: quoteKey(item.name),
    search: foldForSearch(item.name),
    item: JSON.stringify(item),
    isUnreadable: true,
  };
}

/** Derives the id of a file whose name isn't one. Stable for the same folder and name. */
export function deriveCardId(folder: string, name: string): string {
  return `f-${createHash("sha256").update(`${folder}\0${name}`).digest("base64url").slice(0, 22)}`;
}

/** Reports whether a card file is a PNG. */
export function isPngPath(path: string): boolean {
  return /\.png$/i.test(path);
}

/**
 * Reads the card of a file with few reads: of a PNG only chunk headers and card chunks.
 *
 * @param size File size in bytes.
 * @param buffer Shared read buffer of 64 KiB, for reading many files.
 * @throws {AppError} `unprocessable`, `too_large`; errors of the system for an unreadable file
 */
export function readCardSync(path: string, size: number, buffer = new Uint8Array(BUFFER_BYTES)): Card {
  using file = Deno.openSync(path);
  const blocks = new FileBlocks(file, size, buffer);
  if (!isPngPath(path)) {
    if (size > MAX_CARD_BYTES) throw new AppError("too_large", "The character card is too large");
    return parseCardText(blocks.bytes(0, size));
  }
  return readPngCard(blocks);
}

function readPngCard(blocks: FileBlocks): Card {
  const found: CardChunk[] = [];
  if (!isPng(blocks.bytes(0, 8))) throw new AppError("unprocessable", "Can't read the PNG: it has no PNG signature");
  let at = 8;
  for (let count = 0; count < MAX_CHUNKS && at + 12 <= blocks.size; count++) {
    const head = blocks.bytes(at, 8);
    const length = ((head[0]! << 24) | (head[1]! << 16) | (head[2]! << 8) | head[3]!) >>> 0;
    const type = String.fromCharCode(head[4]!, head[5]!, head[6]!, head[7]!);
    if (type === "IEND" || length > blocks.size - at - 12) break;
    const begin = at + 8;
    if (count === 0) parsePngHeader(blocks.bytes(begin, length > 13 ? 0 : length));
    const isText = type === "tEXt" || type === "zTXt" || type === "iTXt";
    const keyword = isText ? getCardKeyword({ type, data: blocks.bytes(begin, Math.min(length, 80)) }) : undefined;
    if (keyword !== undefined) {
      const chunk = { type, keyword, data: () => readCheckedData(blocks, begin, length) };
      const card = hasTopPriority(keyword) ? tryReadCard(chunk) : undefined;
      if (card !== undefined) return card;
      found.push(chunk);
    }
    at = begin + length + 4;
    if (type === "IDAT") at = skipEqualChunks(blocks, at, length);
  }
  return parseCardChunks(found);
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
function skipEqualChunks(blocks: FileBlocks, at: number, length: number): number {
  const step = length + 12;
  const isAlike = (count: number) => {
    const head = blocks.bytes(at + (count - 1) * step, 8);
    const view = new DataView(head.buffer, head.byteOffset);
    return view.getUint32(0) === length && view.getUint32(4) === IDAT;
  };
  let [some, tooMany] = [0, Math.floor((blocks.size - at) / step) + 1];
  // Little follows the pixels, so the first guess is usually close.
  for (let count = tooMany - 1; tooMany - some > 1; count = (some + tooMany) >> 1) {
    if (isAlike(count)) some = count;
    else tooMany = count;
  }
  return at + some * step;
}

function tryReadCard(chunk: CardChunk): Card | undefined {
  try {
    return parseCardChunks([chunk]);
  } catch (error) {
    if (error instanceof AppError) return undefined; // Another chunk may be readable.
    throw error;
  }
}

/** Returns the data of a chunk after checking its CRC. */
function readCheckedData(blocks: FileBlocks, begin: number, length: number): Uint8Array {
  if (length > MAX_TEXT_BYTES) throw new AppError("too_large", "The text in the PNG is too long");
  const bytes = blocks.bytes(begin - 8, length + 12);
  if (!hasValidCrc({ bytes })) throw new AppError("unprocessable", "Can't read the PNG: a checksum is wrong");
  return bytes.subarray(8, -4);
}

/** Random access to a file with a small read-ahead. */
class FileBlocks {
  readonly size: number;
  readonly #file: Deno.FsFile;
  #block: Uint8Array<ArrayBuffer>;
  #start = 0;
  /** Position of the next sequential read. */
  #end = 0;

  /** @param buffer Holds the last read; must not be used elsewhere. */
  constructor(file: Deno.FsFile, size: number, buffer: Uint8Array<ArrayBuffer>) {
    this.#file = file;
    this.size = size;
    this.#block = buffer;
  }

  /** Returns bytes of the file, valid until the next call. @throws {AppError} `unprocessable` past the end */
  bytes(at: number, length: number): Uint8Array {
    if (at < this.#start || at + length > this.#end) this.#load(at, length);
    return this.#block.subarray(at - this.#start, at - this.#start + length);
  }

  #load(at: number, length: number): void {
    if (length > this.#block.length) this.#block = new Uint8Array(length);
    if (at !== this.#end) this.#file.seekSync(at, Deno.SeekMode.Start);
    this.#start = this.#end = at;
    const rest = this.size - at;
    const readLength = Math.max(length, rest <= END_BYTES ? rest : BLOCK_BYTES);
    while (this.#end < at + length) {
      const count = this.#file.readSync(this.#block.subarray(this.#end - at, readLength));
      if (count === null) throw new AppError("unprocessable", "Can't read the card file: it's truncated");
      this.#end += count;
    }
  }
}
