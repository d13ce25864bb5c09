/** Gives conversations as the API's JSON: blocks opened in parallel and joined, never parsed, streamed with bounded memory. */
import { AppError } from "../errors.ts";
import { joinedBytes } from "../joined_bytes.ts";
import type { BlockRow } from "./block_rows.ts";
import { parseBlock } from "./block_text.ts";
import type { BlockStore } from "./blocks.ts";
import { type ConversationState, openingText } from "./conversation.ts";
import type { ConversationStore, ListPlace } from "./conversation_store.ts";
import type { Damage } from "./damage.ts";
import type { LiveReplies } from "./live_replies.ts";
import type { Message } from "./message.ts";
import type { VariantRow, VariantStore } from "./variants.ts";

/** Sealed bytes that a full listing opens ahead of what it has sent. */
const AHEAD_BYTES = 2 * 1024 * 1024;
/** Pieces of a listing are joined to about this size before they are sent. */
const PIECE_BYTES = 64 * 1024;
/** Full listings under way at once; more wait for their turn. */
const LISTINGS = 4;
const DEFAULT_PAGE = 100;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const COMMA = encoder.encode(",");

/** How much of the messages is wanted. */
export interface ReadOptions {
  /** All texts of messages that have several, as `variants` of the message. */
  hasVariants?: boolean;
  /** What follows versions that aren't active, as `continuations` of the conversation. */
  hasContinuations?: boolean;
}

/** One page of messages, oldest first. */
export interface MessagePage {
  items: Message[];
  /** `before` of the page with the messages before these; `null` at the begin of the conversation. */
  next_cursor: string | null;
  /** Messages among these that can't be read. */
  damaged?: Damage[];
}

/** What reading stands on. */
export interface ReaderParts {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  live: LiveReplies;
}

/** Reads conversations whole or as lists. */
export class ConversationReader {
  #store: ConversationStore;
  #blocks: BlockStore;
  #variants: VariantStore;
  #live: LiveReplies;
  #listings = 0;
  #waiting: (() => void)[] = [];

  constructor({ store, blocks, variants, live }: ReaderParts) {
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
      this.#live.ofMessage(id, message.id)?.overlay(message) ?? message
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
    return this.#live.ofMessage(id, mid)?.overlay(message) ?? message;
  }

  /** Gives the JSON array of all conversations with all messages, newest first; one that cannot be read stands as an error. */
  async *list(options: ReadOptions = {}): AsyncGenerator<Uint8Array> {
    await this.#enter();
    try {
      const ids = this.#store.ids();
      const ahead: { bytes: number; parts: Promise<Uint8Array[]> }[] = [];
      let [aheadBytes, next, pieceBytes] = [0, 0, 0];
      let piece: Uint8Array[] = [encoder.encode("[")];
      let isFirst = true;
      while (next < ids.length || ahead.length > 0) {
        while (next < ids.length && (ahead.length === 0 || aheadBytes < AHEAD_BYTES)) {
          const entry = this.#entry(ids[next++]!, options);
          if (entry === undefined) continue;
          ahead.push(entry);
          aheadBytes += entry.bytes;
        }
        const entry = ahead.shift();
        if (entry === undefined) break;
        const parts = await entry.parts;
        aheadBytes -= entry.bytes;
        if (!isFirst) piece.push(COMMA);
        isFirst = false;
        for (const part of parts) {
          piece.push(part);
          pieceBytes += part.length;
        }
        if (pieceBytes >= PIECE_BYTES) {
          yield join(piece);
          [piece, pieceBytes] = [[], 0];
        }
      }
      piece.push(encoder.encode("]"));
      yield join(piece);
    } finally {
      this.#leave();
    }
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

  /** Gives what `openingText` does, as far as it can be read. */
  #opening(id: string): { state: ConversationState; opening: string; damaged: Damage[] } {
    const { state, isHeadUnreadable } = this.#store.getReadable(id);
    const draft = this.#store.draft(id);
    const damaged: Damage[] = [];
    if (isHeadUnreadable) damaged.push({ part: "head" });
    if (draft.isUnreadable) damaged.push({ part: "draft" });
    return { state, opening: openingText(state, draft), damaged };
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
    const live = this.#live.ofConversation(id);
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

  #entry(id: string, options: ReadOptions): { bytes: number; parts: Promise<Uint8Array[]> } | undefined {
    const unreadable = () => [encoder.encode(JSON.stringify({ id, error: { code: "unreadable" }, messages: [] }))];
    try {
      const { bytes, parts } = this.#begin(id, options);
      // A client that takes lists for whole must not take a part for a whole conversation.
      const whole = parts.then(({ parts, damaged }) => damaged.length === 0 ? parts : unreadable());
      return { bytes, parts: whole.catch(unreadable) };
    } catch (error) {
      // Removed while the list was being sent: it is simply no longer there.
      if (error instanceof AppError && error.code === "not_found") return undefined;
      return { bytes: 0, parts: Promise.resolve(unreadable()) };
    }
  }

  async #enter(): Promise<void> {
    if (this.#listings >= LISTINGS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#listings++;
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next();
    else this.#listings--;
  }
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

function cursorText(at: ListPlace): string {
  return `${at.updatedAtMs}.${at.id}`;
}

function parseCursor(text: string): ListPlace {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "This cursor did not come from a list of conversations");
  return { updatedAtMs: Number(match[1]), id: match[2]! };
}
