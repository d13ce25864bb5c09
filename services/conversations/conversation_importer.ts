/** Conversations that come from elsewhere: written whole, with their other texts and times, in one atomic write. */
import { createHash } from "node:crypto";
import { storeInlineImages } from "../attachments/image_parts.ts";
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { yieldIfTickUsedUp } from "../async/yield_to_event_loop.ts";
import { type ConversationInput, type ConversationState, headFrom } from "./conversation.ts";
import type { ConversationParts, Conversations } from "./conversations.ts";
import { type MessageTree } from "./tree/message_tree.ts";
import { ROOT_SEGMENT } from "./tree/conversation_tree.ts";
import { NOTHING_STORED } from "./revisions/revision_preparation.ts";
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

/** What follows a version of a message that isn't the active one. */
export interface ArrivingContinuation {
  message_id: string;
  /** Number of the version, from 0. */
  n: number;
  /** Along the active versions. */
  messages: ArrivingMessage[];
}

/** A conversation from elsewhere. */
export interface ArrivingConversation {
  id: string;
  head: ConversationInput;
  /** Of what came; an arrival with the same one changes nothing. */
  hash: string;
  createdAtMs?: number;
  updatedAtMs?: number;
  /** The active path. */
  messages: ArrivingMessage[];
  continuations?: ArrivingContinuation[];
  /** What stands in the composer of one that is new here. */
  draft?: string;
}

/** What an arrival meets: nothing, itself, an older state of itself, or one that went on here. */
export type ArrivalState = "added" | "present" | "updated" | "changed_here";

/** Messages between two looks at the clock. */
const AT_ONCE = 100;
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
    const continuations: ArrivingContinuation[] = [];
    for (const one of arriving.continuations ?? []) {
      continuations.push({ ...one, messages: await this.#withStoredPictures(one.messages) });
    }
    const all = [...messages, ...continuations.flatMap((one) => one.messages)];
    const id = this.#idFor(arriving.id);
    return await this.#parts.locks.run(id, async () => {
      const { store, blocks, db, now } = this.#parts;
      store.refuseRemoved(id); // Deleted since the id was chosen.
      const found = this.stateOf(arriving);
      if (found === "present" || found === "changed_here") return found;
      const past = store.find(id);
      const standing = past === undefined ? NOTHING_STORED : await blocks.openTree(id);
      this.#conversations.refuseCaseClash(id);
      const revision = (past?.revision ?? 0) + 1;
      const nowMs = now();
      const isoNow = new Date(nowMs).toISOString();
      const tree = await arrivingTree(messages, continuations, isoNow, () => blocks.newId());
      const state: ConversationState = {
        ...{ id, revision, messageCount: messages.length },
        createdAtMs: past?.createdAtMs ?? arriving.createdAtMs ?? nowMs,
        updatedAtMs: arriving.updatedAtMs ?? nowMs,
        head: headFrom({ ...arriving.head, [ORIGIN]: { hash: arriving.hash, revision } }),
      };
      const { statements, text } = await this.#conversations.replacing(past, state, { tree, standing });
      for (let at = 0; at < all.length; at += AT_ONCE) {
        await yieldIfTickUsedUp();
        const others = all.slice(at, at + AT_ONCE).flatMap(otherTexts);
        for (const statement of this.#parts.variants.restore(id, others)) statements.push(statement);
      }
      const draft = past === undefined && arriving.draft
        ? [store.saveDraft(id, { text: arriving.draft, version: 1 })]
        : [];
      await db.write([...statements, ...draft], { isMoved: text === undefined });
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
    for (const [index, message] of messages.entries()) {
      if (index % AT_ONCE === 0) await yieldIfTickUsedUp();
      const variants: ArrivingText[] = [];
      for (const text of message.variants ?? []) {
        variants.push({ ...text, content: await storeInlineImages(pictures, text.content) });
      }
      const content = await storeInlineImages(pictures, message.content);
      moved.push({ ...message, content, ...(message.variants && { variants }) });
    }
    return moved;
  }
}

function derivedId(id: string, n: number): string {
  return createHash("sha256").update(`${id}\n${n}`).digest("hex").slice(0, 32);
}

/**
 * Puts what arrives into segments: what follows an active version lies behind its message, any other has a segment of its
 * own.
 */
async function arrivingTree(
  messages: ArrivingMessage[],
  continuations: ArrivingContinuation[],
  now: string,
  newId: () => number,
): Promise<MessageTree> {
  const following = Map.groupBy(continuations, (one) => one.message_id);
  const tree: MessageTree = { segments: new Map(), continuations: [] };
  const waiting: { segment: number; messages: ArrivingMessage[] }[] = [{ segment: ROOT_SEGMENT, messages }];
  let placed = 0;
  for (let list = waiting.pop(); list !== undefined; list = waiting.pop()) {
    const { segment } = list;
    const whole: Message[] = [];
    for (const [index, message] of list.messages.entries()) {
      if (index % AT_ONCE === 0) await yieldIfTickUsedUp();
      whole.push(wholeMessage(message, now));
    }
    tree.segments.set(segment, whole);
    for (const { id: mid, active_variant: active = 0, variants = [] } of list.messages) {
      const others = following.get(mid);
      if (others === undefined) continue;
      const numbers = new Set([active, ...others.map(({ n }) => n)]);
      if (numbers.size <= others.length || [...numbers].some((n) => variants[n] === undefined)) {
        throw new AppError("unprocessable", `Message "${mid}" doesn't have the versions that are continued`);
      }
      placed += others.length;
      tree.continuations.push({ mid, n: active, segment, isActive: true });
      for (const { n, messages } of others) {
        const own = newId();
        tree.continuations.push({ mid, n, segment: own, isActive: false });
        waiting.push({ segment: own, messages });
      }
    }
  }
  if (placed < continuations.length) {
    throw new AppError("unprocessable", "It continues versions of messages that it doesn't have");
  }
  return tree;
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
