/** A reply that no process writes any more, followed from what was stored of it. */
import type { Message } from "../conversations/message.ts";
import { type ReplyEnd, type ReplyPlace, type ReplySource, type ReplyStep, restFrom } from "./reply_source.ts";

/** The error that an interrupted reply carries. */
export const INTERRUPTED = { code: "interrupted", message: "The server ended while this reply was being written" };

/** A reply that is over: its message as it was stored. */
export class StoredReply implements ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  readonly model: string;
  readonly startedAtMs: number;
  #text: string;
  #reasoning: string;
  #end: ReplyEnd;

  constructor(conversationId: string, generation: string, startedAtMs: number, message: Message) {
    this.conversationId = conversationId;
    this.messageId = message.id;
    this.generation = generation;
    this.model = message.model ?? "";
    this.startedAtMs = startedAtMs;
    this.#text = typeof message.content === "string" ? message.content : "";
    this.#reasoning = message.reasoning ?? "";
    this.#end = endOf(message);
  }

  next(place: ReplyPlace): ReplyStep {
    if (place.textLength >= this.#text.length && place.reasoningLength >= this.#reasoning.length) {
      return { end: this.#end };
    }
    return { batch: restFrom(place, this.#text, this.#reasoning, place.seq + 1) };
  }
}

function endOf(message: Message): ReplyEnd {
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
