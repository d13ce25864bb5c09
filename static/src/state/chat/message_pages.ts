/** The loaded messages of a conversation: always the last ones, back to some point. Some of them are rendered. */
import type { DamagedPart, Message, RecentConversation } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { ApiError } from "../../api/client.ts";
import type { ConversationApi } from "../../api/conversations.ts";
import { getContentText, splitReasoning } from "./message_text.ts";

/** Messages that are loaded when a chat is opened, and with every step back. */
export const PAGE = 60;

/** Messages of one request on the way to a message far back: the server's maximum. */
const BIG_PAGE = 500;

/** Changed messages that are loaded one by one; more are loaded as pages. */
const MOST_SINGLE = 20;

/** The result of a load, for `show`. */
export interface ReadMessages {
  items: Message[];
  hasOlder: boolean;
  /** The revision of the messages. */
  revision: number;
  damaged: readonly DamagedPart[];
}

/** Loads messages page by page. */
export class MessagePages {
  /** Oldest first, without a gap, to the end of the conversation. */
  readonly items = signal<Message[]>([]);
  /** True if there are messages before the first loaded one. */
  readonly hasOlder = signal(false);
  readonly isLoading = signal(false);
  /** Parts that the server can't read, among those requested so far. */
  readonly damaged = signal<readonly DamagedPart[]>([]);
  /** The revision of the loaded messages; undefined before the first load. Later changes may be missing. */
  revision: number | undefined;
  readonly places = computed(() => new Map(this.items.value.map((message, index) => [message.id, index])));
  #api: ConversationApi;
  #conversationId: string;
  #older: Promise<void> | undefined;

  constructor(api: ConversationApi, conversationId: string) {
    this.#api = api;
    this.#conversationId = conversationId;
  }

