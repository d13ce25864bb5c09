/** Conversations that come from elsewhere: written whole, with their other texts and times, in one atomic write. */
import { moveOut } from "../attachments/picture_parts.ts";
import { type ConversationInput, type ConversationState, headFrom } from "./conversation.ts";
import type { ConversationParts, Conversations } from "./conversations.ts";
import { completeMessage, type Message, type MessageContent, type MessageInput } from "./message.ts";
import type { VariantText } from "./variants.ts";

/** One text of a message. */
export interface ArrivingText {
  content: MessageContent;
  reasoning?: string;
  model?: string;
  /** ISO 8601, UTC. */
  updated_at?: string;
}

/** A message with all of its texts. */
export interface ArrivingMessage extends MessageInput {
  id: string;
  /** The active one among them; absent where it has but one. */
  variants?: ArrivingText[];
  active_variant?: number;
}

/** A conversation from elsewhere. */
export interface ArrivingConversation {
  id: string;
  head: ConversationInput;
  /** Of what came; an arrival with the same one changes nothing. */
  hash: string;
  createdAtMs?: number;
  updatedAtMs?: number;
  messages: ArrivingMessage[];
  /** What stands in the composer of one that is new here. */
  draft?: string;
}

/** What an arrival meets: nothing, itself, an older state of itself, or one that went on here. */
export type ArrivalState = "added" | "present" | "updated" | "changed_here";

/** Field of a conversation that says what came, so that it is known again. */
const ORIGIN = "imported";

/** Takes conversations in. */
export class Arrivals {
  readonly #parts: ConversationParts;
  readonly #conversations: Conversations;

  constructor(parts: ConversationParts, conversations: Conversations) {
    this.#parts = parts;
    this.#conversations = conversations;
  }

  /** Says what `take` would do. */
  stateOf({ id, hash }: Pick<ArrivingConversation, "id" | "hash">): ArrivalState {
    const present = this.#parts.store.find(id);
    if (present === undefined) return "added";
    const origin = present.head[ORIGIN] as { hash?: string; revision?: number } | undefined;
    if (origin?.hash === hash) return "present";
    return origin?.revision === present.revision ? "updated" : "changed_here";
  }

  /**
   * Takes a conversation in, unless it is there or went on here since. One in the trash comes out of it; what stood
   * before is kept as a revision.
   *
   * @throws {AppError} `conflict`, `too_large`, `storage_full`
   */
  async take(arriving: ArrivingConversation): Promise<ArrivalState> {
    const { id } = arriving;
    const messages = await this.#withStoredPictures(arriving.messages);
    return await this.#parts.turns.take(id, async () => {
      const { store, blocks, db, now, trash } = this.#parts;
      const found = this.stateOf(arriving);
      if (found === "present" || found === "changed_here") return found;
      const before = store.find(id);
      const past = before ?? store.findRemoved(id);
      const standing = past === undefined ? [] : await blocks.openAll(id);
      this.#conversations.refuseCaseClash(id);
      const revision = (past?.revision ?? 0) + 1;
      const nowMs = now();
      const whole = messages.map((message) => wholeMessage(message, new Date(nowMs).toISOString()));
      const state: ConversationState = {
        ...{ id, revision, messageCount: whole.length },
        createdAtMs: past?.createdAtMs ?? arriving.createdAtMs ?? nowMs,
        updatedAtMs: arriving.updatedAtMs ?? nowMs,
        head: headFrom({ ...arriving.head, [ORIGIN]: { hash: arriving.hash, revision } }),
      };
      const { statements } = await this.#conversations.replacing(past, state, { messages: whole, standing });
      const draft = past === undefined && arriving.draft
        ? [store.saveDraft(id, { text: arriving.draft, version: 1 })]
        : [];
      await db.write([...statements, ...this.#parts.variants.restore(id, messages.flatMap(otherTexts)), ...draft]);
      this.#conversations.publish(state);
      if (before === undefined && past !== undefined) trash.changed();
      return found;
    });
  }

  async #withStoredPictures(messages: ArrivingMessage[]): Promise<ArrivingMessage[]> {
    const { pictures } = this.#parts;
    const moved: ArrivingMessage[] = [];
    for (const message of messages) {
      const variants: ArrivingText[] = [];
      for (const text of message.variants ?? []) {
        variants.push({ ...text, content: await moveOut(pictures, text.content) });
      }
      const content = await moveOut(pictures, message.content);
      moved.push({ ...message, content, ...(message.variants && { variants }) });
    }
    return moved;
  }
}

function wholeMessage({ variants, active_variant, ...message }: ArrivingMessage, now: string): Message {
  const whole = completeMessage(message, message.id, now);
  return variants === undefined
    ? whole
    : { ...whole, variant_count: variants.length, active_variant: active_variant ?? 0 };
}

function otherTexts({ id: mid, variants = [], active_variant: active = 0 }: ArrivingMessage): VariantText[] {
  return variants.flatMap(({ content, ...fields }, n) =>
    n === active ? [] : [{ mid, n, record: { content, ...fields, status: "complete" as const } }]
  );
}
