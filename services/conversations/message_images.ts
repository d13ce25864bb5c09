/** Adds generated images to messages. Their names are in the field `attachments`, which isn't sent to models. */
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { Conversations } from "./conversations.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies } from "./live_replies.ts";

/** Dependencies of MessageImages. */
export interface MessageAttachmentsDeps {
  store: ConversationStore;
  blocks: BlockStore;
  live: LiveReplies;
  events: EventHub;
  conversations: Conversations;
}

/** Attaches images to messages. */
export class MessageAttachments {
  readonly #deps: MessageAttachmentsDeps;

  constructor(parts: MessageAttachmentsDeps) {
    this.#deps = parts;
  }

  /**
   * Returns the id of a message, by default of the last one.
   *
   * @throws {AppError} `not_found`; `unprocessable` if the conversation has no message
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
    throw new AppError("unprocessable", "The conversation has no message that could have an image");
  }

  /** Reports whether a conversation, and a message in it, exist and aren't in the trash. */
  has(conversationId: string, messageId?: string): boolean {
    const { store, blocks } = this.#deps;
    if (store.find(conversationId) === undefined) return false;
    return messageId === undefined || blocks.rowOf(conversationId, messageId) !== undefined;
  }

  /** Removes an image from a message. @throws {AppError} `not_found`; `conflict` while a reply writes the message */
  async detach(conversationId: string, messageId: string, name: string): Promise<void> {
    await this.#deps.conversations.editMessage(conversationId, messageId, ({ attachments, ...rest }) => {
      const others = Array.isArray(attachments) ? attachments.filter((other) => other !== name) : [];
      return others.length === 0 ? rest : { ...rest, attachments: others };
    });
  }

  /**
   * Attaches images. Waits while a reply writes the message.
   *
   * @throws {AppError} `not_found`
   * @throws The reason of `signal`.
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

  /** Waits for the end of a reply. Called before the attempt, so that an end during it isn't missed. */
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
