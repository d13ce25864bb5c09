/** What a client can follow of a reply, running or stored: its batches of text and its end. */
import { type Message, type MessageError, type MessageStatus, textOfContent } from "../conversations/message.ts";
import { isJsonObject } from "../json/type_guards.ts";
import type { ChatNotice, Usage } from "../llm/chat_event.ts";
import { ReplyCalls, type ToolCallJson, type ToolCallUpdate } from "./reply_calls.ts";

/** The error of a reply that was cut off by the end of the server. */
export const INTERRUPTED = { code: "interrupted", message: "The server stopped while it was writing this reply" };

/** A position in a reply: how much of it a client has. Lengths are UTF-16 units of the whole message. */
export interface ReplyCursor {
  /** Number of the last event the client has, 0 for none. */
  seq: number;
  textLength: number;
  reasoningLength: number;
  /** Number of the last notice the client has. */
  notices?: number;
  /** Number of the last change of a call that the client has. */
  calls?: number;
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
  error?: MessageError;
  /** The stored message, if it isn't what was streamed. */
  message?: Message;
}

/** What a client that follows a reply gets next. */
export type ReplyStep =
  | { batch: ReplyBatch }
  | { end: ReplyEnd }
  /** The server isn't ready yet. `after` is the position to go on from. */
  | { notice: ChatNotice; after: ReplyCursor }
  /** Calls of tools that are new or have changed. */
  | { calls: ToolCallUpdate[]; after: ReplyCursor };

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
function restAfter(cursor: ReplyCursor, text: string, reasoning: string, seq: number): ReplyBatch {
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
  /** The message, if clients that followed it while it was written have another text. */
  readonly #changed: Message | undefined;

  readonly #calls = new ReplyCalls();

  /** @param message With its `tool_rounds`. */
  constructor(conversationId: string, generation: string, startedAtMs: number, message: Message) {
    const { tool_rounds: rounds = [], ...last } = message;
    const before = addStoredCalls(this.#calls, rounds);
    this.conversationId = conversationId;
    this.messageId = message.id;
    this.generation = generation;
    this.model = message.model ?? "";
    this.startedAtMs = startedAtMs;
    this.#text = before.text + (typeof message.content === "string" ? message.content : "");
    this.#reasoning = before.reasoning + (message.reasoning ?? "");
    this.#end = toReplyEnd(message);
    this.#changed = message.split_reasoning === true ? last as Message : undefined;
  }

  next(cursor: ReplyCursor): ReplyStep {
    // A position in the text as it was streamed: there, the reasoning was part of it.
    if (this.#changed !== undefined && cursor.seq > 0 && cursor.reasoningLength < this.#reasoning.length) {
      return { end: { ...this.#end, message: this.#changed } };
    }
    const text = { text: this.#text, reasoning: this.#reasoning };
    return nextCalls(cursor, this.#calls) ?? nextText(cursor, this.#calls, text, cursor.seq + 1) ??
      { end: this.#end };
  }
}

/** Returns the changes of calls that a client gets next: of those behind text that it has. */
export function nextCalls(cursor: ReplyCursor, calls: ReplyCalls): ReplyStep | undefined {
  if (calls.changes === (cursor.calls ?? 0)) return undefined;
  const { updates, last } = calls.since(cursor.calls ?? 0, cursor);
  return updates.length === 0 ? undefined : { calls: updates, after: { ...cursor, calls: last } };
}

/** Returns the text that a client gets next, up to the first calls that it hasn't seen. */
export function nextText(
  cursor: ReplyCursor,
  calls: ReplyCalls,
  { text, reasoning }: { text: string; reasoning: string },
  seq: number,
): ReplyStep | undefined {
  if (cursor.textLength >= text.length && cursor.reasoningLength >= reasoning.length) return undefined;
  const limit = calls.nextUnseen(cursor.calls ?? 0);
  const batch = limit === undefined
    ? restAfter(cursor, text, reasoning, seq)
    : restAfter(cursor, text.slice(0, limit.textLength), reasoning.slice(0, limit.reasoningLength), seq);
  return { batch };
}

/** Adds the calls of stored rounds, and returns the text of the rounds. */
export function addStoredCalls(calls: ReplyCalls, rounds: readonly Message[]): { text: string; reasoning: string } {
  let [text, reasoning] = ["", ""];
  const results = new Map(rounds.map((message) => [message.tool_call_id, message]));
  for (const round of rounds) {
    if (round.role !== "assistant") continue;
    text += textOfContent(round.content);
    reasoning += round.reasoning ?? "";
    for (const call of Array.isArray(round.tool_calls) ? round.tool_calls : []) {
      const result = isJsonObject(call) ? results.get(String(call.id)) : undefined;
      calls.set(toCallJson(call, round.id, result), { textLength: text.length, reasoningLength: reasoning.length });
    }
  }
  return { text, reasoning };
}

/** Converts a stored call to the form that clients follow. */
function toCallJson(call: unknown, messageId: string, result: Message | undefined): ToolCallJson {
  const { id, function: named, type: _, ...fields } = call as Record<string, unknown>;
  const { name, arguments: args } = isJsonObject(named) ? named : {};
  return {
    state: "unknown",
    ...fields,
    id: String(id),
    name: String(name),
    arguments: String(args ?? ""),
    ...(result && { result: textOfContent(result.content) }),
    message_id: messageId,
  };
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
