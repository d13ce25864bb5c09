/** What a client can follow of a reply, running or stored: its batches of text and its end. */
import type { Message, MessageStatus } from "../conversations/message.ts";
import type { Usage } from "../llm/chat_event.ts";

/** The error of a reply that was cut off by the end of the server. */
export const INTERRUPTED = { code: "interrupted", message: "The server stopped while it was writing this reply" };

/** A position in a reply: how much of it a client has. Lengths are UTF-16 units of the whole message. */
export interface ReplyCursor {
  /** Number of the last event the client has, 0 for none. */
  seq: number;
  textLength: number;
  reasoningLength: number;
}

/** One piece of a reply, and the position after it. */
export interface ReplyEvent extends ReplyCursor {
  type: "text" | "reasoning";
  delta: string;
}

/** Events that arrived together. All clients share one object, so that it is encoded once. */
export type ReplyBatch = readonly ReplyEvent[];

/** How a reply ended. */
export interface ReplyEnd {
  status: Exclude<MessageStatus, "streaming">;
  /** As in OpenAI's API; `null` if the server didn't send one. */
  finishReason: string | null;
  usage?: Usage;
  timings?: Record<string, unknown>;
  toolCalls?: unknown[];
  error?: { code: string; message: string };
}

/** What a client that follows a reply gets next. */
export type ReplyStep = { batch: ReplyBatch } | { end: ReplyEnd };

/** A reply that clients can follow. */
export interface ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  readonly model: string;
  readonly startedAtMs: number;
  /** Returns what comes after a position, and waits for it if the reply is being written. */
  next(cursor: ReplyCursor): ReplyStep | Promise<ReplyStep>;
}

/** Returns everything after a position in at most two events, reasoning first. */
export function restAfter(cursor: ReplyCursor, text: string, reasoning: string, seq: number): ReplyBatch {
  const batch: ReplyEvent[] = [];
  if (cursor.reasoningLength < reasoning.length) {
    const delta = reasoning.slice(cursor.reasoningLength);
    batch.push({ type: "reasoning", delta, seq, textLength: cursor.textLength, reasoningLength: reasoning.length });
  }
  if (cursor.textLength < text.length) {
    batch.push({
      type: "text",
      delta: text.slice(cursor.textLength),
      seq,
      textLength: text.length,
      reasoningLength: reasoning.length,
    });
  }
  return batch;
}

/** A reply that has ended, read from its stored message. */
export class StoredReply implements ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  readonly model: string;
  readonly startedAtMs: number;
  readonly #text: string;
  readonly #reasoning: string;
  readonly #end: ReplyEnd;

  constructor(conversationId: string, generation: string, startedAtMs: number, message: Message) {
    this.conversationId = conversationId;
    this.messageId = message.id;
    this.generation = generation;
    this.model = message.model ?? "";
    this.startedAtMs = startedAtMs;
    this.#text = typeof message.content === "string" ? message.content : "";
    this.#reasoning = message.reasoning ?? "";
    this.#end = toReplyEnd(message);
  }

  next(cursor: ReplyCursor): ReplyStep {
    if (cursor.textLength >= this.#text.length && cursor.reasoningLength >= this.#reasoning.length) {
      return { end: this.#end };
    }
    return { batch: restAfter(cursor, this.#text, this.#reasoning, cursor.seq + 1) };
  }
}

function toReplyEnd(message: Message): ReplyEnd {
  const { status, usage, error, timings, tool_calls: toolCalls, finish_reason: finishReason } = message;
  return {
    status: status === "streaming" ? "interrupted" : status,
    finishReason: typeof finishReason === "string" ? finishReason : null,
    usage,
    error: error ?? (status === "interrupted" || status === "streaming" ? INTERRUPTED : undefined),
    timings: typeof timings === "object" && timings !== null ? timings as Record<string, unknown> : undefined,
    toolCalls: Array.isArray(toolCalls) ? toolCalls : undefined,
  };
}
