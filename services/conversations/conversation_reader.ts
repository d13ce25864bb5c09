/** Gives conversations as the API's JSON: blocks opened in parallel and joined, never parsed, streamed with bounded memory. */
import { ByteBudget, type Reservation } from "../async/byte_budget.ts";
import { AppError } from "../errors.ts";
import { joinedBytes } from "../storage/concat_bytes.ts";
import { yieldIfTickUsedUp } from "../async/yield_to_event_loop.ts";
import { Semaphore } from "../async/semaphore.ts";
import type { BlockList, BlockRow } from "./blocks/block_rows.ts";
import { parseBlock } from "./blocks/block_text.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import { type ConversationState, headJson } from "./conversation.ts";
import type { ConversationStore, ListCursor } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";
import type { Message } from "./message.ts";
import type { VariantRow, VariantStore } from "./variants.ts";

/** A conversation up to this size is answered in one step, and not counted against the byte budget. Sealed, as all here. */
const WHOLE_BYTES = 512 * 1024;
/** Bytes that a streamed answer reads and opens together, and then sends as one piece. A message is never divided. */
const WINDOW_BYTES = 48 * 1024;
/** The same while few answers are sent, which makes a single one faster. */
const WIDE_WINDOW_BYTES = 512 * 1024;
const FEW = 4;
/** Longer windows are sent in pieces of this size. */
const PIECE_BYTES = 128 * 1024;
/** Pieces of lists of small conversations have at least this size. */
const MIN_PIECE_BYTES = 32 * 1024;
/**
 * Memory that a streamed answer takes as long as it lasts, also while its client reads nothing: most of it is in the
 * runtime, which takes some 400 KiB of an answer before it waits for the client.
 */
const STREAM_BYTES = 512 * 1024;
/** Larger windows, which are single messages, count with their own size: sealed and opened. */
const LARGE_BYTES = WIDE_WINDOW_BYTES;
const LARGE_WEIGHT = 2;
/** Memory of all such windows together. */
const LARGE_LIMIT_BYTES = 64 * 1024 * 1024;
/** Streamed answers that make their next piece at the same time; the others wait for their turn. */
const AT_ONCE = 2;
const DEFAULT_PAGE = 100;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const COMMA = encoder.encode(",");
const UNREADABLE = '"error":{"code":"unreadable"}';
/** Finds a message with several versions in the JSON text of a block. */
const SEVERAL_VERSIONS = /"variant_count":(?!1\b)/;

/** A part of a conversation that can't be read. The rest is read without it: see docs/decisions. */
export type Damage =
  /** Title, participants and all other fields but the messages. The fields that lists show replace them. */
  | { part: "head" }
  | { part: "draft" }
  /** Adjacent messages that are still stored, after the message `after`, or at the beginning if that is null. */
  | { part: "messages"; message_ids: string[]; after: string | null }
  /** Versions of these messages other than the active one. */
  | { part: "variants"; message_ids: string[] };

/** How much of the messages is wanted. */
export interface ReadOptions {
  /** All texts of messages that have several, as `variants` of the message. */
  hasVariants?: boolean;
  /** What follows versions that aren't active, as `continuations` of the conversation. */
  hasContinuations?: boolean;
}

/** How to read an answer that may be streamed. */
export interface OpenOptions extends ReadOptions {
  /** Ends the wait for memory. */
  signal?: AbortSignal;
  /** The request has taken effect, so its answer doesn't wait for memory and isn't refused. */
  isUnderWay?: boolean;
}

/** Parts of an answer. A number is the memory that has to be reserved before the next part is asked for. */
type Windows = AsyncGenerator<Uint8Array[] | number>;

/** One page of messages, oldest first. */
export interface MessagePage {
  items: Message[];
  /** `before` of the page with the messages before these; `null` at the begin of the conversation. */
  next_cursor: string | null;
  /** Messages among these that can't be read. */
  damaged?: Damage[];
}

/** What reading stands on. */
export interface ConversationReaderDeps {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  live: LiveReplies;
  budget: ByteBudget;
}

/** Reads conversations whole or as lists. */
export class ConversationReader {
  #store: ConversationStore;
  #blocks: BlockStore;
  #variants: VariantStore;
  #live: LiveReplies;
  readonly #budget: ByteBudget;
  /**
   * Memory of windows with a very long message. Apart from the others, as who waits for it has some of those: otherwise
   * all could wait for each other.
   */
  readonly largeBudget = new ByteBudget({ limitBytes: LARGE_LIMIT_BYTES, reserveBytes: 0, waitMs: Infinity });
  readonly #semaphore = new Semaphore(AT_ONCE);
  #streams = 0;
  #ids: string[] = [];

