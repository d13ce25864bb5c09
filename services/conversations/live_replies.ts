/** The replies that are being written, at most one per conversation. */
import type { Message } from "./message.ts";

/** What conversations need to know about a running reply. */
export interface LiveReply {
  readonly conversationId: string;
  readonly messageId: string;
  readonly startedAtMs: number;
  /** Returns the stored message with the text written so far. */
  overlay(stored: Message): Message;
  /** Whether the end is on disk. Until then the reply will raise its conversation's revision by one more. */
  readonly isSaved: boolean;
  /**
   * Stops the reply, keeps its text and waits until its message is saved.
   *
   * @throws {AppError} `storage_full` or `internal` if it can't be saved yet. Saving is tried again.
   */
  stop(): Promise<void>;
}

/** The running replies by conversation. */
export class LiveReplies<R extends LiveReply = LiveReply> {
  readonly #byConversation = new Map<string, R>();

  add(reply: R): void {
    this.#byConversation.set(reply.conversationId, reply);
  }

  remove(reply: R): void {
    if (this.#byConversation.get(reply.conversationId) === reply) this.#byConversation.delete(reply.conversationId);
  }

  /** Finds the reply that writes a message. */
  findByMessage(conversationId: string, mid: string): R | undefined {
    const reply = this.#byConversation.get(conversationId);
    return reply?.messageId === mid ? reply : undefined;
  }

  /** Finds the reply that runs in a conversation. */
  findByConversation(conversationId: string): R | undefined {
    return this.#byConversation.get(conversationId);
  }

  /** Returns all running replies. */
  all(): R[] {
    return [...this.#byConversation.values()];
  }
}
