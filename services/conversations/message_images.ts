/** Pictures that come to a message after it was written: names in its field `attachments`, which no model is sent. */
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";

/** What it stands on. */
export interface MessageAttachmentsDeps {
  store: ConversationStore;
  blocks: BlockStore;
  live: LiveReplies;
  events: EventHub;
  conversations: Conversations;
}

/** Attaches pictures to messages. */
export class MessageAttachments {
  readonly #deps: MessageAttachmentsDeps;

  constructor(parts: MessageAttachmentsDeps) {
    this.#deps = parts;
  }

  /**
   * Gives the message that is meant: the last one where none is named.
   *
   * @throws {AppError} `not_found`; `unprocessable` when the conversation has no message
   */
  find(conversationId: string, messageId: string | undefined): string {
    const { store, blocks } = this.#deps;
    store.get(conversationId);
    if (messageId !== undefined) {
      if (blocks.rowOf(conversationId, messageId) !== undefined) return messageId;
      throw new AppError("not_found", `Conversation "${conversationId}" has no message "${messageId}"`);
    }
    const block = blocks.previous(conversationId);
    const last = block === undefined ? undefined : blocks.messagesOf(conversationId, block).at(-1);
    if (last !== undefined) return last.id;
    throw new AppError("unprocessable", "The conversation has no message yet that a picture could belong to");
  }

  /**
   * Attaches pictures; waits while a reply writes the message.
   *
   * @throws {AppError} `not_found` when the message is gone
   * @throws The reason of `signal`, when that fired.
   */
  async attach(conversationId: string, messageId: string, names: string[], signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const ended = this.#replyEnded(conversationId, signal);
      try {
        await this.#deps.conversations.editMessage(conversationId, messageId, (before) => {
          const attachments = Array.isArray(before.attachments) ? before.attachments : [];
          return { ...before, attachments: [...attachments.filter((name) => !names.includes(name)), ...names] };
        });
        return;
      } catch (error) {
        const isBusy = error instanceof AppError && error.code === "conflict" &&
          this.#deps.live.findByMessage(conversationId, messageId) !== undefined;
        if (!isBusy) throw error;
        await ended.promise;
      } finally {
        ended.stop();
      }
    }
  }

  /** Listens from now on, so that an end between the attempt and the wait is not missed. */
  #replyEnded(conversationId: string, signal: AbortSignal): { promise: Promise<void>; stop(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const unsubscribe = this.#deps.events.subscribe(({ kind, id }) => {
      if (kind === "reply_ended" && id === conversationId) resolve();
    });
    const leave = () => resolve();
    signal.addEventListener("abort", leave, { once: true });
    return {
      promise,
      stop() {
        unsubscribe();
        signal.removeEventListener("abort", leave);
      },
    };
  }
}
