/** Reads whole conversations as JSON: decrypts blocks in parallel and joins them without parsing. */
import { AppError } from "../errors.ts";
import { joinBytes } from "../storage/atomic_file.ts";
import type { AttachmentRows, ImageSizes } from "../attachments/attachment_rows.ts";
import type { BlockRow } from "./blocks/block_rows.ts";
import { parseBlock } from "./stored_form.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import { type ConversationState, toHeadJson } from "./conversation.ts";
import { type ConversationStore, toQueueJson } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";
import type { Message } from "./message.ts";
import type { Variant, VariantRow, VariantStore } from "./variants.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const COMMA = encoder.encode(",");
/**
 * A part of a conversation that can't be read. The rest is read without it; see docs/decisions/0028-damaged-data.md.
 */
export type Damage =
  /** Title, participants and all other fields except the messages. The fields of the list replace them. */
  | { part: "head" }
  | { part: "draft" }
  /** The messages that wait for the end of a reply. */
  | { part: "queue" }
  /** Adjacent messages that are still stored, after the message `after`, or at the start if that is `null`. */
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

/** One page of messages, oldest first. */
export interface MessagePage {
  items: Message[];
  /** `before` of the previous page; `null` at the start of the conversation. */
  next_cursor: string | null;
  /** Unreadable messages of the page. */
  damaged?: Damage[];
  /** Sizes of the images on the page. Absent if there are none. */
  image_sizes?: ImageSizes;
}

/** Dependencies of `ConversationReader`. */
export interface ConversationReaderDeps {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  live: LiveReplies;
  attachments: Pick<AttachmentRows, "findSizes">;
}

/** Reads conversations and pages of messages. */
export class ConversationReader {
  #store: ConversationStore;
  #blocks: BlockStore;
  #variants: VariantStore;
  #live: LiveReplies;
  #attachments: ConversationReaderDeps["attachments"];

  constructor({ store, blocks, variants, live, attachments }: ConversationReaderDeps) {
    this.#store = store;
    this.#blocks = blocks;
    this.#variants = variants;
    this.#live = live;
    this.#attachments = attachments;
  }

  /**
   * Reads a conversation with all its messages. `damaged` lists the parts that can't be read.
   *
   * @throws {AppError} `not_found`
   */
  async read(id: string, options: ReadOptions = {}): Promise<{ revision: number; json: Uint8Array }> {
    const { revision, parts } = this.begin(id, options);
    return { revision, json: joinParts((await parts).parts) };
  }

  /**
   * Reads a conversation for an export, and the parts of it that can't be read.
   *
   * @throws {AppError} `not_found`
   */
  async readWithDamage(id: string): Promise<{ json: Uint8Array; damaged: Damage[] }> {
    const read = await this.begin(id, {}).parts;
    return { json: joinParts(read.parts), damaged: read.damaged };
  }

  /**
   * Reads the messages that follow inactive versions, as JSON Lines of `{message_id, n, messages}`. From there on,
   * `messages` follows the active versions. Blocks are joined without parsing.
   *
   * @param onUnreadable Called for each version with unreadable messages.
   */
  readContinuations(id: string, onUnreadable: (one: { mid: string; n: number }) => void): Promise<Uint8Array[]> {
    const lines = this.#listContinuationRows(id).map(async ({ mid, n, rows }) => {
      const opened = await Promise.all(rows.map((row) => this.#blocks.open(id, row).catch(() => undefined)));
      if (opened.includes(undefined)) onUnreadable({ mid, n });
      return [
        encoder.encode(`${createContinuationStart(mid, n)}[`),
        ...joinWithCommas(opened.filter((text) => text !== undefined)),
        encoder.encode("]}\n"),
      ];
    });
    return Promise.all(lines).then((all) => all.flat());
  }

