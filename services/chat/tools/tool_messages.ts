/** The messages of a round: the one with the calls, and one for each result. */
import { completeMessage, type Message, type MessageContent } from "../../conversations/message.ts";
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import type { ToolCallRecord } from "../../tools/tool_call_store.ts";
import type { WrittenRound } from "../reply.ts";
import { toNotice, type ToolResult } from "./tool_result.ts";
import type { ToolCallJson } from "../reply_calls.ts";

const UNDECIDED = "This call wasn't made: the reply ended before the user decided.";
/** What the model learns about a call in flight when the server died. */
export const UNKNOWN =
  "The result of this call isn't known: the reply ended while the call ran. It may have taken effect. Don't repeat it " +
  "without asking the user.";

/** A call of the current round. */
export interface OpenCall {
  record: ToolCallRecord;
  /** Fields that the model's server wants back with the call. */
  extra: Record<string, unknown>;
  /** The message with the result. */
  result?: Message;
}

/** What a message of a round takes from the reply. */
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

/** Ends a call that the end of its reply has left open. */
export function closeCall(open: OpenCall, now: number, setResult: (result: ToolResult) => void): void {
  const isRunning = open.record.state === "running";
  open.record = {
    ...open.record,
    state: isRunning ? "unknown" : "denied",
    endedAtMs: now,
    ...(!isRunning && { decidedBy: "system" }),
  };
  setResult(toNotice(isRunning ? UNKNOWN : UNDECIDED));
}

/** Returns the generation under which the text of a round is journaled. @param rounds Rounds before it. */
export function toRoundGeneration(generation: string, rounds: number): string {
  return `${generation}/${rounds}`;
}
