/** Names conversations by their model while nobody is being answered; until then, and without it, the first words serve. */
import { traceOf } from "../errors.ts";
import type { ChatCall } from "../llm/chat_event.ts";
import type { Log } from "../log.ts";
import type { Prompt } from "../prompts/prompts.ts";
import { amend, type AmendParts } from "../conversations/system_update.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ChatUpstream } from "./chat_request.ts";
import { titleFrom } from "../conversations/conversation.ts";
import type { IdleQueue } from "./idle_queue.ts";
import { textOfContent } from "../conversations/message.ts";
import { titleCall, titleIn } from "./title_text.ts";

/** A reply that is done. */
export interface Replied {
  conversationId: string;
  target: Parameters<ChatUpstream["complete"]>[0];
  /** What it was asked with. */
  call: ChatCall;
  /** What is known of that, where the server assembled it. */
  prompt?: Prompt;
  /** Its text. */
  answer: string;
}

/** What the titles stand on. */
export interface TitleParts extends AmendParts {
  blocks: BlockStore;
  upstream: Pick<ChatUpstream, "complete">;
  idle: IdleQueue;
  log: Log;
  /** Whether the owner wants titles made. */
  isWanted(): boolean;
}

/** A title that takes longer is not worth a busy machine. */
const WITHIN_MS = 2 * 60 * 1000;
/** What waits is held in memory: a larger prompt, with pictures, is let go. */
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
  /** How often a conversation's model was asked in vain. */
  readonly #failures = new Map<string, number>();

  constructor(parts: TitleParts) {
    this.#parts = parts;
  }

  /** Takes word of a reply that has been written to its end. */
  replied(reply: Replied): void {
    const { isWanted, idle } = this.#parts;
    const { conversationId: id, answer, target } = reply;
    if (answer === "" || target.kind === "demo" || !isWanted()) return;
    if ((this.#failures.get(id) ?? 0) >= TRIES || sizeOf(reply.call) > MAX_CHARS) return;
    idle.add(`title ${id}`, {
      run: (leaving) => this.#make(reply, leaving),
      failed: (error) => this.#failed(id, traceOf(error)),
    });
  }

  async #make(reply: Replied, leaving: AbortSignal): Promise<void> {
    const before = this.#parts.isWanted() ? this.#provisionalTitle(reply) : undefined;
    if (before === undefined) return;
    const signal = AbortSignal.any([leaving, AbortSignal.timeout(WITHIN_MS)]);
    const completion = await this.#parts.upstream.complete(reply.target, titleCall(reply.call, reply.answer), signal);
    const title = titleIn(completion);
    if (title === undefined) return this.#failed(reply.conversationId, "the answer holds none");
    await amend(
      this.#parts,
      reply.conversationId,
      (head) => head.title === before && title !== before ? { ...head, title } : undefined,
    );
  }

  /** The next reply in the conversation is another occasion, but not every one. */
  #failed(id: string, error: string): void {
    if (this.#failures.size >= FAILURES) this.#failures.clear();
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
    this.#parts.log("debug", "No title could be made", { error });
  }

  /**
   * Gives the title of a conversation, if it is only its first words: made when it was begun, or when it was answered
   * without a title. Everything else the owner has chosen.
   */
  #provisionalTitle({ conversationId, call }: Replied): string | undefined {
    const { store, blocks } = this.#parts;
    const title = store.find(conversationId)?.head.title;
    if (title === undefined) return undefined;
    const begin = blocks.next(conversationId);
    const said = [
      ...(begin === undefined ? [] : blocks.messagesOf(conversationId, begin)).filter(({ role }) => role === "user"),
      ...call.messages.filter(({ role }) => role === "user").slice(-1),
    ];
    return said.some(({ content }) => titleFrom(textOfContent(content)) === title) ? title : undefined;
  }
}