  constructor({ store, blocks, variants, live, budget }: ConversationReaderDeps) {
    this.#budget = budget;
    this.#store = store;
    this.#blocks = blocks;
    this.#variants = variants;
    this.#live = live;
  }

  /**
   * Gives one conversation with all its messages. What can't be read is named in `damaged`.
   *
   * @throws {AppError} `not_found`
   */
  async read(id: string, options: ReadOptions = {}): Promise<{ revision: number; json: Uint8Array }> {
    const { revision, parts } = this.#begin(id, options);
    return { revision, json: join((await parts).parts) };
  }

  /**
   * Gives a conversation for an export, and the names of its parts that can't be read.
   *
   * @throws {AppError} `not_found`
   */
  async readWithDamage(id: string): Promise<{ json: Uint8Array; damaged: Damage[] }> {
    const read = await this.#begin(id, {}).parts;
    return { json: join(read.parts), damaged: read.damaged };
  }

  /**
   * Returns what follows versions that aren't active as JSON Lines of `{message_id, n, messages}`, along the active versions
   * below. Blocks are opened and joined and never parsed.
   *
   * @param onUnreadable Called for each of them of which a block can't be opened.
   */
  continuations(id: string, onUnreadable: (one: { mid: string; n: number }) => void): Promise<Uint8Array[]> {
    const lines = this.#continuationRows(id).map(async ({ mid, n, rows }) => {
      const opened = await Promise.all(rows.map((row) => this.#blocks.open(id, row).catch(() => undefined)));
      if (opened.includes(undefined)) onUnreadable({ mid, n });
      return [
        encoder.encode(`${continuationOpening(mid, n)}[`),
        ...commaSeparated(opened.filter((text) => text !== undefined)),
        encoder.encode("]}\n"),
      ];
    });
    return Promise.all(lines).then((all) => all.flat());
  }

