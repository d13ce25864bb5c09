/**
 * Converts tool calls between their forms: the messages of a round (one with the calls, and one per result) and the
 * calls that clients follow.
 */
import { Buffer } from "node:buffer";
import { completeMessage, type Message, type MessageContent } from "../../conversations/message.ts";
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { RESULT_UNKNOWN, type ToolCallRecord, type ToolCallState, UNDECIDED } from "../../tools/tool_call_store.ts";
import type { WrittenRound } from "../reply.ts";
import type { ToolOutput, ToolOutputPart } from "../../tools/tool_registry.ts";

/** A tool call of the current round. */
export interface OpenCall {
  record: ToolCallRecord;
  /** Fields that the model server requires with the call. */
  extra: Record<string, unknown>;
  /** The message with the result. */
  result?: Message;
}

/** The fields of a reply that a round's message gets. */
export interface RoundOwner {
  messageId: string;
  model: string;
  connectionId?: string;
  characterId?: string;
}

/** Creates the message with the calls of a round, without the calls. */
export function createRoundMessage(round: WrittenRound, owner: RoundOwner, id: string, now: string): Message {
  const { text, reasoning, isSplit, details, usage, timings, finishReason } = round;
  return completeMessage(
    {
      role: "assistant",
      content: text,
      reply_id: owner.messageId,
      ...(reasoning !== "" && { reasoning }),
      ...(isSplit && { split_reasoning: true }),
      ...(details && { reasoning_details: details }),
      ...(owner.model !== "" && { model: owner.model }),
      ...(owner.connectionId !== undefined && { connection_id: owner.connectionId }),
      ...(owner.characterId !== undefined && { character_id: owner.characterId }),
      ...(usage && { usage }),
      ...(timings && { timings }),
      finish_reason: finishReason ?? "tool_calls",
    },
    id,
    now,
  );
}

/** Creates the message with the result of a call. */
export function createResultMessage(
  callId: string,
  content: MessageContent,
  { replyId, id, now }: { replyId: string; id: string; now: string },
): Message {
  return completeMessage({ role: "tool", content, tool_call_id: callId, reply_id: replyId }, id, now);
}

/** Converts a call to the form in which messages have it. */
export function toMessageCall({ record, extra }: OpenCall): Record<string, unknown> {
  const { id, name, arguments: args, ...fields } = describeCall(record);
  return { ...extra, id, type: "function", function: { name, arguments: args }, ...fields };
}

/** Converts a call to the form of the API. */
export function toCallJson(record: ToolCallRecord): ToolCallJson {
  return {
    ...describeCall(record),
    ...(record.result !== undefined && { result: record.result }),
    message_id: record.messageId,
  };
}

function describeCall(record: ToolCallRecord) {
  const { id, name, arguments: args, state, tool, decidedBy, proposedArguments, startedAtMs, endedAtMs } = record;
  return {
    id,
    name,
    arguments: args,
    state,
    ...(tool && { server_id: tool.serverId, server_name: tool.serverName, tool_name: tool.name, hints: tool.hints }),
    ...(decidedBy !== undefined && { decided_by: decidedBy }),
    ...(proposedArguments !== undefined && { proposed_arguments: proposedArguments }),
    ...(startedAtMs !== undefined && endedAtMs !== undefined && { duration_ms: endedAtMs - startedAtMs }),
  };
}

/** Parses the arguments of a call. Returns undefined if they aren't a JSON object. */
export function parseArguments(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Ends a call that was still open when its reply ended. */
export function closeCall(open: OpenCall, now: number, setResult: (result: ToolResult) => void): void {
  const isRunning = open.record.state === "running";
  open.record = {
    ...open.record,
    state: isRunning ? "unknown" : "denied",
    endedAtMs: now,
    ...(!isRunning && { decidedBy: "system" }),
  };
  setResult(toNotice(isRunning ? RESULT_UNKNOWN : UNDECIDED));
}

/**
 * Returns the generation under which the text of a round is journaled.
 *
 * @param rounds Number of rounds before it.
 */
export function toRoundGeneration(generation: string, rounds: number): string {
  return `${generation}/${rounds}`;
}

// Converts the output of a tool to what the model sees.

/** A result, as it is stored. */
export interface ToolResult {
  /** The part for the model: text, or parts if there are images. */
  content: MessageContent;
  /** The text of `content`. */
  text: string;
  /** The complete text, if the model sees less. */
  fullText?: string;
}

/** Maximum size of a result's text for the model, and for storing. */
export const MAX_SENT_BYTES = 64 * 1024;
export const MAX_STORED_BYTES = 1024 * 1024;

const CUT = "\n[The result was longer. The rest was omitted.]";

/** Creates the result of a call that ended without output. */
export function toNotice(text: string): ToolResult {
  return { content: text, text };
}

/**
 * Converts the output of a tool. Images become parts with data URLs, which the caller stores. Audio becomes a note, and
 * links aren't fetched.
 *
 * @param maxBytes Maximum size of the text for the model.
 */
export function toToolResult({ parts, truncated }: ToolOutput, maxBytes: number): ToolResult {
  const whole = parts.map(toText).filter((text) => text !== "").join("\n");
  const stored = truncateToBytes(whole, MAX_STORED_BYTES);
  const limit = Math.min(maxBytes, MAX_SENT_BYTES) - CUT.length;
  const seen = truncateToBytes(stored, limit);
  const isCut = truncated || seen !== whole;
  const images = parts.flatMap(toImagePart);
  const text = (seen === "" && images.length === 0 ? "(The tool returned nothing.)" : seen) + (isCut ? CUT : "");
  return {
    content: images.length === 0 ? text : [{ type: "text", text }, ...images],
    text,
    ...(seen !== stored && { fullText: stored }),
  };
}

function toText(part: ToolOutputPart): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "link":
      return `[link: ${part.name === undefined ? "" : `${part.name} `}${part.uri}]`;
    case "audio":
      return `[audio, ${part.contentType}, not shown]`;
    case "image":
      return "";
  }
}

