/** What lists show of a card, and how it is read out of a file without reading the file. Runs in the Worker that scans. */
import { createHash } from "node:crypto";
import { AppError } from "../../errors.ts";
import { folded, nameKey } from "../../storage/collation.ts";
import type { Card } from "./card.ts";
import { MAX_CARD_BYTES, parseCardText } from "./card_text.ts";
import { type CardChunk, cardKeyword, cardOfChunks, countsMost, MAX_TEXT_BYTES } from "../png/png_card.ts";
import { hasValidCrc, isPng, MAX_CHUNKS, readHeader } from "../../attachments/images/png_chunks.ts";

/** A character as lists show it; `updated_at` is the time of its file. */
export interface CharacterItem {
  id: string;
  name: string;
  external: boolean;
  has_avatar: boolean;
  updated_at: string;
  tags: string[];
  creator: string;
}

/** One row of `card_file`. */
export interface CardRow {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
  hasAvatar: boolean;
  /** What lists are ordered by, as `nameKey` gives it; `null` for a file that holds no readable card. */
  name: string | null;
  /** What is searched. */
  search: string;
  /** Folded, each once. */
  tags: string[];
  /** JSON of a CharacterItem; `""` where there is none. */
  item: string;
}

/** Where a card file lies and how it stands there. */
export interface CardPlace {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
}

/** Tags beyond these are not listed; what a card needs hundreds for is no tag. */
const MAX_LISTED_TAGS = 100;
const MAX_LISTED_CHARACTERS = 500;

/** What one read takes at least: the header of a chunk, and of a text chunk its keyword. */
const BLOCK_BYTES = 128;
/** An end of a file that is no longer is read at once: a card that lies behind the pixels is in it. */
const END_BYTES = 16 * 1024;
/** The name of chunks with pixels, as a number. */
const IDAT = 0x49444154;
/** Most reads are no longer than this, and share one buffer. */
export const BUFFER_BYTES = 64 * 1024;

/** Gives what lists show of a card. */
export function itemOf(place: CardPlace, { data }: Card): CharacterItem {
  return {
    id: place.id,
    name: data.name.slice(0, MAX_LISTED_CHARACTERS),
    external: place.isExternal,
    has_avatar: hasPicture(place.path),
    updated_at: new Date(place.mtimeMs).toISOString(),
    tags: data.tags.slice(0, MAX_LISTED_TAGS).map((tag) => tag.slice(0, MAX_LISTED_CHARACTERS)),
    creator: data.creator.slice(0, MAX_LISTED_CHARACTERS),
  };
}

/** Gives the row of a card. */
export function rowOf(place: CardPlace, card: Card): CardRow {
  const item = itemOf(place, card);
  const tags = [...new Set(item.tags.map(folded))];
  return {
    ...place,
    hasAvatar: item.has_avatar,
    name: nameKey(item.name),
    search: [folded(item.name), folded(item.creator), ...tags].join("\n"),
    tags,
    item: JSON.stringify(item),
  };
}

/** Gives the row of a file that holds no readable card: it is not looked into again until it changes. */
export function unreadableRow(place: CardPlace): CardRow {
  return { ...place, hasAvatar: hasPicture(place.path), name: null, search: "", tags: [], item: "" };
}

/** Gives the id of a file whose name is none: the same for the same folder and name. */
export function derivedId(folder: string, name: string): string {
  return `f-${createHash("sha256").update(`${folder}\0${name}`).digest("base64url").slice(0, 22)}`;
}

/** Says whether a card file is a picture. */
export function hasPicture(path: string): boolean {
  return /\.png$/i.test(path);
}

/**
 * Reads the card of a file with as few reads as it takes: of a PNG the chunk headers and the chunks with cards.
 *
 * @param size Of the file.
 * @param buffer To read into, for whoever reads many files; 64 KiB are enough.
 * @throws {AppError} `unprocessable`, `too_large`; what the system says of a file that cannot be read.
 */
export function readCardOf(path: string, size: number, buffer = new Uint8Array(BUFFER_BYTES)): Card {
  using file = Deno.openSync(path);
  const blocks = new FileBlocks(file, size, buffer);
  if (!hasPicture(path)) {
    if (size > MAX_CARD_BYTES) throw new AppError("too_large", "The character card is too long");
    return parseCardText(blocks.bytes(0, size));
  }
  return cardInBlocks(blocks);
}