  /** Reads all rows at once, so that they're from the same state. */
  #listContinuationRows(id: string): { mid: string; n: number; rows: BlockRow[] }[] {
    const tree = this.#blocks.getTree(id);
    return tree.listPoints().flatMap((point) =>
      [...point.segments.keys()].filter((n) => n !== point.active).flatMap((n) => {
        const rows = this.#blocks.listRowsIn(id, tree.listRangesFrom(tree.findStart(point, n)!));
        return [{ mid: point.mid, n, rows }];
      })
    );
  }

  /** Returns the sealed size of all messages, on and off the active path. */
  measureBytes(id: string): number {
    return this.#blocks.measureBytes(id);
  }

  /** Reads a conversation without its messages, but with their count. @throws {AppError} `not_found` */
  readHead(id: string): { revision: number; json: Uint8Array } {
    const { revision, text, damaged } = this.#readHeadText(id);
    return { revision, json: encoder.encode(`${text}${createDamagedText(damaged)}}`) };
  }

  /**
   * Reads what the page needs to show a conversation, all from the same state: the fields of `readHead`, the last messages
   * as `messages`, `next_cursor` for earlier ones, and `queue` if messages ever waited.
   *
   * @param limit Maximum number of messages.
   * @throws {AppError} `not_found`
   */
  readRecent(id: string, limit: number): { revision: number; json: Uint8Array } {
    const { revision, text, damaged } = this.#readHeadText(id);
    const { items, damaged: lost = [], ...page } = this.readPage(id, limit);
    const rest = `"messages":${JSON.stringify(items)},${JSON.stringify(page).slice(1, -1)}`;
    const queue = this.#readQueue(id);
    const all = createDamagedText([...damaged, ...queue.damaged, ...lost]);
    return { revision, json: encoder.encode(`${text}${all}${queue.text},${rest}}`) };
  }

  #readQueue(id: string): { text: string; damaged: Damage[] } {
    try {
      const queue = this.#store.getQueue(id);
      return { text: queue.version === 0 ? "" : `,"queue":${JSON.stringify(toQueueJson(queue))}`, damaged: [] };
    } catch {
      return { text: "", damaged: [{ part: "queue" }] };
    }
  }

  /**
   * Reads the last messages, or those before a message. Decrypts only the necessary blocks.
   *
   * @throws {AppError} `not_found`
   */
  readPage(id: string, limit: number, before?: string): MessagePage {
    this.#store.getRevision(id);
    let row = before === undefined ? this.#blocks.findPrevious(id) : this.#blocks.findRow(id, before);
    if (before !== undefined && row === undefined) {
      throw new AppError("not_found", `Message "${before}" not found in conversation "${id}"`);
    }
    let found: Message[] = [];
    let hasMore = false;
    const unreadable: { row: BlockRow; before: string | undefined }[] = [];
    for (; row !== undefined && !hasMore; row = this.#blocks.findPrevious(id, row)) {
      const messages = this.#blocks.findReadableMessages(id, row);
      if (messages === undefined) {
        unreadable.push({ row, before: found[0]?.id });
        continue;
      }
      const end = messages.findIndex((message) => message.id === before);
      found = [...end < 0 ? messages : messages.slice(0, end), ...found];
      hasMore = found.length > limit;
    }
    const items = found.slice(-limit).map((message) =>
      this.#live.findByMessage(id, message.id)?.withLiveText(message) ?? message
    );
    // Only damage within this page. Damage before its first message belongs to the next page.
    const inside = unreadable.filter(({ before: next }) => !hasMore || next !== found[0]?.id);
    const damaged = inside.map(({ row }) => this.findDamage(id, row));
    const sizes = this.#attachments.findSizes(JSON.stringify(items));
    return {
      items,
      next_cursor: hasMore ? items[0]!.id : null,
      ...(damaged.length > 0 && { damaged: damaged.toReversed() }),
      ...(Object.keys(sizes).length > 0 && { image_sizes: sizes }),
    };
  }

  /** Returns the revision of a conversation, which is also that of its messages. @throws {AppError} `not_found` */
  getRevision(id: string): number {
    return this.#store.getRevision(id);
  }

  /** Adds all versions to the messages of a page. Call it right after `readPage`, so that both are from the same state. */
  async addVariants(id: string, { items, ...rest }: MessagePage): Promise<MessagePage> {
    const rows = this.#variants.listRowsOf(id, items.map(({ id }) => id));
    return { items: await this.#variants.attachTo(items, rows), ...rest };
  }

  /** Returns all versions of a message. Those of a user message include the number of messages that follow. */
  listVariants(id: string, mid: string): Variant[] {
    const blocks = this.#blocks;
    const message = this.readMessage(id, mid);
    const list = this.#variants.list(id, message);
    if (list.length < 2 || !hasContinuations(blocks, id, message)) return list;
    const tree = blocks.getTree(id);
    const point = tree.find(mid);
    return list.map((variant) => {
      const start = point && tree.findStart(point, variant.n);
      if (start !== undefined) {
        return { ...variant, message_count: blocks.countIn(id, tree.listRangesFrom(start)) };
      }
      // Until the first switch, all later messages follow the active version.
      const isFollowed = point === undefined && variant.n === message.active_variant;
      const count = isFollowed ? this.#store.get(id).messageCount - blocks.countBefore(id, mid) - 1 : 0;
      return { ...variant, message_count: count };
    });
  }

  /** Counts the messages before one. */
  countBefore(id: string, mid: string): number {
    return this.#blocks.countBefore(id, mid);
  }

  /** Reads one message, on or off the active path, with the text that a running reply has written so far. */
  readMessage(id: string, mid: string): Message {
    this.#store.get(id);
    const row = this.#blocks.findLiveRow(id, mid);
    const message = row && this.#blocks.openMessages(id, row).find((candidate) => candidate.id === mid);
    if (message === undefined) throw new AppError("not_found", `Message "${mid}" not found in conversation "${id}"`);
    return this.#live.findByMessage(id, mid)?.withLiveText(message) ?? message;
  }

  /** Returns the JSON of a head without its closing brace. */
  #readHeadText(id: string): { revision: number; text: string; damaged: Damage[] } {
    const { state, opening, damaged } = this.opening(id);
    return { revision: state.revision, text: `${opening},"message_count":${state.messageCount}`, damaged };
  }

  /** Returns the JSON of a head like `toHeadJson`, with the fields that can be read. */
  opening(id: string): { state: ConversationState; opening: string; damaged: Damage[] } {
    const { state, isHeadUnreadable } = this.#store.getReadable(id);
    const draft = this.#store.getDraft(id);
    const damaged: Damage[] = [];
    if (isHeadUnreadable) damaged.push({ part: "head" });
    if (draft.isUnreadable) damaged.push({ part: "draft" });
    return { state, opening: toHeadJson(state, draft), damaged };
  }

  /** Describes the messages of a block that can't be read. */
  findDamage(id: string, row: BlockRow): Damage {
    const ids = this.#blocks.listMids(id, row);
    for (let before = this.#blocks.findPrevious(id, row); before !== undefined;) {
      const last = this.#blocks.findReadableMessages(id, before)?.at(-1);
      if (last !== undefined) return { part: "messages", message_ids: ids, after: last.id };
      before = this.#blocks.findPrevious(id, before);
    }
    return { part: "messages", message_ids: ids, after: null };
  }

  /** Reads all rows of a conversation at once, so that they're from the same state, and decrypts them. */
  begin(
    id: string,
    { hasVariants = false, hasContinuations = false }: ReadOptions,
  ): { revision: number; bytes: number; parts: Promise<{ parts: Uint8Array[]; damaged: Damage[] }> } {
    const { state, opening, damaged } = this.opening(id);
    const rows = this.#blocks.listRows(id);
    const continuations = hasContinuations ? this.#listContinuationRows(id) : [];
    const live = this.#live.findByConversation(id);
    const texts: VariantRow[] = hasVariants ? this.#variants.listRows(id) : [];
    // Only these are parsed.
    const changing = this.#blocks.listBlockIds(id, [...texts.map(({ mid }) => mid), ...(live ? [live.messageId] : [])]);
    const open = async (row: BlockRow): Promise<Uint8Array> => {
      const text = await this.#blocks.open(id, row);
      if (!changing.has(row.id)) return text;
      const messages = parseBlock(decoder.decode(text)).map((message) =>
        message.id === live?.messageId ? live.withLiveText(message) : message
      );
      const whole = await this.#variants.attachTo(messages, texts).catch(() => {
        const mids = messages.filter(({ variant_count: count }) => count > 1).map((message) => message.id);
        damaged.push({ part: "variants", message_ids: mids });
        return messages;
      });
      return encoder.encode(whole.map((message) => JSON.stringify(message)).join(","));
    };
    const assemble = async () => {
      const openAll = async (rows: BlockRow[]) => {
        const opened = await Promise.all(
          rows.map((row) => open(row).catch(() => void damaged.push(this.findDamage(id, row)))),
        );
        return joinWithCommas(opened.filter((text) => text !== undefined));
      };
      const messages = await openAll(rows);
      const following: Uint8Array[] = [];
      for (const [index, { mid, n, rows }] of continuations.entries()) {
        const start = `${index === 0 ? `,"continuations":[` : ","}${createContinuationStart(mid, n)}[`;
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
}

/** The `damaged` field of a JSON object that has other fields before it; `""` if nothing is damaged. */
export function createDamagedText(damaged: Damage[]): string {
  return damaged.length === 0 ? "" : `,"damaged":${JSON.stringify(damaged)}`;
}

function createContinuationStart(mid: string, n: number): string {
  return `{"message_id":${JSON.stringify(mid)},"n":${n},"messages":`;
}

/** Adds commas between texts. */
export function joinWithCommas(texts: Uint8Array[]): Uint8Array[] {
  return texts.flatMap((text, index) => index === 0 ? [text] : [COMMA, text]);
}

/** Joins parts. A single part isn't copied. */
export function joinParts(parts: Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : joinBytes(parts);
}

/** Returns whether each version of a message has its own continuation. */
export function hasContinuations(blocks: BlockStore, id: string, { id: mid, role }: Message): boolean {
  return role === "user" || blocks.getTree(id).find(mid) !== undefined;
}
