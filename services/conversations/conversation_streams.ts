/** Streams conversations that are too large to be read at once, and lists of them, with bounded memory. */
import { ByteBudget, type Reservation } from "../async/byte_budget.ts";
import { Semaphore } from "../async/locks.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { AppError } from "../errors.ts";
import { joinBytes } from "../storage/atomic_file.ts";
import type { BlockList, BlockRow } from "./blocks/block_rows.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import { parseBlock } from "./stored_form.ts";
import {
  type ConversationReader,
  type ConversationReaderDeps,
  createDamagedText,
  type Damage,
  joinParts,
  joinWithCommas,
  type ReadOptions,
} from "./conversation_reader.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";
import type { Message } from "./message.ts";
import type { VariantStore } from "./variants.ts";

/** Maximum sealed size of conversations that are read at once and don't count toward the byte budget. */
const WHOLE_BYTES = 512 * 1024;
/** Size of a window: bytes that a stream decrypts together and sends as one piece. A message is never split. */
const WINDOW_BYTES = 48 * 1024;
/** Window size while few streams run, which makes each faster. */
const WIDE_WINDOW_BYTES = 512 * 1024;
const FEW = 4;
/** Maximum size of a piece. Longer windows are sent in several pieces. */
const PIECE_BYTES = 128 * 1024;
/** Smallest piece of a list of conversations. */
const MIN_PIECE_BYTES = 32 * 1024;
/**
 * Memory of a stream, even while its client reads nothing. Most of it is in the runtime, which buffers about 400 KiB
 * before it waits for the client.
 */
const STREAM_BYTES = 512 * 1024;
/** Larger windows are single long messages. Each counts with its own size, encrypted and decrypted. */
const LARGE_BYTES = WIDE_WINDOW_BYTES;
const LARGE_WEIGHT = 2;
/** Memory of all large windows together. */
const LARGE_LIMIT_BYTES = 64 * 1024 * 1024;
/** Maximum number of streams that prepare a piece at the same time. */
const AT_ONCE = 2;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const COMMA = encoder.encode(",");
const UNREADABLE = '"error":{"code":"unreadable"}';
/** Finds a message with several versions in the JSON text of a block. */
const SEVERAL_VERSIONS = /"variant_count":(?!1\b)/;

/** How to open a conversation that may be streamed. */
export interface OpenOptions extends ReadOptions {
  /** Ends the wait for memory. */
  signal?: AbortSignal;
  /** True if the request has already changed something, so that its response isn't refused for lack of memory. */
  hasSideEffects?: boolean;
}

/** Parts of a response. A number is the memory to reserve before asking for the next part. */
type Windows = AsyncGenerator<Uint8Array[] | number>;

/** Dependencies of `ConversationStreams`. */
export interface ConversationStreamsDeps extends Omit<ConversationReaderDeps, "attachments"> {
  reader: ConversationReader;
  budget: ByteBudget;
}

/** Streams large conversations and lists of conversations. */
export class ConversationStreams {
  readonly #reader: ConversationReader;
  readonly #store: ConversationStore;
  readonly #blocks: BlockStore;
  readonly #variants: VariantStore;
  readonly #live: LiveReplies;
  readonly #budget: ByteBudget;
  /**
   * Memory for large windows. It has a separate budget, because streams that wait for it hold memory of the general
   * budget: with one budget, they could deadlock.
   */
  readonly largeBudget = new ByteBudget({ limitBytes: LARGE_LIMIT_BYTES, reserveBytes: 0, waitMs: Infinity });
  readonly #semaphore = new Semaphore(AT_ONCE);
  #streams = 0;
  #ids: string[] = [];

  constructor({ reader, store, blocks, variants, live, budget }: ConversationStreamsDeps) {
    this.#reader = reader;
    this.#store = store;
    this.#blocks = blocks;
    this.#variants = variants;
    this.#live = live;
    this.#budget = budget;
  }