  /** How many messages to reload: all loaded ones, up to the limit of a request. */
  get firstLimit(): number {
    return Math.min(BIG_PAGE, this.#reloadCount);
  }

  /**
   * Reloads the loaded messages without showing them yet.
   *
   * @param recent The end of the conversation, just loaded.
   * @throws {ApiError}
   */
  async read(
    recent: Pick<RecentConversation, "messages" | "next_cursor" | "revision" | "damaged">,
  ): Promise<ReadMessages> {
    return await this.#readChanged(recent) ?? await this.#readAll(recent);
  }

  /** Loads only the messages that the server lists as changed; undefined if their positions remain unknown. */
  async #readChanged({ messages: tail, next_cursor, revision }: Parameters<MessagePages["read"]>[0]) {
    const known = this.items.peek();
    const joint = known.findIndex((message) => message.id === tail[0]?.id);
    if (joint <= 0 || next_cursor === null || this.revision === undefined) return undefined;
    const delta = await this.#api.getChanges(this.#conversationId, this.revision);
    // Of another state than the tail, so its list doesn't lead there.
    if (delta === undefined || delta.order_changed || delta.revision !== revision) return undefined;
    const removed = new Set(delta.removed);
    const older = known.slice(0, joint).filter((message) => !removed.has(message.id));
    const tailIds = new Set(tail.map(({ id }) => id));
    const behind = delta.changed.filter((id) => !tailIds.has(id));
    const olderIds = new Set(older.map(({ id }) => id));
    // A message that isn't loaded may be new, and its place is unknown.
    if (behind.length > MOST_SINGLE || behind.some((id) => !olderIds.has(id))) return undefined;
    const read = await Promise.all(behind.map((id) => this.#api.getMessage(this.#conversationId, id)));
    const fresh = new Map(read.map((message) => [message.id, message]));
    const items = [...older.map((message) => fresh.get(message.id) ?? message), ...tail];
    return { items, hasOlder: this.hasOlder.peek(), revision, damaged: this.damaged.peek() };
  }

  async #readAll(recent: Parameters<MessagePages["read"]>[0]): Promise<ReadMessages> {
    const oldest = this.items.peek()[0]?.id;
    const count = this.#reloadCount;
    const { revision } = recent;
    const damaged = [...recent.damaged ?? []];
    let items = recent.messages;
    let hasOlder = recent.next_cursor !== null;
    while (hasOlder && items.length < count) {
      const limit = Math.min(BIG_PAGE, count - items.length);
      const page = await this.#api.listMessages(this.#conversationId, limit, items[0]?.id);
      items = [...page.items, ...items];
      damaged.push(...page.damaged ?? []);
      hasOlder = page.next_cursor !== null;
    }
    const at = items.findIndex((message) => message.id === oldest);
    return at > 0
      ? { items: items.slice(at), hasOlder: true, revision, damaged }
      : { items, hasOlder, revision, damaged };
  }

  /** Shows the result of a load. Unchanged messages keep their object, so that they are not rendered again. */
  show({ items, hasOlder, revision, damaged }: ReadMessages): void {
    this.revision = revision;
    if (damaged.length > 0 || this.damaged.peek().length > 0) this.damaged.value = damaged;
    const known = new Map(this.items.peek().map((message) => [message.id, message]));
    this.items.value = items.map((message) => {
      const before = known.get(message.id);
      return before && (before === message || JSON.stringify(before) === JSON.stringify(message)) ? before : message;
    });
    this.hasOlder.value = hasOlder;
  }

  /** Loads the page before the first message; concurrent calls share one request. @throws {ApiError} */
  loadOlder(limit = PAGE): Promise<void> {
    this.#older ??= this.#loadOlder(limit).finally(() => this.#older = undefined);
    return this.#older;
  }

  /** Loads back to a message. Returns false if the conversation does not have it. @throws {ApiError} */
  async loadUntil(messageId: string): Promise<boolean> {
    while (!this.places.peek().has(messageId) && this.hasOlder.peek()) await this.loadOlder(BIG_PAGE);
    return this.places.peek().has(messageId);
  }

  /** Finds a loaded message. */
  find(messageId: string): Message | undefined {
    const at = this.places.peek().get(messageId);
    return at === undefined ? undefined : this.items.peek()[at];
  }

  /** Appends messages. */
  append(...messages: Message[]): void {
    this.items.value = [...this.items.peek(), ...messages];
  }

  /** Changes fields of one message; undefined clears. */
  edit(messageId: string, changes: Partial<Message>): void {
    this.items.value = this.items.peek().map((message) =>
      message.id === messageId ? { ...message, ...changes } : message
    );
  }

  /** Replaces the messages that a reply wrote before its last one. */
  setRounds(replyId: string, rounds: readonly Message[]): void {
    this.items.value = this.items.peek().flatMap((message) =>
      message.id === replyId ? [...rounds, message] : message.reply_id === replyId ? [] : [message]
    );
  }

  /** Removes the messages that don't match. */
  keep(passes: (message: Message, index: number) => boolean): void {
    this.items.value = this.items.peek().filter(passes);
  }

  /** A little more than is loaded: new messages must not push the oldest ones out. */
  get #reloadCount(): number {
    return Math.max(PAGE, this.items.peek().length + 20);
  }

  async #loadOlder(limit: number): Promise<void> {
    const first = this.items.peek()[0]?.id;
    if (!this.hasOlder.peek() || first === undefined) return;
    this.isLoading.value = true;
    try {
      const page = await this.#api.listMessages(this.#conversationId, limit, first);
      // A concurrent reload may start elsewhere.
      if (this.items.peek()[0]?.id !== first) return;
      this.items.value = [...page.items, ...this.items.peek()];
      if (page.damaged) this.damaged.value = [...page.damaged, ...this.damaged.peek()];
      this.hasOlder.value = page.next_cursor !== null;
    } catch (thrown) {
      // The message to load before is gone: everything is reloaded.
      if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
      this.show(await this.#readAll(await this.#api.getRecent(this.#conversationId, this.firstLimit)));
    } finally {
      this.isLoading.value = false;
    }
  }
}

/**
 * Messages rendered at the end after sending, and added by each step: a screenful and more, so that no step takes
 * longer than a frame. Messages above are loaded before a reader gets there.
 */
const STEP = 16;

/** Least height of a message and of a line of text, in px, and most letters of a line. */
const MESSAGE_PX = 72;
const LINE_PX = 24;
const LINE_LETTERS = 80;

/** Minimum number of rendered messages. Estimates of their height may be wrong. */
const FEWEST = 4;

/** Messages on both sides of one that was jumped to. */
const AROUND = 20;

/** A bound of the range: its message, and if that is removed, the distance from the end. */
interface Bound {
  id: string;
  fromEnd: number;
}

/**
 * The rendered range of the loaded messages: as many as the reader needs, more on scrolling. Its bounds are ids:
 * indexes change when older messages are loaded.
 */