  /** Reads the rows at once, so that they are of one state. */
  #continuationRows(id: string): { mid: string; n: number; rows: BlockRow[] }[] {
    const tree = this.#blocks.tree(id);
    return tree.points().flatMap((point) =>
      [...point.segments.keys()].filter((n) => n !== point.active).flatMap((n) => {
        const rows = this.#blocks.rowsIn(id, tree.stretchesFrom(tree.startOf(point, n)!));
        return [{ mid: point.mid, n, rows }];
      })
    );
  }

  /** Returns the size of a conversation's messages, also off the active path, sealed. */
  sizeBytes(id: string): number {
    return this.#blocks.sizeBytes(id);
  }

  /**
   * Gives one conversation with all its messages; a large one piece by piece, with no more of it in memory than a window.
   * What can't be read of a large one is named in `damaged` at its end.
   *
   * A change while it is sent doesn't mix two states: the pieces go on only if what was sent is the same in the new one.
   *
   * @throws {AppError} `not_found`, `busy`. While the pieces are read: `conflict` when a message that was sent has changed.
   */
  async open(
    id: string,
    { signal, isUnderWay = false, ...options }: OpenOptions = {},
  ): Promise<{ revision: number; json: Uint8Array | AsyncGenerator<Uint8Array> }> {
    if (this.#blocks.list(id).bytes <= WHOLE_BYTES) return await this.read(id, options);
    const reservation = isUnderWay
      ? this.#budget.take(STREAM_BYTES)
      : await this.#budget.reserve(STREAM_BYTES, { signal });
    try {
      const { revision, windows } = this.#beginLarge(id, options);
      return { revision, json: this.#streamed(windows, reservation, signal) };
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /** Gives one conversation without its messages, with their count. @throws {AppError} `not_found` */
  head(id: string): { revision: number; json: Uint8Array } {
    const { revision, text, damaged } = this.#headText(id);
    return { revision, json: encoder.encode(`${text}${damagedText(damaged)}}`) };
  }

  /**
   * Gives what a page needs to show a conversation, all of one state: what `head` gives, its last messages as `messages`
   * and the `next_cursor` to those before them.
   *
   * @param limit Most messages.
   * @throws {AppError} `not_found`
   */
  recent(id: string, limit: number): { revision: number; json: Uint8Array } {
    const { revision, text, damaged } = this.#headText(id);
    const { items, next_cursor, damaged: lost = [] } = this.page(id, limit);
    const rest = `"messages":${JSON.stringify(items)},"next_cursor":${JSON.stringify(next_cursor)}`;
    return { revision, json: encoder.encode(`${text}${damagedText([...damaged, ...lost])},${rest}}`) };
  }

  /**
   * Gives the last messages, or those before a message. Opens no more blocks than the page needs.
   *
   * @throws {AppError} `not_found`
   */
  page(id: string, limit: number, before?: string): MessagePage {
    this.#store.revisionOf(id);
    let row = before === undefined ? this.#blocks.previous(id) : this.#blocks.rowOf(id, before);
    if (before !== undefined && row === undefined) {
      throw new AppError("not_found", `Conversation "${id}" has no message "${before}"`);
    }
    let found: Message[] = [];
    let hasMore = false;
    const unreadable: { row: BlockRow; before: string | undefined }[] = [];
    for (; row !== undefined && !hasMore; row = this.#blocks.previous(id, row)) {
      const messages = this.#blocks.readableMessagesOf(id, row);
      if (messages === undefined) {
        unreadable.push({ row, before: found[0]?.id });
        continue;
      }
      const end = messages.findIndex((message) => message.id === before);
      found = [...end < 0 ? messages : messages.slice(0, end), ...found];
      hasMore = found.length > limit;
    }
    const items = found.slice(-limit).map((message) =>
      this.#live.findByMessage(id, message.id)?.overlay(message) ?? message
    );
    // One behind the first message of this page; what is before it belongs to the next.
    const inside = unreadable.filter(({ before: next }) => !hasMore || next !== found[0]?.id);
    const damaged = inside.map(({ row }) => this.#damagedMessages(id, row));
    return {
      ...{ items, next_cursor: hasMore ? items[0]!.id : null },
      ...(damaged.length > 0 && { damaged: damaged.toReversed() }),
    };
  }

  /** Returns one message, also one that follows a version which isn't active, with what a running reply has written so far. */
  message(id: string, mid: string): Message {
    this.#store.get(id);
    const row = this.#blocks.rowAnywhere(id, mid);
    const message = row && this.#blocks.messagesOf(id, row).find((candidate) => candidate.id === mid);
    if (message === undefined) throw new AppError("not_found", `Conversation "${id}" has no message "${mid}"`);
    return this.#live.findByMessage(id, mid)?.overlay(message) ?? message;
  }

  /**
   * Gives the JSON array of all conversations with all messages, newest first. One that can't be read is an error in its
   * place, or after the messages that could.
   *
   * @param signal Ends the wait for memory.
   * @throws {AppError} `busy` before the first piece.
   */
  async *list(options: ReadOptions = {}, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const reservation = await this.#budget.reserve(STREAM_BYTES, { signal });
    yield* this.#streamed(this.#entries(options), reservation, signal);
  }

  /**
   * Gives an answer in pieces. A few are made at a time, so that hundreds of readers hold up nothing else, and each is
   * made when the client took the one before: an answer that isn't read has nothing in memory but its place.
   */
  async *#streamed(windows: Windows, reservation: Reservation, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const pieces = inPieces(windows);
    let large: Reservation | undefined;
    this.#streams++;
    try {
      for (;;) {
        const leave = await this.#semaphore.acquire();
        let result: IteratorResult<Uint8Array | number>;
        try {
          await yieldIfTickUsedUp();
          result = await pieces.next();
        } finally {
          leave();
        }
        if (result.done) return;
        if (typeof result.value !== "number") {
          yield result.value;
        } else {
          // After the permit is released: a reader that has the memory needs permits to return it.
          large?.release();
          large = result.value === 0 ? undefined : await this.largeBudget.reserve(result.value, { signal });
        }
      }
    } finally {
      this.#streams--;
      large?.release();
      reservation.release();
      await pieces.return(undefined);
    }
  }

  async *#entries(options: ReadOptions): Windows {
    const ids = this.#sharedIds();
    const ahead: { bytes: number; windows: Windows }[] = [];
    let [aheadBytes, next] = [0, 0];
    let separator = encoder.encode("[");
    while (next < ids.length || ahead.length > 0) {
      const maxBytes = this.#windowBytes();
      while (next < ids.length && (ahead.length === 0 || aheadBytes < maxBytes)) {
        const entry = this.#entry(ids[next++]!, options, maxBytes);
        if (entry === undefined) continue;
        ahead.push(entry);
        aheadBytes += entry.bytes;
      }
      const entry = ahead.shift();
      if (entry === undefined) break;
      yield [separator];
      separator = COMMA;
      yield* entry.windows;
      aheadBytes -= entry.bytes;
    }
    yield [...separator === COMMA ? [] : [separator], encoder.encode("]")];
  }

  /** Gives the ids of all conversations; lists that began since the last change share one array. */
  #sharedIds(): string[] {
    const ids = this.#store.ids();
    if (ids.length !== this.#ids.length || ids.some((id, n) => id !== this.#ids[n])) this.#ids = ids;
    return this.#ids;
  }

  /** Gives one page of summaries as JSON text, newest first. The cursor is a place, so pages stay stable while conversations change. */
  summaries(limit = DEFAULT_PAGE, cursor?: string): string {
    const rows = this.#store.summaries(limit + 1, cursor === undefined ? undefined : parseCursor(cursor));
    const shown = rows.slice(0, limit);
    // A page of 500 is some 4 ms of work.
    const texts = shown.map((row) => {
      try {
        const text = this.#store.openSummary(row);
        return `${text.slice(0, -1)},"draft_version":${row.draft_version}}`;
      } catch {
        return JSON.stringify({ id: row.id, error: { code: "unreadable" } });
      }
    });
    const last = shown.at(-1);
    const next = rows.length > limit && last !== undefined
      ? cursorText({ updatedAtMs: last.updated_at, id: last.id })
      : null;
    return `{"items":[${texts.join(",")}],"next_cursor":${JSON.stringify(next)}}`;
  }

  /** The JSON of a head, not closed yet. */
  #headText(id: string): { revision: number; text: string; damaged: Damage[] } {
    const { state, opening, damaged } = this.#opening(id);
    return { revision: state.revision, text: `${opening},"message_count":${state.messageCount}`, damaged };
  }

  /** Gives what `headJson` does, as far as it can be read. */
  #opening(id: string): { state: ConversationState; opening: string; damaged: Damage[] } {
    const { state, isHeadUnreadable } = this.#store.getReadable(id);
    const draft = this.#store.draft(id);
    const damaged: Damage[] = [];
    if (isHeadUnreadable) damaged.push({ part: "head" });
    if (draft.isUnreadable) damaged.push({ part: "draft" });
    return { state, opening: headJson(state, draft), damaged };
  }

  #damagedMessages(id: string, row: BlockRow): Damage {
    const ids = this.#blocks.midsOf(id, row);
    for (let before = this.#blocks.previous(id, row); before !== undefined;) {
      const last = this.#blocks.readableMessagesOf(id, before)?.at(-1);
      if (last !== undefined) return { part: "messages", message_ids: ids, after: last.id };
      before = this.#blocks.previous(id, before);
    }
    return { part: "messages", message_ids: ids, after: null };
  }

  /** Reads the rows of a conversation at once, so that what follows is one consistent state, and opens them. */
  #begin(
    id: string,
    { hasVariants = false, hasContinuations = false }: ReadOptions,
  ): { revision: number; bytes: number; parts: Promise<{ parts: Uint8Array[]; damaged: Damage[] }> } {
    const { state, opening, damaged } = this.#opening(id);
    const rows = this.#blocks.rows(id);
    const continuations = hasContinuations ? this.#continuationRows(id) : [];
    const live = this.#live.findByConversation(id);
    const texts: VariantRow[] = hasVariants ? this.#variants.rowsIn(id) : [];
    // Only these are parsed and written out again.
    const changing = this.#blocks.idsOf(id, [...texts.map(({ mid }) => mid), ...(live ? [live.messageId] : [])]);
    const open = async (row: BlockRow): Promise<Uint8Array> => {
      const text = await this.#blocks.open(id, row);
      if (!changing.has(row.id)) return text;
      const messages = parseBlock(decoder.decode(text)).map((message) =>
        message.id === live?.messageId ? live.overlay(message) : message
      );
      const whole = await this.#variants.besideThem(messages, texts).catch(() => {
        const mids = messages.filter(({ variant_count: count }) => count > 1).map((message) => message.id);
        damaged.push({ part: "variants", message_ids: mids });
        return messages;
      });
      return encoder.encode(whole.map((message) => JSON.stringify(message)).join(","));
    };
    const assemble = async () => {
      const openAll = async (rows: BlockRow[]) => {
        const opened = await Promise.all(
          rows.map((row) => open(row).catch(() => void damaged.push(this.#damagedMessages(id, row)))),
        );
        return commaSeparated(opened.filter((text) => text !== undefined));
      };
      const messages = await openAll(rows);
      const following: Uint8Array[] = [];
      for (const [index, { mid, n, rows }] of continuations.entries()) {
        const start = `${index === 0 ? `,"continuations":[` : ","}${continuationOpening(mid, n)}[`;
        following.push(encoder.encode(start), ...await openAll(rows), encoder.encode("]}"));
      }
      const parts: Uint8Array[] = [encoder.encode(`${opening}${damagedText(damaged)},"messages":[`)];
      parts.push(...messages, encoder.encode("]"), ...following);
      parts.push(encoder.encode(continuations.length === 0 ? "}" : "]}"));
      return { parts, damaged };
    };
    return {
      revision: state.revision,
      bytes: [...rows, ...texts].reduce((sum, row) => sum + row.sealed.length, 0),
      parts: assemble(),
    };
  }

  /** Begins to read a conversation that is sent window by window. @param isListed Damage ends it with an error. */
  #beginLarge(id: string, options: ReadOptions, isListed = false): { revision: number; windows: Windows } {
    const { state, opening, damaged } = this.#opening(id);
    if (isListed && damaged.length > 0) throw new AppError("internal", `Can't read conversation "${id}"`);
    const start = encoder.encode(`${opening},"messages":[`);
    const { revision } = state;
    return { revision, windows: this.#largeWindows(id, { start, revision, damaged, options, isListed }) };
  }

  async *#largeWindows(
    id: string,
    { start, damaged, options, isListed, ...begun }: {
      start: Uint8Array;
      revision: number;
      damaged: Damage[];
      options: ReadOptions;
      isListed: boolean;
    },
  ): Windows {
    yield [start];
    let revision: number | undefined = begun.revision;
    let blocks: BlockList | undefined;
    let isFirst = true;
    try {
      for (let at = 0;;) {
        const before = blocks;
        const found = this.#store.find(id)?.revision;
        if (blocks === undefined || found !== revision) {
          blocks = this.#blocks.list(id);
          const isSame = found !== undefined && (before?.hasSameStart(blocks, at) ?? true);
          if (!isSame) throw new AppError("conflict", `Conversation "${id}" changed while it was being sent`);
          revision = found;
        }
        if (at >= blocks.length) break;
        const { end, bytes } = blocks.stretch(at, this.#windowBytes());
        if (bytes > LARGE_BYTES) {
          yield bytes * LARGE_WEIGHT;
          if (this.#store.find(id)?.revision !== revision) continue;
        }
        const text = await this.#window(id, { blocks, at, end, isFirst, damaged, options });
        if (isListed && damaged.length > 0) throw new AppError("internal", `Can't read conversation "${id}"`);
        at = end;
        if (text !== undefined) {
          isFirst = false;
          yield [text];
        }
        if (bytes > LARGE_BYTES) yield 0;
      }
    } catch (error) {
      if (!isListed) throw error;
      yield 0;
      yield [encoder.encode(`],${UNREADABLE}}`)];
      return;
    }
    yield [encoder.encode(`]${damagedText(damaged)}}`)];
  }

  /** Reads and opens a few blocks: their messages as JSON, with a comma before each but the first of all. Frees what it used. */
  async #window(
    id: string,
    { blocks, at, end, isFirst, damaged, options: { hasVariants = false } }: {
      blocks: BlockList;
      at: number;
      end: number;
      isFirst: boolean;
      damaged: Damage[];
      options: ReadOptions;
    },
  ): Promise<Uint8Array | undefined> {
    const live = this.#live.findByConversation(id);
    const running = this.#blocks.idsOf(id, live ? [live.messageId] : []);
    const open = async (n: number): Promise<Uint8Array | undefined> => {
      let row: BlockRow | undefined;
      try {
        row = this.#blocks.version(id, blocks.nameAt(n));
        if (row === undefined) throw new AppError("internal", `Can't read messages of conversation "${id}"`);
        const text = await this.#blocks.open(id, row);
        freeBytes(row.sealed);
        const isRunning = running.has(row.id);
        if (!isRunning && !(hasVariants && SEVERAL_VERSIONS.test(decoder.decode(text)))) return text;
        const messages = parseBlock(decoder.decode(text)).map((message) =>
          message.id === live?.messageId ? live.overlay(message) : message
        );
        freeBytes(text);
        if (!hasVariants) return encodedMessages(messages);
        const mids = messages.filter(({ variant_count: count }) => count > 1).map((message) => message.id);
        const rows = this.#variants.rowsOf(id, mids);
        const whole = await this.#variants.besideThem(messages, rows).catch(() => {
          damaged.push({ part: "variants", message_ids: mids });
          return messages;
        });
        for (const { sealed } of rows) freeBytes(sealed);
        return encodedMessages(whole);
      } catch {
        damaged.push(this.#damagedMessages(id, row ?? this.#blocks.rows(id)[n]!));
        return undefined;
      }
    };
    const numbers = Array.from({ length: end - at }, (_, index) => at + index);
    const texts = (await Promise.all(numbers.map(open))).filter((text) => text !== undefined);
    if (texts.length === 0) return undefined;
    const joined = joinedBytes([...isFirst ? [] : [COMMA], ...commaSeparated(texts)]);
    texts.forEach(freeBytes);
    return joined;
  }

  /** Begins an entry of a list. */
  #entry(id: string, options: ReadOptions, maxBytes: number): { bytes: number; windows: Windows } | undefined {
    const unreadable = () => [encoder.encode(`{"id":${JSON.stringify(id)},${UNREADABLE},"messages":[]}`)];
    try {
      if (this.#blocks.list(id).bytes > maxBytes) {
        return { bytes: maxBytes, windows: this.#beginLarge(id, options, true).windows };
      }
      const { bytes, parts } = this.#begin(id, options);
      // A client that takes lists for whole must not take a part for a whole conversation.
      const whole = parts.then(({ parts, damaged }) => damaged.length === 0 ? parts : unreadable()).catch(unreadable);
      return { bytes, windows: once(whole) };
    } catch (error) {
      // Removed while the list was being sent: it is simply no longer there.
      if (error instanceof AppError && error.code === "not_found") return undefined;
      return { bytes: 0, windows: once(Promise.resolve(unreadable())) };
    }
  }

  #windowBytes(): number {
    return this.#streams <= FEW ? WIDE_WINDOW_BYTES : WINDOW_BYTES;
  }
}

