/** Names conversations by their model while nobody is being answered; until then, and without it, the first words serve. */
import type { EventHub } from "../events/event_hub.ts";
import type { ChatCall } from "../llm/chat_event.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database.ts";
import type { Turns } from "../turns.ts";
import type { BlockStore } from "./blocks.ts";
import type { ChatUpstream } from "./chat.ts";
import { titleFrom } from "./conversation.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";
import { textOfContent } from "./message.ts";
import { describe } from "./reply.ts";
import { titleCall, titleIn } from "./title_text.ts";

/** A reply that is done. */
export interface Replied {
  conversationId: string;
  target: Parameters<ChatUpstream["complete"]>[0];
  /** What it was asked with. */
  call: ChatCall;
  /** Its text. */
  answer: string;
}

/** What the titles stand on. */
export interface TitleParts {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  conversations: Conversations;
  live: LiveReplies;
  turns: Turns;
  upstream: Pick<ChatUpstream, "complete">;
  events: EventHub;
  log: Log;
  /** Whether the owner wants titles made. */
  isWanted(): boolean;
  /** How long nobody must have been answered; infinite for no titles at all. */
  idleMs?: number;
}

const IDLE_MS = 1_000;
/** A title that takes longer is not worth a busy machine. */
const WITHIN_MS = 2 * 60 * 1000;
/** Conversations that wait for a title; each holds its prompt in memory, and a larger one, with pictures, is let go. */
const WAITING = 16;
const MAX_CHARS = 2 * 1024 * 1024;
/** How often a model that gives no title is asked for one. */
const TRIES = 2;
const FAILURES = 1_000;

function sizeOf({ messages }: ChatCall): number {
  return messages.reduce((sum, { content }) => sum + JSON.stringify(content).length, 0);
}

/** Makes titles. */
export class Titles {
  readonly #parts: TitleParts;
  /** By conversation; the one answered last is the last. */
  readonly #waiting = new Map<string, Replied>();
  /** How often a conversation's model was asked in vain. */
  readonly #failures = new Map<string, number>();
  readonly #unsubscribe: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #current: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: TitleParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.events.subscribe(({ kind }) => {
      // At once: the reply's own call has not gone out yet.
      if (kind === "reply_started") this.#current?.abort();
      if (kind === "reply_started" || kind === "reply_ended") this.#schedule();
    });
  }

  /** Takes word of a reply that has been written to its end. */
  replied(reply: Replied): void {
    const { idleMs = IDLE_MS, isWanted } = this.#parts;
    const { conversationId: id, answer, target } = reply;
    if (this.#isClosed || idleMs === Infinity || answer === "" || target.kind === "demo" || !isWanted()) return;
    if ((this.#failures.get(id) ?? 0) >= TRIES || sizeOf(reply.call) > MAX_CHARS) return;
    this.#waiting.delete(id);
    this.#waiting.set(id, reply);
    if (this.#waiting.size > WAITING) this.#waiting.delete(this.#waiting.keys().next().value!);
    this.#schedule();
  }

  /** Ends a call that is under way; conversations without a title keep their first words. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    this.#current?.abort();
    await this.#running;
  }

  /** Begins anew to wait for quiet. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#waiting.size === 0 || this.#isBusy()) return;
    this.#timer = setTimeout(() => {
      if (!this.#isBusy()) this.#running = this.#next();
    }, this.#parts.idleMs ?? IDLE_MS);
  }

  #isBusy(): boolean {
    return this.#current !== undefined || this.#parts.live.all().length > 0;
  }

  /** Makes the title of the conversation answered last. */
  async #next(): Promise<void> {
    const [id, reply] = [...this.#waiting].at(-1)!;
    this.#waiting.delete(id);
    const leaving = this.#current = new AbortController();
    try {
      const before = this.#parts.isWanted() ? this.#provisionalTitle(reply) : undefined;
      if (before === undefined) return;
      const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(WITHIN_MS)]);
      const completion = await this.#parts.upstream.complete(reply.target, titleCall(reply.call, reply.answer), signal);
      const title = titleIn(completion);
      if (title === undefined) this.#failed(id);
      else await this.#write(id, before, title);
    } catch (error) {
      // Given up for a reply: it is its turn again when that is done, unless it was in the same conversation.
      if (leaving.signal.aborted) this.#waiting.set(id, this.#waiting.get(id) ?? reply);
      else {
        this.#failed(id);
        this.#parts.log("debug", "No title could be made", { error: describe(error) });
      }
    } finally {
      this.#current = undefined;
      this.#schedule();
    }
  }

  /** The next reply in the conversation is another occasion, but not every one. */
  #failed(id: string): void {
    if (this.#failures.size >= FAILURES) this.#failures.clear();
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
  }

  /**
   * Gives the title of a conversation, if it is only its first words: made when it was begun, or when it was answered
   * without a title. Everything else the owner has chosen.
   */
  #provisionalTitle({ conversationId, call }: Replied): string | undefined {
    const { store, blocks } = this.#parts;
    const title = store.find(conversationId)?.head.title;
    if (title === undefined) return undefined;
    const begin = blocks.next(conversationId, -Number.MAX_VALUE);
    const said = [
      ...(begin === undefined ? [] : blocks.messagesOf(conversationId, begin)).filter(({ role }) => role === "user"),
      ...call.messages.filter(({ role }) => role === "user").slice(-1),
    ];
    return said.some(({ content }) => titleFrom(textOfContent(content)) === title) ? title : undefined;
  }

  /** It is no change of the owner's: it moves no conversation up the list, and there is nothing to restore. */
  #write(id: string, before: string, title: string): Promise<void> {
    const { db, store, turns, conversations } = this.#parts;
    return turns.take(id, async () => {
      const state = store.find(id);
      if (state === undefined || state.head.title !== before || title === before) return;
      const next = { ...state, revision: state.revision + 1, head: { ...state.head, title } };
      await db.write([store.update(next, store.summary(id)?.snippet ?? "")]);
      conversations.publish(next);
    });
  }
}