export class MessageWindow {
  /** Undefined: some before the last. */
  readonly #first = signal<Bound | undefined>(undefined);
  /** Undefined: the end. */
  readonly #last = signal<Bound | undefined>(undefined);
  /**
   * How many are rendered at the end; undefined: as many as fill the screen, which is all that a newly opened chat
   * shows.
   */
  readonly #atEnd = signal<number | undefined>(undefined);
  readonly #pages: MessagePages;
  /** The range as indexes of the loaded messages. */
  readonly range = computed(() => this.#findRange());
  readonly shown = computed(() => this.#pages.items.value.slice(...this.range.value));
  readonly hasAbove = computed(() => this.range.value[0] > 0 || this.#pages.hasOlder.value);
  readonly hasBelow = computed(() => this.range.value[1] < this.#pages.items.value.length);

  constructor(pages: MessagePages) {
    this.#pages = pages;
  }

  /** Shows the end. */
  toEnd(): void {
    this.#atEnd.value = STEP;
    this.#first.value = undefined;
    this.#last.value = undefined;
  }

  /** Shows a loaded message with its neighbors. */
  around(messageId: string): void {
    const at = this.#pages.places.peek().get(messageId);
    if (at === undefined) return;
    this.#set(at - AROUND, at + AROUND);
  }

  /** Shows more above, and loads it if needed. @throws {ApiError} */
  async moreAbove(): Promise<void> {
    if (this.range.peek()[0] === 0 && this.#pages.hasOlder.peek()) {
      // Anchored at its first message, so that loaded messages are not shown before they are requested.
      this.#set(...this.range.peek());
      await this.#pages.loadOlder();
    }
    const [begin, end] = this.range.peek();
    this.#set(begin - STEP, end);
  }

  /**
   * Shows the whole chat, and loads it if needed.
   *
   * @param pause Lets the page draw between two steps.
   * @returns Shows again what was shown. @throws {ApiError}
   */
  async showAll(pause: () => Promise<void>): Promise<() => void> {
    const before = [this.#first, this.#last, this.#atEnd].map((each) => each.peek());
    const restore = () => {
      this.#first.value = before[0] as Bound | undefined;
      this.#last.value = before[1] as Bound | undefined;
      this.#atEnd.value = before[2] as number | undefined;
    };
    try {
      this.#set(...this.range.peek());
      while (this.#pages.hasOlder.peek()) await this.#pages.loadOlder(BIG_PAGE);
      while (this.hasAbove.peek() || this.hasBelow.peek()) {
        const [begin, end] = this.range.peek();
        this.#set(begin - 4 * STEP, end + 4 * STEP);
        await pause();
      }
      return restore;
    } catch (thrown) {
      restore();
      throw thrown;
    }
  }

  /** Shows more below. */
  moreBelow(): void {
    const [begin, end] = this.range.peek();
    this.#set(begin, end + STEP);
  }

  #set(begin: number, end: number): void {
    const items = this.#pages.items.peek();
    const boundAt = (at: number): Bound | undefined => items[at] && { id: items[at].id, fromEnd: items.length - at };
    this.#first.value = boundAt(Math.max(0, begin));
    this.#last.value = end >= items.length ? undefined : boundAt(end - 1);
  }

  #findRange(): [begin: number, end: number] {
    const places = this.#pages.places.value;
    const { length } = this.#pages.items.value;
    const before = (end: number) =>
      Math.max(0, end - (this.#atEnd.value ?? countScreenful(this.#pages.items.value, end)));
    const placeOf = (bound: Bound) => places.get(bound.id) ?? Math.max(0, length - bound.fromEnd);
    const [first, last] = [this.#first.value, this.#last.value];
    const end = last === undefined ? length : Math.min(length, placeOf(last) + 1);
    return [first === undefined ? before(end) : Math.min(placeOf(first), end), end];
  }
}

/**
 * Returns how many messages before an index fill the screen, estimated from the length of their texts; rather too many.
 */
function countScreenful(items: readonly Message[], end: number): number {
  const { innerHeight: heightPx = Infinity } = globalThis as { innerHeight?: number };
  let count = 0;
  for (let px = 0; count < Math.min(STEP, end) && (px < heightPx || count < FEWEST); count++) {
    const { length } = splitReasoning(getContentText(items[end - 1 - count]!.content)).text;
    px += MESSAGE_PX + LINE_PX * Math.ceil(length / LINE_LETTERS);
  }
  return count;
}
