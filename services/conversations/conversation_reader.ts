/** Reads conversations as JSON: opens blocks in parallel and joins them without parsing, and streams large ones with bounded memory. */
import { ByteBudget, type Reservation } from "../async/byte_budget.ts";
import { AppError } from "../errors.ts";
import { joinBytes } from "../storage/file_pieces.ts";
import { yieldIfTickUsedUp } from "../async/yield_to_event_loop.ts";
import { Semaphore } from "../async/semaphore.ts";
import type { BlockList, BlockRow } from "./blocks/block_rows.ts";
import { parseBlock } from "./blocks/block_text.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import { type ConversationState, isBranch, isGreetingTitle, toHeadJson } from "./conversation.ts";
import type { ConversationStore, ListCursor } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";
import type { Message } from "./message.ts";
import type { VariantRow, VariantStore } from "./variants.ts";

/** Sizes are those of sealed data. Conversations up to this size are read at once and don't count against the byte budget. */
const WHOLE_BYTES = 512 * 1024;
/** A window: bytes that a stream opens together and sends as one piece. A message is never divided. */
const WINDOW_BYTES = 48 * 1024;
/** The window while few streams run, which makes each faster. */
const WIDE_WINDOW_BYTES = 512 * 1024;
const FEW = 4;
/** Longer windows are sent in pieces of this size. */
const PIECE_BYTES = 128 * 1024;
/** Smallest piece of a list of conversations. */
const MIN_PIECE_BYTES = 32 * 1024;
/**
 * Memory of a stream, also while its client reads nothing. Most of it is in the runtime, which buffers about 400 KiB before
 * it waits for the client.
 */
const STREAM_BYTES = 512 * 1024;
/** Larger windows are single long messages. Each counts with its own size, sealed and opened. */
const LARGE_BYTES = WIDE_WINDOW_BYTES;
const LARGE_WEIGHT = 2;
/** Memory of all large windows together. */
const LARGE_LIMIT_BYTES = 64 * 1024 * 1024;
/** Streams that prepare a piece at the same time. */
const AT_ONCE = 2;
const DEFAULT_PAGE = 100;
/** Conversations of earlier versions whose names are remembered; see `#nameFields`. */
const MAX_NAME_FIELDS = 10_000;

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

/** What to include of messages. */
export interface ReadOptions {
  /** All versions of messages, as `variants` of the message. */
  hasVariants?: boolean;
  /** Messages that follow inactive versions, as `continuations` of the conversation. */
  hasContinuations?: boolean;
}

/** How to open a conversation that may be streamed. */
export interface OpenOptions extends ReadOptions {
  /** Ends the wait for memory. */
  signal?: AbortSignal;
  /** The request has changed something already, so its response isn't refused for lack of memory. */
  isUnderWay?: boolean;
}

/** Parts of a response. A number is the memory to reserve before asking for the next part. */
type Windows = AsyncGenerator<Uint8Array[] | number>;

/** One page of messages, oldest first. */
export interface MessagePage {
  items: Message[];
  /** `before` of the previous page; `null` at the beginning of the conversation. */
  next_cursor: string | null;
  /** Messages of the page that can't be read. */
  damaged?: Damage[];
}

/** Dependencies of a ConversationReader. */
export interface ConversationReaderDeps {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  live: LiveReplies;
  budget: ByteBudget;
}

/** Reads conversations, pages of messages and lists. */
export class ConversationReader {
  #store: ConversationStore;
  #blocks: BlockStore;
  #variants: VariantStore;
  #live: LiveReplies;
  readonly #budget: ByteBudget;
  /**
   * Memory of large windows. It has a budget of its own because streams that wait for it hold memory of the general one:
   * sharing one budget could deadlock.
   */
  readonly largeBudget = new ByteBudget({ limitBytes: LARGE_LIMIT_BYTES, reserveBytes: 0, waitMs: Infinity });
  readonly #semaphore = new Semaphore(AT_ONCE);
  #streams = 0;
  #ids: string[] = [];
  /** See `#nameFields`. */
  readonly #nameFieldsOf = new Map<string, { revision: number; json: string }>();

  constructor({ store, blocks, variants, live, budget }: ConversationReaderDeps) {
    this.#budget = budget;
    this.#store = store;
    this.#blocks = blocks;
    this.#variants = variants;
    this.#live = live;
  }

  /**
   * Reads a conversation with all its messages. `damaged` names the parts that can't be read.
   *
   * @throws {AppError} `not_found`
   */
  async read(id: string, options: ReadOptions = {}): Promise<{ revision: number; json: Uint8Array }> {
    const { revision, parts } = this.#begin(id, options);
    return { revision, json: join((await parts).parts) };
  }

  /**
   * Reads a conversation for an export, and the parts of it that can't be read.
   *
   * @throws {AppError} `not_found`
   */
  async readWithDamage(id: string): Promise<{ json: Uint8Array; damaged: Damage[] }> {
    const read = await this.#begin(id, {}).parts;
    return { json: join(read.parts), damaged: read.damaged };
  }

