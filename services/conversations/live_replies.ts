/** The replies that are being written right now, by conversation; at most one in each. */
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
  #byConversation = new Map<string, R>();

  add(reply: R): void {
    this.#byConversation.set(reply.conversationId, reply);
  }

  remove(reply: R): void {
    if (this.#byConversation.get(reply.conversationId) === reply) this.#byConversation.delete(reply.conversationId);
  }

  ofMessage(conversationId: string, mid: string): R | undefined {
    const reply = this.#byConversation.get(conversationId);
    return reply?.messageId === mid ? reply : undefined;
  }

  ofConversation(conversationId: string): R | undefined {
    return this.#byConversation.get(conversationId);
  }

  all(): R[] {
    return [...this.#byConversation.values()];
  }
}
