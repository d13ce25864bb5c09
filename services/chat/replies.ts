/**
 * Replies as clients see them: finds running and stored replies, and lets clients follow one, from batches of text to
 * its end.
 */
import { createHash } from "node:crypto";
import type { KeyedMutex } from "../async/locks.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import { refuseOtherDecision, type ToolDecision } from "./tools/tool_round.ts";
import type { ToolCallRecord, ToolCallStore } from "../tools/tool_call_store.ts";
import type { ConversationReader } from "../conversations/conversation_reader.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import { findConversationsOfReply, findReplyRow, type LiveReplies } from "../conversations/live_replies.ts";
import {
  getContentText,
  isEmptyFailure,
  type Message,
  type MessageError,
  type MessageStatus,
} from "../conversations/message.ts";
import type { VariantStore } from "../conversations/variants.ts";
import { AppError } from "../errors.ts";
import type { Database } from "../storage/database/database.ts";
import type { StatefulChatRequest } from "./chat_service.ts";
import type { Reply } from "./reply.ts";
import { getLastAttempt } from "./reply_saver.ts";
import { isJsonObject } from "../json/type_guards.ts";
import type { ChatNotice, PromptProgress, Usage } from "../llm/chat_event.ts";
import { ReplyCalls, type ToolCallJson, type ToolCallUpdate } from "./tools/tool_messages.ts";

/** Dependencies of `Replies`. */
interface RepliesDeps {
  db: Database;
  store: ConversationStore;
  reader: ConversationReader;
  variants: VariantStore;
  live: LiveReplies<Reply>;
  locks: KeyedMutex;
  blocks: BlockStore;
  callStore: ToolCallStore;
}

/** Finds and stops replies of all conversations, running or ended, for clients that list, follow or stop them. */
export class Replies {
  readonly #deps: RepliesDeps;

  constructor(deps: RepliesDeps) {
    this.#deps = deps;
  }

  /** Lists the running replies. */
  listRunning(): Reply[] {
    return this.#deps.live.all();
  }

  /** Returns whether a reply is running in a conversation. */
  isRunningIn(conversationId: string): boolean {
    return this.#deps.live.findByConversation(conversationId) !== undefined;
  }

  /**
   * Stops the running reply of a message, and returns the message. Ended replies don't change.
   *
   * @throws {AppError} `not_found`; `storage_full` or `internal` if the message can't be saved yet.
   */
  async stop(mid: string, conversationId?: string): Promise<Message> {
    const { conversationId: id } = await this.get(mid, conversationId);
    await this.#deps.live.findByMessage(id, mid)?.stop();
    return this.#deps.reader.readMessage(id, mid);
  }

  /**
   * Returns the reply that wrote a message.
   *
   * @param conversationId The message's conversation. Without it, returns the running reply, or else the latest.
   * @throws {AppError} `not_found`
   */
  async get(mid: string, conversationId?: string): Promise<ReplySource> {
    const { live, db, locks } = this.#deps;
    for (const id of conversationId === undefined ? findConversationsOfReply(db, mid) : [conversationId]) {
      // Holds the lock, because a reply that is about to start is in the database before it's in the list of live
      // replies.
      const find = () => live.findByMessage(id, mid) ?? this.#findStored(id, mid, "lastRun");
      const reply = live.findByMessage(id, mid) ?? await locks.run(id, find);
      if (reply !== undefined) return reply;
    }
    throw new AppError("not_found", `Reply "${mid}" not found`);
  }

  /**
   * Allows or denies a tool call.
   *
   * @param mid The reply, or the message with the call.
   * @throws {AppError} `not_found`; `conflict` if another decision was made or the tool has changed; `invalid_request`
   */
  async decide(mid: string, callId: string, decision: ToolDecision, conversationId?: string): Promise<ToolCallRecord> {
    const running = this.#findRunning(mid, callId, conversationId);
    if (running !== undefined) return await running.tools!.decide(callId, decision);
    const record = this.findCall(mid, callId, conversationId);
    refuseOtherDecision(record, decision);
    return record;
  }

