/** Copies of conversations up to one of their messages, and who is a copy of whom. */
import { Mutex } from "../async/keyed_mutex.ts";
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { type ConversationHead, type ConversationState, toSnippet } from "./conversation.ts";
import type { Conversations, ConversationsDeps } from "./conversations.ts";
import type { Message } from "./message.ts";
import { createLinearTree } from "./tree/message_tree.ts";
import { replaceTree } from "./revisions/tree_replacement.ts";

/** Where a conversation was copied from. */
export interface ForkedFrom {
  conversation_id: string;
  /** The last message that was copied, by its id there. */
  message_id: string;
}

/** One end of a fork. */
export interface Branch extends ForkedFrom {
  title: string;
  updated_at: string;
  message_count: number;
}

/** `GET …/branches` */
export interface Branches {
  /** What the conversation is a copy of, while that is there; `message_id` is where it leaves it. */
  origin: Branch | null;
  /** Its copies, the one changed last first; `message_id` is the message of this conversation where each leaves it. */
  forks: Branch[];
}

/** Heads opened at once. */
const HEADS = 64;

/** Makes and finds forks. */
export class Forks {
  #deps: ConversationsDeps;
  #conversations: Conversations;
  /** Origins by conversation; a head is opened again only when its revision has moved. */
  #known = new Map<string, { revision: number; from: ForkedFrom | undefined }>();
  readonly #lookLock = new Mutex();

  constructor(parts: ConversationsDeps, conversations: Conversations) {
    this.#deps = parts;
    this.#conversations = conversations;
  }

  /**
   * Copies a conversation up to and with a message, under new ids. A reply being written is copied as far as it has come.
   *
   * @returns The id of the copy.
   * @throws {AppError} `not_found`
   */
  fork(id: string, mid: string): Promise<string> {
    const { store, blocks, variants, live, locks, db, now } = this.#deps;
    return locks.run(id, async () => {
      const origin = store.get(id);
      const stored = (await blocks.openPath(id)).flatMap((block) => block.messages);
      blocks.requireOnPath(id, mid);
      const end = stored.findIndex((message) => message.id === mid);
      if (end < 0) throw new AppError("not_found", `Conversation "${id}" has no message "${mid}"`);
      const copied = stored.slice(0, end + 1);
      const newIds = new Map(copied.map((message) => [message.id, uuidV7()]));
      const tree = blocks.tree(id);
      // What follows the other versions of a user message stays with the origin, and so do they.
      const isBranch = (mid: string) => tree.find(mid) !== undefined;
      const messages = copied.map((message) => ({
        ...asStopped(id, message, live),
        ...(isBranch(message.id) && { variant_count: 1, active_variant: 0 }),
        id: newIds.get(message.id)!,
      }));
      const mids = copied.map((message) => message.id).filter((mid) => !isBranch(mid));
      const texts = variants.textsOf(id, mids).map((text) => ({
        ...text,
        mid: newIds.get(text.mid)!,
      }));
      const state: ConversationState = {
        id: uuidV7(),
        revision: 1,
        createdAtMs: now(),
        updatedAtMs: now(),
        messageCount: messages.length,
        head: copiedHead(origin.head, newIds, { conversation_id: id, message_id: mid }),
      };
      const { statements } = await replaceTree(blocks, state.id, createLinearTree(messages));
      await db.write([
        store.insert(state, toSnippet(messages.at(-1))),
        ...statements,
        ...variants.restore(state.id, texts),
      ]);
      this.#conversations.publish(state);
      return state.id;
    });
  }

  /** Finds the origin and the copies of a conversation. @throws {AppError} `not_found` */
  async branches(id: string): Promise<Branches> {
    const { store } = this.#deps;
    store.get(id);
    const copies = await this.#copiesOf(id);
    const from = forkedFrom(store.get(id).head);
    const origin = from === undefined ? undefined : store.find(from.conversation_id);
    return {
      origin: from === undefined || origin === undefined ? null : branchOf(origin, from.message_id),
      forks: copies.flatMap((fork) => {
        const state = store.find(fork.id);
        return state === undefined ? [] : [branchOf(state, fork.message_id)];
      }),
    };
  }

  async #copiesOf(id: string): Promise<{ id: string; message_id: string }[]> {
    // One look at a time: what one has opened, the next need not.
    await this.#lookLock.run(() => this.#look());
    return this.#deps.store.revisions().flatMap(({ id: copy }) => {
      const from = this.#known.get(copy)?.from;
      return from?.conversation_id === id ? [{ id: copy, message_id: from.message_id }] : [];
    });
  }

  /** Opens the heads that have changed since the last look, off the serving thread and a few at a time. */
  async #look(): Promise<void> {
    const { store } = this.#deps;
    const present = store.revisions();
    const ids = new Set(present.map(({ id }) => id));
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
    const changed = present.filter(({ id, revision }) => this.#known.get(id)?.revision !== revision);
    for (let at = 0; at < changed.length; at += HEADS) {
      const rows = store.heads(changed.slice(at, at + HEADS).map(({ id }) => id));
      await Promise.all(rows.map(async (row) => {
        // One conversation that cannot be read hides no other's copies.
        const head = await store.openHead(row).catch(() => undefined);
        this.#known.set(row.id, { revision: row.revision, from: head && forkedFrom(head) });
      }));
    }
  }
}

function asStopped(id: string, message: Message, live: ConversationsDeps["live"]): Message {
  const reply = live.findByMessage(id, message.id);
  if (reply === undefined) return message;
  const { error: _, ...written } = reply.overlay(message);
  return { ...written, status: "stopped" };
}

/** Fields that name messages have to name the copies. */
function copiedHead(head: ConversationHead, newIds: Map<string, string>, from: ForkedFrom): ConversationHead {
  const { summary, ...copy } = head;
  const upTo = (summary as { up_to_message_id?: string } | undefined)?.up_to_message_id;
  const newUpTo = upTo === undefined ? undefined : newIds.get(upTo);
  return {
    ...copy as ConversationHead,
    ...(newUpTo === undefined ? {} : { summary: { ...summary as object, up_to_message_id: newUpTo } }),
    forked_from: from,
  };
}

function forkedFrom(head: ConversationHead): ForkedFrom | undefined {
  const from = head.forked_from as Partial<ForkedFrom> | undefined;
  if (typeof from?.conversation_id !== "string" || typeof from.message_id !== "string") return undefined;
  return { conversation_id: from.conversation_id, message_id: from.message_id };
}

function branchOf(state: ConversationState, messageId: string): Branch {
  return {
    conversation_id: state.id,
    message_id: messageId,
    title: state.head.title,
    updated_at: new Date(state.updatedAtMs).toISOString(),
    message_count: state.messageCount,
  };
}
