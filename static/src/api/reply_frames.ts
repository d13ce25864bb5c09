/** Parses the events of a reply's stream. */
import type { Message, Usage } from "./types.ts";
import type { ReplyNoticeJson } from "../../../routes/schemas/chat/chat_frames.ts";
import type { EventSourceMessage } from "eventsource-parser";
import type { ToolCall } from "./tools.ts";
import { ApiError } from "./client.ts";
import { parseErrorBody } from "./failures.ts";
import { texts } from "../texts/texts.ts";

/** The position in a reply after an event. Lengths are in UTF-16 code units. */
export interface ReplyPosition {
  generation: string;
  sequence: number;
  textLength: number;
  reasoningLength: number;
}

/** One event of a reply. */
export type ReplyFrame =
  | {
    kind: "delta";
    id: string | undefined;
    position: ReplyPosition | undefined;
    text: string;
    reasoning: string;
    finishReason?: string;
    model?: string;
    usage?: Usage;
  }
  | { kind: "done" }
  /** The server's status before the model responds. */
  | { kind: "notice"; notice: ReplyNotice }
  /** The server reads the prompt. */
  | { kind: "progress"; progress: PromptProgress }
  /** The stored message, if it differs from what was streamed. */
  | { kind: "message"; message: Pick<Message, "content" | "reasoning"> }
  /** A tool call after the text so far, or a change of one. */
  | { kind: "call"; call: ToolCall }
  | { kind: "error"; error: ApiError };

/** How much of the prompt the server has read, in tokens. `processed` includes the cached ones. */
export interface PromptProgress {
  total: number;
  cache: number;
  processed: number;
}

/** Something that delays a reply, such as `model_reload`. */
export type ReplyNotice = ReplyNoticeJson;

/** Parses `<generation>.<sequence>.<text length>.<reasoning length>`. Returns undefined for any other id. */
export function parseReplyPosition(id: string | undefined): ReplyPosition | undefined {
  const match = /^([^.]+)\.(\d+)\.(\d+)\.(\d+)$/.exec(id ?? "");
  if (!match) return undefined;
  return {
    generation: match[1]!,
    sequence: Number(match[2]),
    textLength: Number(match[3]),
    reasoningLength: Number(match[4]),
  };
}

/** Parses an event. Returns undefined for events that the page ignores. */
export function parseReplyFrame(event: EventSourceMessage): ReplyFrame | undefined {
  if (event.data === "[DONE]") return { kind: "done" };
  let value: unknown;
  try {
    value = JSON.parse(event.data);
  } catch {
    return undefined;
  }
  if (event.event === "error") {
    const body = parseErrorBody(value) ?? { code: "internal", message: texts.errors.replyFailed };
    return { kind: "error", error: new ApiError(200, body) };
  }
  if (typeof value !== "object" || value === null) return undefined;
  if (event.event === "notice") return parseNotice(value as Record<string, unknown>);
  if (event.event === "restarting") return undefined; // The stream ends, and the page connects again.
  if (event.event === "prompt_progress") return { kind: "progress", progress: value as PromptProgress };
  if (event.event === "tool_call") return parseCall(value as Record<string, unknown>);
  if (event.event === "message") return parseStoredMessage(value as Record<string, unknown>);
  const chunk = value as {
    model?: string;
    usage?: Usage | null;
    choices?: ({ delta?: Record<string, unknown> | null; finish_reason?: string | null } | null)[] | null;
  };
  const choice = chunk.choices?.[0];
  return {
    kind: "delta",
    id: event.id,
    position: parseReplyPosition(event.id),
    text: getText(choice?.delta?.content),
    reasoning: getText(choice?.delta?.reasoning_content),
    finishReason: choice?.finish_reason ?? undefined,
    model: chunk.model,
    usage: chunk.usage ?? undefined,
  };
}

function parseNotice({ code, message, context_size: size }: Record<string, unknown>): ReplyFrame | undefined {
  if (typeof code !== "string" || typeof message !== "string") return undefined;
  return { kind: "notice", notice: { code, message, context_size: typeof size === "number" ? size : undefined } };
}

function parseCall(call: Record<string, unknown>): ReplyFrame | undefined {
  if (typeof call.id !== "string" || typeof call.state !== "string") return undefined;
  return { kind: "call", call: call as unknown as ToolCall };
}

function parseStoredMessage({ content, reasoning }: Record<string, unknown>): ReplyFrame | undefined {
  if (typeof content !== "string" && !Array.isArray(content)) return undefined;
  return { kind: "message", message: { content, reasoning: typeof reasoning === "string" ? reasoning : undefined } };
}

function getText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Inserts a delta at its position in the known text.
 *
 * Positions make a repeated event harmless and a missing one visible.
 *
 * @param endLength Length of the whole text after this delta; undefined appends.
 * @returns undefined if text between the known part and the delta is missing.
 */
export function placeDelta(known: string, delta: string, endLength: number | undefined): string | undefined {
  if (endLength === undefined) return known + delta;
  if (delta === "") return known.length >= endLength ? known : undefined;
  const start = endLength - delta.length;
  if (start < 0 || start > known.length) return undefined;
  return known.length > endLength ? known : known.slice(0, start) + delta;
}