function cardInBlocks(blocks: FileBlocks): Card {
  const found: CardChunk[] = [];
  if (!isPng(blocks.bytes(0, 8))) throw new AppError("unprocessable", "Cannot read the PNG: it does not begin as one");
  let at = 8;
  for (let count = 0; count < MAX_CHUNKS && at + 12 <= blocks.size; count++) {
    const head = blocks.bytes(at, 8);
    const length = ((head[0]! << 24) | (head[1]! << 16) | (head[2]! << 8) | head[3]!) >>> 0;
    const type = String.fromCharCode(head[4]!, head[5]!, head[6]!, head[7]!);
    if (type === "IEND" || length > blocks.size - at - 12) break;
    const begin = at + 8;
    if (count === 0) readHeader(blocks.bytes(begin, length > 13 ? 0 : length));
    const isText = type === "tEXt" || type === "zTXt" || type === "iTXt";
    const keyword = isText ? cardKeyword({ type, data: blocks.bytes(begin, Math.min(length, 80)) }) : undefined;
    if (keyword !== undefined) {
      const chunk = { type, keyword, data: () => checkedData(blocks, begin, length) };
      const card = countsMost(keyword) ? readableCard(chunk) : undefined;
      if (card !== undefined) return card;
      found.push(chunk);
    }
    at = begin + length + 4;
    if (type === "IDAT") at = behindAlike(blocks, at, length);
  }
  return cardOfChunks(found);
}

/**
 * Gives where the chunks with pixels end that are as long as the one before them. Writers cut pixels into pieces of one
 * length, and no other chunk may stand between them (PNG, third edition, section 5.6): so a header that is right at a
 * multiple of that length stands for all before it, and a search by halves takes the place of a walk.
 *
 * @param at Behind a chunk with pixels.
 * @param length Of its data.
 */
function behindAlike(blocks: FileBlocks, at: number, length: number): number {
  const step = length + 12;
  const isAlike = (count: number) => {
    const head = blocks.bytes(at + (count - 1) * step, 8);
    const view = new DataView(head.buffer, head.byteOffset);
    return view.getUint32(0) === length && view.getUint32(4) === IDAT;
  };
  let [some, tooMany] = [0, Math.floor((blocks.size - at) / step) + 1];
  // What stands behind the pixels is mostly short: the first guess leaves it little.
  for (let count = tooMany - 1; tooMany - some > 1; count = (some + tooMany) >> 1) {
    if (isAlike(count)) some = count;
    else tooMany = count;
  }
  return at + some * step;
}

function readableCard(chunk: CardChunk): Card | undefined {
  try {
    return cardOfChunks([chunk]);
  } catch (error) {
    if (error instanceof AppError) return undefined; // another chunk may be better
    throw error;
  }
}

/** Gives the data of a chunk whose check sum is right. */
function checkedData(blocks: FileBlocks, begin: number, length: number): Uint8Array {
  if (length > MAX_TEXT_BYTES) throw new AppError("too_large", "The text inside the PNG is too long");
  const bytes = blocks.bytes(begin - 8, length + 12);
  if (!hasValidCrc({ bytes })) throw new AppError("unprocessable", "Cannot read the PNG: a check sum is wrong");
  return bytes.subarray(8, -4);
}

/** A file read where it is asked for, and a little beyond. */
class FileBlocks {
  readonly size: number;
  readonly #file: Deno.FsFile;
  #block: Uint8Array<ArrayBuffer>;
  #begin = 0;
  /** Where the next read goes on unless it is told another place. */
  #end = 0;

  /** @param buffer What is read lies there; nobody else may use it meanwhile. */
  constructor(file: Deno.FsFile, size: number, buffer: Uint8Array<ArrayBuffer>) {
    this.#file = file;
    this.size = size;
    this.#block = buffer;
  }

  /** Gives bytes of the file; they stand until the next call. @throws {AppError} `unprocessable` past its end */
  bytes(at: number, length: number): Uint8Array {
    if (at < this.#begin || at + length > this.#end) this.#load(at, length);
    return this.#block.subarray(at - this.#begin, at - this.#begin + length);
  }

  #load(at: number, length: number): void {
    if (length > this.#block.length) this.#block = new Uint8Array(length);
    if (at !== this.#end) this.#file.seekSync(at, Deno.SeekMode.Start);
    this.#begin = this.#end = at;
    const rest = this.size - at;
    const wanted = Math.max(length, rest <= END_BYTES ? rest : BLOCK_BYTES);
    while (this.#end < at + length) {
      const count = this.#file.readSync(this.#block.subarray(this.#end - at, wanted));
      if (count === null) throw new AppError("unprocessable", "Cannot read the card file: it ends too early");
      this.#end += count;
    }
  }
}
