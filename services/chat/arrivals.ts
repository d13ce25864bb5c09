/** Conversations that come from elsewhere: written whole, with their other texts and times, in one atomic write. */
import { createHash } from "node:crypto";
import { moveOut } from "../attachments/picture_parts.ts";
import { uuidV7 } from "../crypto/random.ts";
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
/** Ids that one source can take, one after the other, while the earlier ones are in the trash. */
const MAX_IDS = 8;

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
    const present = this.#parts.store.find(this.#idFor(id));
    if (present === undefined) return "added";
    const origin = present.head[ORIGIN] as { hash?: string; revision?: number } | undefined;
    if (origin?.hash === hash) return "present";
    return origin?.revision === present.revision ? "updated" : "changed_here";
  }

  /**
   * Imports a conversation, unless it is already there or has changed here since. Its earlier state is kept as a
   * revision. A copy in the trash stays there, and the import takes a fresh id.
   *
   * @throws {AppError} `conflict`, `too_large`, `storage_full`
   */
  async take(arriving: ArrivingConversation): Promise<ArrivalState> {
    const messages = await this.#withStoredPictures(arriving.messages);
    const id = this.#idFor(arriving.id);
    return await this.#parts.turns.take(id, async () => {
      const { store, blocks, db, now } = this.#parts;
      store.refuseRemoved(id); // Deleted since the id was chosen.
      const found = this.stateOf(arriving);
      if (found === "present" || found === "changed_here") return found;
      const past = store.find(id);
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
      return found;
    });
  }

  /**
   * Returns the id for an imported conversation: the one it has here, else its own, else the first that isn't in the
   * trash. Derived from its own id, so that importing the same file again finds the same conversation.
   */
  #idFor(id: string): string {
    const { store } = this.#parts;
    const ids = [id, ...Array.from({ length: MAX_IDS - 1 }, (_, n) => derivedId(id, n + 1))];
    const present = ids.find((one) => store.exists(one));
    return present ?? ids.find((one) => !store.isRemoved(one)) ?? uuidV7();
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

function derivedId(id: string, n: number): string {
  return createHash("sha256").update(`${id}\n${n}`).digest("hex").slice(0, 32);
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
