/** Stores the messages that wait for the end of a reply. */
import { addReferences } from "../attachments/attachment_rows.ts";
import type { KeyedMutex } from "../async/locks.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationStore, MessageQueue, QueuedMessage } from "./conversation_store.ts";

/** Most messages that wait in one conversation. */
export const MAX_QUEUED = 10;

/** Most characters of all messages that wait in one conversation, with their ids: each change writes all of them. */
const MAX_CHARS = 4_000_000;

/** A message to queue. Its images are stored. */
export interface QueueInput {
  message: ChatMessage & { id?: string };
  assistantMessageId?: string;
  timeZone?: string;
  names?: Record<string, string>;
}

/** A change of a queued message. */
export interface QueueChange {
  message?: ChatMessage;
  names?: Record<string, string>;
  /** Its new place, from 0. */
  position?: number;
}

/** What takes a message out of the queue. */
export interface QueueRemoval {
  statements: Statement[];
  /** Publishes the change after its commit. */
  publish(): void;
}

/** Dependencies of `MessageQueues`. */
export interface MessageQueuesDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  locks: KeyedMutex;
  events: EventHub;
  now(): number;
}

/** Reads and changes the queues of conversations. A change doesn't change the conversation's revision. */
export class MessageQueues {
  readonly #deps: MessageQueuesDeps;

  constructor(deps: MessageQueuesDeps) {
    this.#deps = deps;
  }

  /** Returns the messages that wait in a conversation. @throws {AppError} `not_found`; `internal` if they can't be read */
  get(id: string): MessageQueue {
    const { store } = this.#deps;
    store.getRevision(id);
    return store.getQueue(id);
  }

  /**
   * Adds a message at the end. One that waits already stays as it is.
   *
   * @throws {AppError} `not_found`, `in_trash`; `conflict` if the conversation has a message with an id of it;
   *   `unprocessable` if too many wait; `too_large`
   */
  add(id: string, { message, assistantMessageId, timeZone, names }: QueueInput): Promise<QueuedMessage> {
    const { store, blocks, locks, now } = this.#deps;
    return locks.run(id, async () => {
      store.getForWrite(id);
      const before = store.getQueue(id);
      const waiting = before.items.find((item) => item.message.id === message.id);
      if (waiting !== undefined) return waiting;
      const item: QueuedMessage = {
        n: before.last + 1,
        message: { ...message, id: message.id ?? createUuidV7() },
        assistantMessageId: assistantMessageId ?? createUuidV7(),
        ...(timeZone !== undefined && { timeZone }),
        ...(names !== undefined && { names }),
        createdAt: new Date(now()).toISOString(),
      };
      const mids = [item.message.id, item.assistantMessageId];
      const queued = new Set(before.items.flatMap((each) => [each.message.id, each.assistantMessageId]));
      const used = mids.find((mid) => queued.has(mid)) ?? [...blocks.listUsedMids(id, mids)][0];
      if (used !== undefined || mids[0] === mids[1]) {
        throw new AppError("conflict", `Conversation "${id}" already has a message "${used ?? mids[0]}"`);
      }
      if (before.items.length >= MAX_QUEUED) {
        throw new AppError("unprocessable", `At most ${MAX_QUEUED} messages can wait in a conversation`);
      }
      await this.#save(id, { ...before, last: item.n, items: [...before.items, item] });
      return item;
    });
  }

  /** Changes a message that waits, or its place. @throws {AppError} `not_found`, `in_trash`, `too_large` */
  change(id: string, n: number, { message, names, position }: QueueChange): Promise<QueuedMessage> {
    return this.#deps.locks.run(id, async () => {
      const before = this.#getForChange(id);
      const item = findItem(before, id, n);
      const changed: QueuedMessage = {
        ...item,
        ...(message !== undefined && { message: { ...message, id: item.message.id } }),
        ...(names !== undefined && { names }),
      };
      const items = before.items.map((each) => each === item ? changed : each);
      if (position !== undefined) {
        items.splice(items.indexOf(changed), 1);
        items.splice(position, 0, changed);
      }
      await this.#save(id, { ...before, items });
      return changed;
    });
  }

  /** Removes a message that waits. @throws {AppError} `not_found`, `in_trash` */
  remove(id: string, n: number): Promise<void> {
    return this.#deps.locks.run(id, async () => {
      const before = this.#getForChange(id);
      const item = findItem(before, id, n);
      await this.#save(id, { ...before, items: before.items.filter((each) => each !== item) });
    });
  }

  /**
   * Returns what takes the message with an id out of the queue; `undefined` if none has it. The caller holds the
   * conversation's lock.
   */
  planRemoval(id: string, mid: string): QueueRemoval | undefined {
    const before = this.#findQueue(id);
    if (before?.items.some(({ message }) => message.id === mid) !== true) return undefined;
    return this.#plan(id, { ...before, items: before.items.filter(({ message }) => message.id !== mid) });
  }

  /** Unreadable messages that wait don't keep others from being sent. */
  #findQueue(id: string): MessageQueue | undefined {
    try {
      return this.#deps.store.getQueue(id);
    } catch {
      return undefined;
    }
  }

  #getForChange(id: string): MessageQueue {
    const { store } = this.#deps;
    store.getForWrite(id);
    return store.getQueue(id);
  }

  async #save(id: string, queue: MessageQueue): Promise<void> {
    const change = this.#plan(id, queue);
    await this.#deps.db.write(change.statements);
    change.publish();
  }

  #plan(id: string, queue: MessageQueue): QueueRemoval {
    const { store, events } = this.#deps;
    const json = JSON.stringify(queue.items);
    if (json.length > MAX_CHARS) {
      throw new AppError("too_large", "The messages that wait in this conversation are too long together");
    }
    const version = queue.version + 1;
    return {
      statements: [store.saveQueue(id, { ...queue, version }), ...addReferences("conversation", id, json)],
      publish: () => events.publish({ kind: "queue", id, revision: version }),
    };
  }
}

function findItem({ items }: MessageQueue, id: string, n: number): QueuedMessage {
  const item = items.find((each) => each.n === n);
  if (item === undefined) throw new AppError("not_found", `No message ${n} waits in conversation "${id}"`);
  return item;
}
