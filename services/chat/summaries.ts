/**
 * Tells, when nobody is being answered, what happened in the messages that no longer fit: a rolling summary, made anew with
 * each cut of the history and dropped as soon as something it tells of changes.
 */
import { isDeepStrictEqual } from "node:util";
import { traceOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { type CardSource, readCast } from "../prompts/participants.ts";
import { summaryOf } from "../prompts/scenes.ts";
import { estimateTokens } from "../prompts/tokens/token_estimate.ts";
import { amend, type AmendParts } from "../conversations/system_update.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ChatUpstream } from "./chat_request.ts";
import type { IdleQueue } from "./idle_queue.ts";
import { type Message, textOfContent } from "../conversations/message.ts";
import { summaryCall, summaryIn } from "./summary_text.ts";
import type { Replied } from "./titles.ts";

/** What the summaries stand on. */
export interface SummaryParts extends AmendParts {
  blocks: BlockStore;
  upstream: Pick<ChatUpstream, "complete">;
  idle: IdleQueue;
  log: Log;
  /** Whether the owner wants summaries made. */
  isWanted(): boolean;
  cards: CardSource;
  personas: { findName(id: string): Promise<string | undefined> };
  /** What the owner is called where no persona says it. */
  ownerName(): string;
}

/** What one summary tells of. */
interface Stretch {
  messages: Message[];
  /** True where the model's context holds no more of it at once. */
  isCut: boolean;
}

/** A summary that takes longer is not worth a busy machine. */
const WITHIN_MS = 5 * 60 * 1000;
/** How much of the room for messages the told ones may take, since they are only estimated. */
const SHARE = 0.6;
/** How often a model that gives no summary is asked for one. */
const TRIES = 2;
const FAILURES = 1_000;

/** Makes summaries. */
export class Summaries {
  readonly #parts: SummaryParts;
  /** How often a conversation's model was asked in vain. */
  readonly #failures = new Map<string, number>();

  constructor(parts: SummaryParts) {
    this.#parts = parts;
  }

  /** Takes word of a reply that has been written to its end. */
  replied(reply: Replied): void {
    const { idle, isWanted, log } = this.#parts;
    const { conversationId: id, prompt, target } = reply;
    if (prompt?.isTrimmed !== true || target.kind === "demo" || !isWanted()) return;
    const oldest = prompt.parts.find(({ messageId }) => messageId !== undefined)?.messageId;
    if (oldest === undefined || (this.#failures.get(id) ?? 0) >= TRIES) return;
    idle.add(`summary ${id}`, {
      run: (leaving) => this.#make(reply, oldest, prompt.budget, leaving),
      failed: (error) => {
        this.#failed(id);
        log("debug", "No summary could be made", { error: traceOf(error) });
      },
    });
  }

  async #make(reply: Replied, oldest: string, budget: number, leaving: AbortSignal): Promise<void> {
    const { store, isWanted, upstream } = this.#parts;
    const { conversationId: id, target, call: { model } } = reply;
    const known = store.find(id)?.head.summary;
    const before = summaryOf(known);
    // One that the owner wrote without saying how far it goes is theirs.
    if (!isWanted() || (before !== undefined && before.upTo === undefined)) return;
    const { messages, isCut } = this.#between(id, before?.upTo, oldest, budget);
    if (messages.length === 0) return;
    const names = new Map<string, string>();
    const told = [];
    for (const message of messages.filter(isTold)) {
      told.push({ name: await this.#nameOf(message, names), text: textOfContent(message.content) });
    }
    const signal = AbortSignal.any([leaving, AbortSignal.timeout(WITHIN_MS)]);
    const text = told.length === 0
      ? before?.text
      : summaryIn(await upstream.complete(target, summaryCall(model, before?.text, told), signal));
    if (text === undefined) return this.#failed(id);
    let isWritten = false;
    await amend(this.#parts, id, (head) => {
      const present = this.#between(id, before?.upTo, oldest, budget).messages;
      // What was told of has changed meanwhile.
      if (!isDeepStrictEqual(head.summary, known) || !isDeepStrictEqual(present, messages)) return undefined;
      isWritten = true;
      return { ...head, summary: { text, up_to_message_id: messages.at(-1)!.id } };
    });
    if (isWritten && isCut) this.replied(reply);
  }

  async #nameOf({ role, character_id, persona_id }: Message, known: Map<string, string>): Promise<string> {
    const { cards, personas, ownerName } = this.#parts;
    const id = role === "user" ? persona_id : character_id;
    if (typeof id !== "string") return role === "user" ? ownerName() : "Assistant";
    const key = `${role} ${id}`;
    const name = known.get(key) ??
      (role === "user"
        ? await personas.findName(id) ?? ownerName()
        : (await readCast(cards, [{ character_id: id }]))[0]?.name ?? "Assistant");
    known.set(key, name);
    return name;
  }

  /** Gives the messages behind one, or from the begin, and before another; no more than fit into one call. */
  #between(id: string, after: string | undefined, before: string, budget: number): Stretch {
    const { blocks } = this.#parts;
    const messages: Message[] = [];
    let tokens = 0;
    let row = after === undefined ? blocks.next(id) : blocks.rowOf(id, after);
    for (; row !== undefined; row = blocks.next(id, row)) {
      const all = blocks.messagesOf(id, row);
      for (const message of all.slice(all.findIndex((one) => one.id === after) + 1)) {
        if (message.id === before) return { messages, isCut: false };
        if (isTold(message)) tokens += estimateTokens(textOfContent(message.content));
        if (messages.length > 0 && tokens > budget * SHARE) return { messages, isCut: true };
        messages.push(message);
      }
    }
    // The message that should end it is gone, or the summary goes further than the cut.
    return { messages: [], isCut: false };
  }

  /** The next cut is another occasion, but not every one. */
  #failed(id: string): void {
    if (this.#failures.size >= FAILURES) this.#failures.clear();
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
  }
}

function isTold({ hidden, status, content }: Message): boolean {
  return hidden !== true && status !== "streaming" && content.length > 0;
}