  /**
   * Opens a conversation with all its messages. A large one is streamed in pieces, with one window in memory and
   * `damaged` at its end.
   *
   * Pieces of two states are never mixed: after a change, the stream continues only if everything sent so far is
   * unchanged.
   *
   * @throws {AppError} `not_found`, `busy`. While reading: `conflict` if a message that was already sent has changed.
   */
  async open(
    id: string,
    { signal, hasSideEffects = false, ...options }: OpenOptions = {},
  ): Promise<{ revision: number; json: Uint8Array | AsyncGenerator<Uint8Array> }> {
    if (this.#blocks.list(id).bytes <= WHOLE_BYTES) return await this.#reader.read(id, options);
    const reservation = hasSideEffects
      ? this.#budget.take(STREAM_BYTES)
      : await this.#budget.reserve(STREAM_BYTES, { signal });
    try {
      const { revision, windows } = this.#beginLarge(id, options);
      return { revision, json: this.#stream(windows, reservation, signal) };
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /**
   * Reads all conversations with all messages as a JSON array, newest first. An unreadable conversation is replaced by
   * an error, or ends with one.
   *
   * @param signal Ends the wait for memory.
   * @throws {AppError} `busy` before the first piece.
   */
  async *list(options: ReadOptions = {}, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const reservation = await this.#budget.reserve(STREAM_BYTES, { signal });
    yield* this.#stream(this.#listEntries(options), reservation, signal);
  }

  /**
   * Streams a response in pieces. Few pieces are prepared at a time, so that hundreds of streams don't block the
   * server. Each is prepared after the client has received the previous one, so a client that doesn't read uses no
   * memory.
   */
  async *#stream(windows: Windows, reservation: Reservation, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
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

  async *#listEntries(options: ReadOptions): Windows {
    const ids = this.#shareIds();
    const ahead: { bytes: number; windows: Windows }[] = [];
    let [aheadBytes, next] = [0, 0];
    let separator = encoder.encode("[");
    while (next < ids.length || ahead.length > 0) {
      const maxBytes = this.#chooseWindowBytes();
      while (next < ids.length && (ahead.length === 0 || aheadBytes < maxBytes)) {
        const entry = this.#openEntry(ids[next++]!, options, maxBytes);
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
  #shareIds(): string[] {
    const ids = this.#store.listIds();
    if (ids.length !== this.#ids.length || ids.some((id, n) => id !== this.#ids[n])) this.#ids = ids;
    return this.#ids;
  }

  /**
   * Starts reading a conversation in windows.
   *
   * @param isListed Whether damage ends it with an error.
   */
  #beginLarge(id: string, options: ReadOptions, isListed = false): { revision: number; windows: Windows } {
    const { state, opening, damaged } = this.#reader.opening(id);
    if (isListed && damaged.length > 0) throw new AppError("internal", `Can't read conversation "${id}"`);
    const start = encoder.encode(`${opening},"messages":[`);
    const { revision } = state;
    return { revision, windows: this.#listLargeWindows(id, { start, revision, damaged, options, isListed }) };
  }

  async *#listLargeWindows(
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
        const { end, bytes } = blocks.measureRange(at, this.#chooseWindowBytes());
        if (bytes > LARGE_BYTES) {
          yield bytes * LARGE_WEIGHT;
          if (this.#store.find(id)?.revision !== revision) continue;
        }
        const text = await this.#readWindow(id, { blocks, at, end, isFirst, damaged, options });
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

  /**
   * Decrypts a few blocks and returns their messages as JSON, with a comma before each message except the very first.
   */
  async #readWindow(
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
    const running = this.#blocks.listBlockIds(id, live ? [live.messageId] : []);
    const open = async (n: number): Promise<Uint8Array | undefined> => {
      let row: BlockRow | undefined;
      try {
        row = this.#blocks.findVersion(id, blocks.getName(n));
        if (row === undefined) throw new AppError("internal", `Can't read messages of conversation "${id}"`);
        const text = await this.#blocks.open(id, row);
        freeBytes(row.sealed);
        const isRunning = running.has(row.id);
        if (!isRunning && !(hasVariants && SEVERAL_VERSIONS.test(decoder.decode(text)))) return text;
        const messages = parseBlock(decoder.decode(text)).map((message) =>
          message.id === live?.messageId ? live.withLiveText(message) : message
        );
        freeBytes(text);
        if (!hasVariants) return encodeMessages(messages);
        const mids = messages.filter(({ variant_count: count }) => count > 1).map((message) => message.id);
        const rows = this.#variants.listRowsOf(id, mids);
        const whole = await this.#variants.attachTo(messages, rows).catch(() => {
          damaged.push({ part: "variants", message_ids: mids });
          return messages;
        });
        for (const { sealed } of rows) freeBytes(sealed);
        return encodeMessages(whole);
      } catch {
        damaged.push(this.#reader.findDamage(id, row ?? this.#blocks.listRows(id)[n]!));
        return undefined;
      }
    };
    const numbers = Array.from({ length: end - at }, (_, index) => at + index);
    const texts = (await Promise.all(numbers.map(open))).filter((text) => text !== undefined);
    if (texts.length === 0) return undefined;
    const joined = joinBytes([...isFirst ? [] : [COMMA], ...joinWithCommas(texts)]);
    texts.forEach(freeBytes);
    return joined;
  }

  /** Starts an entry of a list. */
  #openEntry(id: string, options: ReadOptions, maxBytes: number): { bytes: number; windows: Windows } | undefined {
    const unreadable = () => [encoder.encode(`{"id":${JSON.stringify(id)},${UNREADABLE},"messages":[]}`)];
    try {
      if (this.#blocks.list(id).bytes > maxBytes) {
        return { bytes: maxBytes, windows: this.#beginLarge(id, options, true).windows };
      }
      const { bytes, parts } = this.#reader.begin(id, options);
      // A client must not mistake a part for the whole conversation.
      const whole = parts.then(({ parts, damaged }) => damaged.length === 0 ? parts : unreadable()).catch(unreadable);
      return { bytes, windows: once(whole) };
    } catch (error) {
      // Deleted while the list was being sent.
      if (error instanceof AppError && error.code === "not_found") return undefined;
      return { bytes: 0, windows: once(Promise.resolve(unreadable())) };
    }
  }

  #chooseWindowBytes(): number {
    return this.#streams <= FEW ? WIDE_WINDOW_BYTES : WINDOW_BYTES;
  }
}

async function* once(parts: Promise<Uint8Array[]>): Windows {
  yield await parts;
}

/** Joins short parts and splits long ones. Each piece is a copy, so that nothing that was sent stays in memory here. */
async function* inPieces(windows: Windows): AsyncGenerator<Uint8Array | number> {
  let piece: Uint8Array[] = [];
  let pieceBytes = 0;
  const take = () => {
    const bytes = joinParts(piece);
    [piece, pieceBytes] = [[], 0];
    return bytes;
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

function encodeMessages(messages: Message[]): Uint8Array {
  return encoder.encode(messages.map((message) => JSON.stringify(message)).join(","));
}

/**
 * Frees bytes that are no longer used. Waiting for garbage collection, those of hundreds of readers would stay in
 * memory for seconds.
 */
function freeBytes({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}