  /** Finds a tool call. @throws {AppError} `not_found` */
  findCall(mid: string, callId: string, conversationId?: string): ToolCallRecord {
    const { db, blocks, callStore } = this.#deps;
    const running = this.#findRunning(mid, callId, conversationId)?.tools?.find(callId);
    if (running !== undefined) return running;
    const ids = conversationId === undefined ? callStore.listConversations(callId) : [conversationId];
    for (const id of ids) {
      const record = callStore.find(id, callId);
      if (record === undefined) continue;
      const isReply = () =>
        findReplyRow(db, id, mid) !== undefined && blocks.findLiveRow(id, mid) !== undefined &&
        blocks.getRounds(id, mid).some((message) => message.id === record.messageId);
      if (record.messageId === mid || isReply()) return record;
    }
    throw new AppError("not_found", `Tool call "${callId}" not found in reply "${mid}"`);
  }

  /** Finds the running reply that made a call. */
  #findRunning(mid: string, callId: string, conversationId: string | undefined): Reply | undefined {
    return this.#deps.live.all().find((reply) => {
      if (conversationId !== undefined && reply.conversationId !== conversationId) return false;
      const record = reply.tools?.find(callId);
      return record !== undefined && (reply.messageId === mid || record.messageId === mid);
    });
  }

  /** Finds the reply of an earlier request with the same IDs, unless it failed without text. */
  findStarted(request: StatefulChatRequest): ReplySource | undefined {
    const { assistantMessageId: mid, conversationId, action, idempotencyKey: key } = request;
    if (mid === undefined) return undefined;
    const running = this.#deps.live.findByMessage(conversationId, mid);
    if (running !== undefined) return running;
    if (action !== "send" && action !== "edit") {
      if (key === undefined) return undefined;
      const row = findReplyRow(this.#deps.db, conversationId, mid);
      return row?.generation === toGeneration(key, mid) ? this.#findStored(conversationId, mid, "lastRun") : undefined;
    }
    const stored = this.#findStored(conversationId, mid, "answer");
    if (stored === undefined || isEmptyFailure(this.#deps.reader.readMessage(conversationId, mid))) return undefined;
    return stored;
  }

  /** @param what The last run, which may have failed, or the message's active text. */
  #findStored(conversationId: string, mid: string, what: "lastRun" | "answer"): StoredReply | undefined {
    const { db, store, reader, variants } = this.#deps;
    const row = findReplyRow(db, conversationId, mid);
    if (row === undefined || store.find(conversationId) === undefined) return undefined;
    const rounds = this.#deps.blocks.getRounds(conversationId, mid);
    const stored = { ...reader.readMessage(conversationId, mid), ...(rounds.length > 0 && { tool_rounds: rounds }) };
    const isRun = what === "lastRun" && row.previous_variant !== null;
    const message = isRun ? getLastAttempt(variants, conversationId, stored) : stored;
    return new StoredReply(conversationId, row.generation, row.started_at, message);
  }
}

/** Returns the id of the run that a key stands for: 12 characters, as others have. */
export function toGeneration(key: string, messageId: string): string {
  return createHash("sha256").update(`${messageId} ${key}`).digest("base64url").slice(0, 12);
}

/** The error of a reply that was interrupted because the server stopped. */
export const INTERRUPTED = { code: "interrupted", message: "The server stopped while it was writing this reply" };

/** A client's position in a reply. Lengths are UTF-16 units of the whole message. */
export interface ReplyCursor {
  /** Number of the last event the client has, 0 for none. */
  seq: number;
  textLength: number;
  reasoningLength: number;
  /** Number of the last notice the client has. */
  notices?: number;
  /** Number of the last progress of the prompt that the client has. */
  progress?: number;
  /** Number of the last change of a tool call that the client has. */
  calls?: number;
}

/** One piece of a reply, and the position after it. */
export interface ReplyEvent extends ReplyCursor {
  type: "text" | "reasoning";
  delta: string;
}

/** Events that arrived together. All clients share the object, so that it's encoded only once. */
export type ReplyBatch = readonly ReplyEvent[];

/** How a reply ended. */
export interface ReplyEnd {
  status: Exclude<MessageStatus, "streaming">;
  /** In the format of OpenAI's API; `null` if the server didn't send one. */
  finishReason: string | null;
  usage?: Usage;
  timings?: Record<string, unknown>;
  toolCalls?: unknown[];
  error?: MessageError;
  /** The stored message, if it differs from what was streamed. */
  message?: Message;
}

/** The next step for a client that follows a reply. */
export type ReplyStep =
  | { batch: ReplyBatch }
  | { end: ReplyEnd }
  /** The reply goes on after a restart. For clients that can't connect again, this is its end. */
  | { suspended: ReplyEnd }
  /** The server isn't ready yet. `after` is the position from which to continue. */
  | { notice: ChatNotice; after: ReplyCursor }
  /** The server reads the prompt. */
  | { progress: PromptProgress; after: ReplyCursor }
  /** New or changed tool calls. */
  | { calls: ToolCallUpdate[]; after: ReplyCursor };

/** A reply that clients can follow, running or stored. */
export interface ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  readonly model: string;
  readonly startedAtMs: number;
  /** Returns the step after a position. Waits for it if the reply is running. */
  next(cursor: ReplyCursor): ReplyStep | Promise<ReplyStep>;
  /** Tells that a client follows the reply, until the function is called that is returned. */
  follow?(): () => void;
}

