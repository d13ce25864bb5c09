/** What follows a reply, running or long done: its steps, its end, and the places between them. */
import type { Usage } from "../llm/chat_event.ts";
import type { MessageStatus } from "../conversations/message.ts";

/** A place in a reply: how much of it somebody has. Lengths are UTF-16 units of the whole message. */
export interface ReplyPlace {
  /** Number of the last event seen, 0 for none. */
  seq: number;
  textLength: number;
  reasoningLength: number;
}

/** One step of a reply, with the place that is reached behind it. */
export interface ReplyEvent extends ReplyPlace {
  type: "text" | "reasoning";
  delta: string;
}

/** Steps that came together; the same object for every client, so that it can be encoded once. */
export type ReplyBatch = readonly ReplyEvent[];

/** How a reply ended. */
export interface ReplyEnd {
  status: Exclude<MessageStatus, "streaming">;
  /** As OpenAI names it; `null` when the model did not say. */
  finishReason: string | null;
  usage?: Usage;
  timings?: Record<string, unknown>;
  toolCalls?: unknown[];
  error?: { code: string; message: string };
}

/** What a client that follows gets next. */
export type ReplyStep = { batch: ReplyBatch } | { end: ReplyEnd };

/** What every source of a reply offers to a follower, running or long done. */
export interface ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  readonly model: string;
  readonly startedAtMs: number;
  next(place: ReplyPlace): ReplyStep | Promise<ReplyStep>;
}

/** Gives everything behind a place in at most two steps, reasoning first, cut by length. */
export function restFrom(place: ReplyPlace, text: string, reasoning: string, seq: number): ReplyBatch {
  const batch: ReplyEvent[] = [];
  if (place.reasoningLength < reasoning.length) {
    const delta = reasoning.slice(place.reasoningLength);
    batch.push({ type: "reasoning", delta, seq, textLength: place.textLength, reasoningLength: reasoning.length });
  }
  if (place.textLength < text.length) {
    batch.push({
      type: "text",
      delta: text.slice(place.textLength),
      seq,
      textLength: text.length,
      reasoningLength: reasoning.length,
    });
  }
  return batch;
}
