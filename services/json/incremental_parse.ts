/**
 * Parses long JSON documents in pieces, and scans JSON without parsing it. `JSON.parse` alone would block the thread
 * for 5 ms per megabyte.
 */
import { yieldIfTickUsedUp } from "../async/delay.ts";

/** Number of bytes of a list to parse at a time: about 0.3 ms of work. */
const PIECE_BYTES = 64 * 1024;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [LIST_BEGIN, LIST_END, OBJECT_BEGIN, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/** A list that is the document, or a direct member of its object, from bracket to bracket. */
interface List {
  start: number;
  end: number;
  /** Positions of the commas at which the list is split. */
  cuts: number[];
}

/**
 * Parses a document like `JSON.parse`, but yields to the event loop between pieces of its list, or of lists that are
 * direct members of its object. Other documents are parsed in one step.
 *
 * @param bytes UTF-8, with or without a byte order mark.
 * @param maxDepth Maximum number of nesting levels.
 * @throws {TypeError} if the bytes aren't UTF-8.
 * @throws {SyntaxError} if the text isn't JSON.
 * @throws {RangeError} if it's nested deeper.
 */
export async function parseJsonIncrementally(bytes: Uint8Array, maxDepth: number): Promise<unknown> {
  const search = new ListSearch(bytes);
  while (!search.isDone) {
    search.goOn();
    if (search.deepest > maxDepth) throw new RangeError(`Nested deeper than ${maxDepth} levels`);
    await yieldIfTickUsedUp();
  }
  // A placeholder for the items of a list. Documents can't contain it.
  const token = crypto.randomUUID();
  let [around, from] = ["", 0];
  const lists: unknown[][] = [];
  for (const list of search.lists) {
    around += `${decodeItem(bytes.subarray(from, list.start), from > 0)}"${token}${lists.length}"`;
    lists.push(await iterateItems(bytes, list));
    from = list.end;
  }
  const document: unknown = JSON.parse(around + decodeItem(bytes.subarray(from), from > 0));
  if (lists.length > 0) {
    // If a name occurs twice, the last value counts, as in `JSON.parse`.
    for (const value of Array.isArray(document) ? [document] : Object.values(document as object)) {
      const first: unknown = Array.isArray(value) ? value[0] : undefined;
      if (typeof first !== "string" || !first.startsWith(token)) continue;
      value.length = 0;
      for (const item of lists[Number(first.slice(token.length))]!) value.push(item);
    }
  }
  return document;
}

/** Parses the items of a list. If the whole text isn't valid JSON, then a piece or the rest isn't, either. */
async function iterateItems(bytes: Uint8Array, { start, end, cuts }: List): Promise<unknown[]> {
  const items: unknown[] = [];
  let from = start;
  for (const to of [...cuts, end]) {
    const piece: unknown[] = JSON.parse(`[${decodeItem(bytes.subarray(from, to), true)}]`);
    if (piece.length === 0) throw new SyntaxError("Unexpected comma in a list");
    for (const item of piece) items.push(item);
    from = to + 1;
    await yieldIfTickUsedUp();
  }
  return items;
}

function decodeItem(bytes: Uint8Array, ignoreBOM: boolean): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM }).decode(bytes);
}