/** Returns everything after a position in at most two events, reasoning first. */
function nextRest(cursor: ReplyCursor, text: string, reasoning: string, seq: number): ReplyBatch {
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
  /** The message, if it differs from the text that clients followed. */
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
    this.#text = before.text + getContentText(message.content);
    this.#reasoning = before.reasoning + (message.reasoning ?? "");
    // Pictures and sources aren't part of the text that clients follow.
    const hasMore = Array.isArray(message.content) || message.sources !== undefined;
    this.#end = { ...toReplyEnd(message), ...(hasMore && { message: last as Message }) };
    this.#changed = message.split_reasoning === true ? last as Message : undefined;
  }

  next(cursor: ReplyCursor): ReplyStep {
    // The position is in the streamed text, which contained the reasoning.
    if (this.#changed !== undefined && cursor.seq > 0 && cursor.reasoningLength < this.#reasoning.length) {
      return { end: { ...this.#end, message: this.#changed } };
    }
    const text = { text: this.#text, reasoning: this.#reasoning };
    return nextCalls(cursor, this.#calls) ?? nextText(cursor, this.#calls, text, cursor.seq + 1) ??
      { end: this.#end };
  }
}

/** Returns the next changes of tool calls for a client: those of calls whose preceding text it has. */
export function nextCalls(cursor: ReplyCursor, calls: ReplyCalls): ReplyStep | undefined {
  if (calls.changes === (cursor.calls ?? 0)) return undefined;
  const { updates, last } = calls.listSince(cursor.calls ?? 0, cursor);
  return updates.length === 0 ? undefined : { calls: updates, after: { ...cursor, calls: last } };
}

/** Returns the next text for a client, up to the first call that it doesn't have. */
export function nextText(
  cursor: ReplyCursor,
  calls: ReplyCalls,
  { text, reasoning }: { text: string; reasoning: string },
  seq: number,
): ReplyStep | undefined {
  if (cursor.textLength >= text.length && cursor.reasoningLength >= reasoning.length) return undefined;
  const limit = calls.nextUnseen(cursor.calls ?? 0);
  const batch = limit === undefined
    ? nextRest(cursor, text, reasoning, seq)
    : nextRest(cursor, text.slice(0, limit.textLength), reasoning.slice(0, limit.reasoningLength), seq);
  return { batch };
}

/** Adds the tool calls of stored rounds, and returns their text. */
export function addStoredCalls(calls: ReplyCalls, rounds: readonly Message[]): { text: string; reasoning: string } {
  let [text, reasoning] = ["", ""];
  const results = new Map(rounds.map((message) => [message.tool_call_id, message]));
  for (const round of rounds) {
    if (round.role !== "assistant") continue;
    text += getContentText(round.content);
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
    ...(result && { result: getContentText(result.content) }),
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