async function* once(parts: Promise<Uint8Array[]>): Windows {
  yield await parts;
}

/** Joins short parts and cuts long ones. Nothing remains here of what was sent: each piece has bytes of its own. */
async function* inPieces(windows: Windows): AsyncGenerator<Uint8Array | number> {
  let piece: Uint8Array[] = [];
  let pieceBytes = 0;
  const take = () => {
    const taken = join(piece);
    [piece, pieceBytes] = [[], 0];
    return taken;
  };
  for await (const parts of windows) {
    if (typeof parts === "number") {
      yield parts;
      continue;
    }
    for (const part of parts) {
      if (pieceBytes > 0 && pieceBytes + part.length > PIECE_BYTES) yield take();
      if (part.length <= PIECE_BYTES) {
        piece.push(part);
        pieceBytes += part.length;
      } else {
        for (let at = 0; at < part.length; at += PIECE_BYTES) yield part.slice(at, at + PIECE_BYTES);
        freeBytes(part);
      }
    }
    if (pieceBytes >= MIN_PIECE_BYTES) yield take();
  }
  if (pieceBytes > 0) yield take();
}

function encodedMessages(messages: Message[]): Uint8Array {
  return encoder.encode(messages.map((message) => JSON.stringify(message)).join(","));
}

/** Frees bytes that are used no more. Collected as garbage, those of hundreds of readers would be in memory for seconds. */
function freeBytes({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}

/** The `damaged` field of a JSON object that has other fields before it; nothing where there is no damage. */
function damagedText(damaged: Damage[]): string {
  return damaged.length === 0 ? "" : `,"damaged":${JSON.stringify(damaged)}`;
}

function continuationOpening(mid: string, n: number): string {
  return `{"message_id":${JSON.stringify(mid)},"n":${n},"messages":`;
}

function commaSeparated(texts: Uint8Array[]): Uint8Array[] {
  return texts.flatMap((text, index) => index === 0 ? [text] : [COMMA, text]);
}

function join(parts: Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : joinedBytes(parts);
}

function cursorText(at: ListCursor): string {
  return `${at.updatedAtMs}.${at.id}`;
}

function parseCursor(text: string): ListCursor {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "This cursor did not come from a list of conversations");
  return { updatedAtMs: Number(match[1]), id: match[2]! };
}