/** Finds lists that are long enough to be split. Doesn't validate: for invalid JSON, the result is undefined. */
class ListSearch {
  readonly lists: List[] = [];
  /** Maximum nesting so far. */
  deepest = 0;
  /** Depth of the lists that can be split, from 1. */
  readonly #listDepth: number;
  readonly #bytes: Uint8Array;
  #at = 0;
  #depth = 0;
  #isInString = false;
  /** The list being read, if it can be split. */
  #list: List | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#listDepth = bytes.find((byte) => byte === LIST_BEGIN || byte === OBJECT_BEGIN) === LIST_BEGIN ? 1 : 2;
  }

  get isDone(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Scans the next bytes. */
  goOn(): void {
    const bytes = this.#bytes;
    const until = Math.min(this.#at + 4 * PIECE_BYTES, bytes.length);
    let at = this.#at;
    while (at < until) {
      const byte = bytes[at++];
      if (this.#isInString) {
        if (byte === QUOTE) this.#isInString = false;
        else if (byte === BACKSLASH) at++;
        continue;
      }
      switch (byte) {
        case QUOTE:
          this.#isInString = true;
          break;
        case LIST_BEGIN:
        case OBJECT_BEGIN:
          if (++this.#depth > this.deepest) this.deepest = this.#depth;
          if (this.#depth === this.#listDepth && byte === LIST_BEGIN) this.#list = { start: at, end: at, cuts: [] };
          break;
        case LIST_END:
        case OBJECT_END:
          if (this.#depth-- === this.#listDepth) this.#endList(at - 1);
          break;
        case COMMA:
          if (this.#depth === this.#listDepth) this.#cut(at - 1);
      }
    }
    this.#at = at;
  }

  #cut(at: number): void {
    if (this.#list === undefined) return;
    const { start, cuts } = this.#list;
    if (at - (cuts.at(-1) ?? start) >= PIECE_BYTES) cuts.push(at);
  }

  #endList(at: number): void {
    const list = this.#list;
    this.#list = undefined;
    if (list !== undefined && list.cuts.length > 0) this.lists.push({ ...list, end: at });
  }
}

/** `[` and `{`, and also `]` and `}`, differ only in this bit. */
const CASE_BIT = 0x20;
const [OPENING, CLOSING] = [0x5b | CASE_BIT, 0x5d | CASE_BIT];
const OPENING_BRACKET = 0x5b;

/**
 * Reports whether JSON has more levels than a limit. Recursive code over such a value would overflow the stack.
 *
 * @param bytes UTF-8. For invalid JSON, the result is undefined; the parser rejects it anyway.
 */
export function isNestedDeeper(bytes: Uint8Array, limit: number): boolean {
  if (bytes.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = findStringEnd(bytes, at);
      if (at < 0) return false;
    } else if ((byte | CASE_BIT) === OPENING) {
      if (++depth > limit) return true;
    } else if ((byte | CASE_BIT) === CLOSING) depth--;
  }
  return false;
}

/** Reports whether a parsed value has more levels than a limit. Takes a tenth of the time of `isNestedDeeper`. */
export function isValueDeeper(value: unknown, limit: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isValueDeeper(item, limit - 1));
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name];
    if (typeof member === "object" && isValueDeeper(member, limit - 1)) return true;
  }
  return false;
}

/**
 * Yields the bytes of each element of a JSON array.
 *
 * @throws {SyntaxError} if the text isn't an array or ends early
 */
export function* splitArray(bytes: Uint8Array): Generator<Uint8Array> {
  let at = bytes.findIndex((byte) => byte > 0x20 && byte < 0x80); // After white space and a byte order mark
  if (at < 0 || bytes[at] !== OPENING_BRACKET) throw new SyntaxError("Not a JSON array");
  let depth = 0;
  let start = at + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = findStringEnd(bytes, at);
      if (at < 0) break;
    } else if ((byte | CASE_BIT) === OPENING) depth++;
    else if ((byte | CASE_BIT) === CLOSING) {
      if (--depth > 0) continue;
      if (!isBlank(bytes, start, at)) yield bytes.subarray(start, at);
      return;
    } else if (byte === COMMA && depth === 1) {
      yield bytes.subarray(start, at);
      start = at + 1;
    }
  }
  throw new SyntaxError("The JSON array ends early");
}

/** Returns the offset of the quotation mark that ends a string; -1 if there is none. */
function findStringEnd(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1);; end = bytes.indexOf(QUOTE, end + 1)) {
    if (end < 0) return -1;
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! > 0x20) return false;
  return true;
}
