/** The replies that are being written right now, by message and by conversation; at most one a conversation. */
import type { Message } from "./message.ts";

/** What the conversations need to know of a running reply. */
export interface LiveReply {
  readonly conversationId: string;
  readonly messageId: string;
  readonly startedAtMs: number;
  /** The message with the text that has come so far. */
  overlay(stored: Message): Message;
  /** True once its end is on disk; until then it moves its conversation's revision by one more. */
  readonly isSaved: boolean;
  /**
   * Ends the reply and keeps what has come; resolves once the message is settled.
   *
   * @throws {AppError} `storage_full` or `internal` when it cannot be saved for now; it runs on to be saved then.
   */
  stop(): Promise<void>;
}

/** Who is being answered where. */
export class LiveReplies<R extends LiveReply = LiveReply> {
  #byMessage = new Map<string, R>();
  #byConversation = new Map<string, R>();

  add(reply: R): void {
    this.#byMessage.set(reply.messageId, reply);
    this.#byConversation.set(reply.conversationId, reply);
  }

  remove(reply: R): void {
    if (this.#byMessage.get(reply.messageId) === reply) this.#byMessage.delete(reply.messageId);
    if (this.#byConversation.get(reply.conversationId) === reply) this.#byConversation.delete(reply.conversationId);
  }

  ofMessage(mid: string): R | undefined {
    return this.#byMessage.get(mid);
  }

  ofConversation(conversationId: string): R | undefined {
    return this.#byConversation.get(conversationId);
  }

  all(): R[] {
    return [...this.#byMessage.values()];
  }
}