function toImagePart(part: ToolOutputPart): { type: string; [field: string]: unknown }[] {
  if (part.type !== "image") return [];
  const url = `data:${part.contentType};base64,${Buffer.from(part.data).toString("base64")}`;
  return [{ type: "image_url", image_url: { url } }];
}

/** Truncates a text to a number of bytes in UTF-8, between characters. */
function truncateToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}

/** A tool call as clients see it, in the API's format. */
export interface ToolCallJson {
  id: string;
  /** The name that the model used. */
  name: string;
  /** A JSON object as text. */
  arguments: string;
  state: ToolCallState;
  /** The result as the model sees it. */
  result?: string;
  /** Absent, like the next two, if no tool has this name. */
  server_id?: string;
  server_name?: string;
  tool_name?: string;
  /** What the server declares about the tool's effects. */
  hints?: { readOnly?: boolean; destructive?: boolean };
  decided_by?: string;
  /** How long the tool ran. */
  duration_ms?: number;
  /** The message with the call. */
  message_id: string;
}

/** A change of a tool call for a client. */
export interface ToolCallUpdate {
  call: ToolCallJson;
  /** Number of the call in the reply, from 0. */
  index: number;
  /** True if the client doesn't have the call yet. */
  isNew: boolean;
}

interface Entry {
  call: ToolCallJson;
  /** Lengths of the text before the call. */
  textLength: number;
  reasoningLength: number;
  added: number;
  changed: number;
}

/** A position in the text of a reply. */
interface TextPosition {
  textLength: number;
  reasoningLength: number;
}

/**
 * Collects the tool calls of a reply and their changes. Changes are numbered, so that each client gets the ones it
 * doesn't have.
 */
export class ReplyCalls {
  readonly #entries = new Map<string, Entry>();
  #changes = 0;

  /** Number of the last change. */
  get changes(): number {
    return this.#changes;
  }

  /** Returns all calls. */
  all(): ToolCallJson[] {
    return [...this.#entries.values()].map(({ call }) => call);
  }

  /** Adds a call after the text so far, or changes it. */
  set(call: ToolCallJson, { textLength, reasoningLength }: TextPosition): void {
    const before = this.#entries.get(call.id);
    this.#changes++;
    if (before !== undefined) Object.assign(before, { call, changed: this.#changes });
    else {
      const [added, changed] = [this.#changes, this.#changes];
      this.#entries.set(call.id, { call, textLength, reasoningLength, added, changed });
    }
  }

  /**
   * Returns the changes that a client doesn't have, of calls whose preceding text it has, and the number of the last
   * such change. Later calls have later changes, because a round starts only when all earlier calls have ended.
   */
  listSince(seen: number, position: TextPosition): { updates: ToolCallUpdate[]; last: number } {
    const updates: ToolCallUpdate[] = [];
    let last = seen;
    for (const [index, { call, added, changed, ...start }] of [...this.#entries.values()].entries()) {
      if (changed <= seen || !isBefore(start, position)) continue;
      updates.push({ call, index, isNew: added > seen });
      last = Math.max(last, changed);
    }
    return { updates, last };
  }

  /** Returns the position of the first calls that a client doesn't have. Text after it belongs after them. */
  nextUnseen(seen: number): TextPosition | undefined {
    return [...this.#entries.values()].find(({ added }) => added > seen);
  }
}

function isBefore(entry: TextPosition, { textLength, reasoningLength }: TextPosition): boolean {
  return entry.textLength <= textLength && entry.reasoningLength <= reasoningLength;
}