  /**
   * Reads the messages that follow inactive versions, as JSON Lines of `{message_id, n, messages}`. `messages` follows the
   * active versions below. Blocks are joined without parsing.
   *
   * @param onUnreadable Called for each version whose messages can't all be read.
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

  /** Reads all rows at once, so that they belong to one state. */
  #continuationRows(id: string): { mid: string; n: number; rows: BlockRow[] }[] {
    const tree = this.#blocks.tree(id);
    return tree.points().flatMap((point) =>
      [...point.segments.keys()].filter((n) => n !== point.active).flatMap((n) => {
        const rows = this.#blocks.rowsIn(id, tree.stretchesFrom(tree.startOf(point, n)!));
        return [{ mid: point.mid, n, rows }];
      })
    );
  }

  /** Returns the sealed size of all messages, on and off the active path. */
  sizeBytes(id: string): number {
    return this.#blocks.sizeBytes(id);
  }

  /**
   * Opens a conversation with all its messages. A large one comes in pieces, with one window of it in memory and `damaged`
   * at its end.
   *
   * Pieces of two states are never mixed: after a change the stream goes on only if everything sent so far is unchanged.
   *
   * @throws {AppError} `not_found`, `busy`. While reading: `conflict` if a message that was sent has changed.
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

  /** Reads a conversation without its messages, with their count. @throws {AppError} `not_found` */
  head(id: string): { revision: number; json: Uint8Array } {
    const { revision, text, damaged } = this.#headText(id);
    return { revision, json: encoder.encode(`${text}${createDamagedText(damaged)}}`) };
  }

  /**
   * Reads what a page needs to show a conversation, all of one state: the fields of `head`, the last messages as `messages`,
   * and the `next_cursor` to those before them.
   *
   * @param limit Maximum number of messages.
   * @throws {AppError} `not_found`
   */
  recent(id: string, limit: number): { revision: number; json: Uint8Array } {
    const { revision, text, damaged } = this.#headText(id);
    const { items, next_cursor, damaged: lost = [] } = this.page(id, limit);
    const rest = `"messages":${JSON.stringify(items)},"next_cursor":${JSON.stringify(next_cursor)}`;
    return { revision, json: encoder.encode(`${text}${createDamagedText([...damaged, ...lost])},${rest}}`) };
  }

  /**
   * Reads the last messages, or those before a message. Opens only the blocks that it needs.
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
    // Only damage within this page. What is before its first message belongs to the next page.
    const inside = unreadable.filter(({ before: next }) => !hasMore || next !== found[0]?.id);
    const damaged = inside.map(({ row }) => this.#damagedMessages(id, row));
    return {
      items,
      next_cursor: hasMore ? items[0]!.id : null,
      ...(damaged.length > 0 && { damaged: damaged.toReversed() }),
    };
  }

  /** Reads one message, on or off the active path, with the text that a running reply has written so far. */
  message(id: string, mid: string): Message {
    this.#store.get(id);
    const row = this.#blocks.rowAnywhere(id, mid);
    const message = row && this.#blocks.messagesOf(id, row).find((candidate) => candidate.id === mid);
    if (message === undefined) throw new AppError("not_found", `Conversation "${id}" has no message "${mid}"`);
    return this.#live.findByMessage(id, mid)?.overlay(message) ?? message;
  }

  /**
   * Reads all conversations with all messages as a JSON array, newest first. One that can't be read is replaced by an error,
   * or ends with one.
   *
   * @param signal Ends the wait for memory.
   * @throws {AppError} `busy` before the first piece.
   */
  async *list(options: ReadOptions = {}, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const reservation = await this.#budget.reserve(STREAM_BYTES, { signal });
    yield* this.#streamed(this.#entries(options), reservation, signal);
  }

  /**
   * Streams a response in pieces. Few are prepared at a time, so that hundreds of streams don't block the server. Each is
   * prepared when the client has taken the one before, so a client that doesn't read keeps nothing in memory.
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
          // After the permit is released, because streams that hold the memory need permits to free it.
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

  /** Returns the ids of all conversations. Lists that started since the last change share one array. */
  #sharedIds(): string[] {
    const ids = this.#store.ids();
    if (ids.length !== this.#ids.length || ids.some((id, n) => id !== this.#ids[n])) this.#ids = ids;
    return this.#ids;
  }

  /** Reads one page of summaries as JSON, newest first. The cursor is a position, so pages stay stable while conversations change. */
  async summaries(limit = DEFAULT_PAGE, cursor?: string): Promise<string> {
    const rows = this.#store.summaries(limit + 1, cursor === undefined ? undefined : parseCursor(cursor));
    const shown = rows.slice(0, limit);
    // A page of 500 takes about 4 ms; more the first time with rows of earlier versions.
    const texts: string[] = [];
    for (const row of shown) {
      await yieldIfTickUsedUp();
      try {
        const text = this.#store.openSummary(row);
        const added = text.includes('"has_greeting_title":') ? "" : this.#nameFields(row);
        texts.push(`${text.slice(0, -1)}${added},"draft_version":${row.draft_version}}`);
      } catch {
        texts.push(JSON.stringify({ id: row.id, error: { code: "unreadable" } }));
      }
    }
    const last = shown.at(-1);
    const next = rows.length > limit && last !== undefined
      ? cursorText({ updatedAtMs: last.updated_at, id: last.id })
      : null;
    return `{"items":[${texts.join(",")}],"next_cursor":${JSON.stringify(next)}}`;
  }

  /** Returns the fields that summaries of earlier versions lack, as JSON members behind a comma. */
  #nameFields({ id, revision }: { id: string; revision: number }): string {
    const known = this.#nameFieldsOf.get(id);
    if (known?.revision === revision) return known.json;
    let json = "";
    try {
      const { head } = this.#store.get(id);
      const block = head.title === "" || head.participants.length === 0 ? undefined : this.#blocks.next(id);
      const first = block === undefined ? undefined : this.#blocks.messagesOf(id, block)[0];
      json = `,"is_branch":${isBranch(head)},"has_greeting_title":${isGreetingTitle(head, first)}`;
    } catch {
      // The rest of the summary can be read.
    }
    if (this.#nameFieldsOf.size >= MAX_NAME_FIELDS) this.#nameFieldsOf.clear();
    this.#nameFieldsOf.set(id, { revision, json });
    return json;
  }

  /** The JSON of a head without its closing brace. */
  #headText(id: string): { revision: number; text: string; damaged: Damage[] } {
    const { state, opening, damaged } = this.#opening(id);
    return { revision: state.revision, text: `${opening},"message_count":${state.messageCount}`, damaged };
  }

  /** Like `toHeadJson`, with the fields that can be read. */
  #opening(id: string): { state: ConversationState; opening: string; damaged: Damage[] } {
    const { state, isHeadUnreadable } = this.#store.getReadable(id);
    const draft = this.#store.draft(id);
    const damaged: Damage[] = [];
    if (isHeadUnreadable) damaged.push({ part: "head" });
    if (draft.isUnreadable) damaged.push({ part: "draft" });
    return { state, opening: toHeadJson(state, draft), damaged };
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

  /** Reads all rows of a conversation at once, so that they belong to one state, and opens them. */
  #begin(
    id: string,
    { hasVariants = false, hasContinuations = false }: ReadOptions,
  ): { revision: number; bytes: number; parts: Promise<{ parts: Uint8Array[]; damaged: Damage[] }> } {
    const { state, opening, damaged } = this.#opening(id);
    const rows = this.#blocks.rows(id);
    const continuations = hasContinuations ? this.#continuationRows(id) : [];
    const live = this.#live.findByConversation(id);
    const texts: VariantRow[] = hasVariants ? this.#variants.rowsIn(id) : [];
    // Only these are parsed.
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
      const parts: Uint8Array[] = [encoder.encode(`${opening}${createDamagedText(damaged)},"messages":[`)];
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

  /** Starts to read a conversation window by window. @param isListed Whether damage ends it with an error. */
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
    yield [encoder.encode(`]${createDamagedText(damaged)}}`)];
  }

  /** Opens a few blocks and returns their messages as JSON, with a comma before each message but the very first. */
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
    const joined = joinBytes([...isFirst ? [] : [COMMA], ...commaSeparated(texts)]);
    texts.forEach(freeBytes);
    return joined;
  }

  /** Starts an entry of a list. */
  #entry(id: string, options: ReadOptions, maxBytes: number): { bytes: number; windows: Windows } | undefined {
    const unreadable = () => [encoder.encode(`{"id":${JSON.stringify(id)},${UNREADABLE},"messages":[]}`)];
    try {
      if (this.#blocks.list(id).bytes > maxBytes) {
        return { bytes: maxBytes, windows: this.#beginLarge(id, options, true).windows };
      }
      const { bytes, parts } = this.#begin(id, options);
      // A client must not take a part for the whole conversation.
      const whole = parts.then(({ parts, damaged }) => damaged.length === 0 ? parts : unreadable()).catch(unreadable);
      return { bytes, windows: once(whole) };
    } catch (error) {
      // Removed while the list was being sent.
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
function createDamagedText(damaged: Damage[]): string {
  return damaged.length === 0 ? "" : `,"damaged":${JSON.stringify(damaged)}`;
}

function continuationOpening(mid: string, n: number): string {
  return `{"message_id":${JSON.stringify(mid)},"n":${n},"messages":`;
}

function commaSeparated(texts: Uint8Array[]): Uint8Array[] {
  return texts.flatMap((text, index) => index === 0 ? [text] : [COMMA, text]);
}

function join(parts: Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : joinBytes(parts);
}

function cursorText(at: ListCursor): string {
  return `${at.updatedAtMs}.${at.id}`;
}

function parseCursor(text: string): ListCursor {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "This cursor did not come from a list of conversations");
  return { updatedAtMs: Number(match[1]), id: match[2]! };
}
