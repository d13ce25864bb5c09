/** The replies of all conversations, running or ended, for clients that list, follow or stop them. */
import type { KeyedMutex } from "../async/locks.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import { refuseOtherDecision, type ToolDecision } from "./tools/tool_approval.ts";
import type { ToolCallRecord, ToolCallStore } from "../tools/tool_call_store.ts";
import type { ConversationReader } from "../conversations/conversation_reader.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { LiveReplies } from "../conversations/live_replies.ts";
import { isEmptyFailure, type Message } from "../conversations/message.ts";
import { findConversationsOfReply, findReplyRow } from "../conversations/reply_rows.ts";
import type { VariantStore } from "../conversations/variants.ts";
import { AppError } from "../errors.ts";
import type { Database } from "../storage/database/database.ts";
import type { StatefulChatRequest } from "./chat_request.ts";
import type { Reply } from "./reply.ts";
import { lastAttemptOf } from "./reply_saver.ts";
import { type ReplySource, StoredReply } from "./reply_source.ts";

/** Dependencies of a Replies. */
export interface RepliesDeps {
  db: Database;
  store: ConversationStore;
  reader: ConversationReader;
  variants: VariantStore;
  live: LiveReplies<Reply>;
  locks: KeyedMutex;
  blocks: BlockStore;
  callStore: ToolCallStore;
}

/** Finds and stops replies. */
export class Replies {
  readonly #deps: RepliesDeps;

  constructor(deps: RepliesDeps) {
    this.#deps = deps;
  }

  /** Lists the replies that are being written. */
  listRunning(): Reply[] {
    return this.#deps.live.all();
  }

  /** Whether a reply is being written in a conversation. */
  isRunningIn(conversationId: string): boolean {
    return this.#deps.live.findByConversation(conversationId) !== undefined;
  }

  /**
   * Stops the reply that writes a message, and returns the message. A reply that has ended stays as it is.
   *
   * @throws {AppError} `not_found`; `storage_full` or `internal` if the message can't be saved yet.
   */
  async stop(mid: string, conversationId?: string): Promise<Message> {
    const { conversationId: id } = await this.get(mid, conversationId);
    await this.#deps.live.findByMessage(id, mid)?.stop();
    return this.#deps.reader.message(id, mid);
  }

  /**
   * Returns the reply that wrote a message.
   *
   * @param conversationId The message's conversation. Without it, the reply that runs or started last wins.
   * @throws {AppError} `not_found`
   */
  async get(mid: string, conversationId?: string): Promise<ReplySource> {
    const { live, db, locks } = this.#deps;
    for (const id of conversationId === undefined ? findConversationsOfReply(db, mid) : [conversationId]) {
      // Under the lock, because a reply that is about to start is in the database a moment before it is live.
      const find = () => live.findByMessage(id, mid) ?? this.#findStored(id, mid, "lastRun");
      const reply = live.findByMessage(id, mid) ?? await locks.run(id, find);
      if (reply !== undefined) return reply;
    }
    throw new AppError("not_found", `There is no reply "${mid}"`);
  }

  /**
   * Decides about a call of a tool.
   *
   * @param mid The reply, or the message with the call.
   * @throws {AppError} `not_found`; `conflict` if the call was decided otherwise or its tool has changed; `invalid_request`
   */
  async decide(mid: string, callId: string, decision: ToolDecision, conversationId?: string): Promise<ToolCallRecord> {
    const running = this.#findRunning(mid, callId, conversationId);
    if (running !== undefined) return await running.tools!.decide(callId, decision);
    const record = this.findCall(mid, callId, conversationId);
    refuseOtherDecision(record, decision);
    return record;
  }

  /** Finds a call of a tool. @throws {AppError} `not_found` */
  findCall(mid: string, callId: string, conversationId?: string): ToolCallRecord {
    const { db, blocks, callStore } = this.#deps;
    const running = this.#findRunning(mid, callId, conversationId)?.tools?.find(callId);
    if (running !== undefined) return running;
    const ids = conversationId === undefined ? callStore.listConversations(callId) : [conversationId];
    for (const id of ids) {
      const record = callStore.find(id, callId);
      if (record === undefined) continue;
      const isReply = () =>
        findReplyRow(db, id, mid) !== undefined && blocks.rowAnywhere(id, mid) !== undefined &&
        blocks.roundsOf(id, mid).some((message) => message.id === record.messageId);
      if (record.messageId === mid || isReply()) return record;
    }
    throw new AppError("not_found", `Reply "${mid}" has no call "${callId}"`);
  }

  /** Finds the running reply that made a call. */
  #findRunning(mid: string, callId: string, conversationId: string | undefined): Reply | undefined {
    return this.#deps.live.all().find((reply) => {
      if (conversationId !== undefined && reply.conversationId !== conversationId) return false;
      const record = reply.tools?.find(callId);
      return record !== undefined && (reply.messageId === mid || record.messageId === mid);
    });
  }

  /** Finds the reply that an earlier request with the same ids started, unless it failed without any text. */
  findStarted(request: StatefulChatRequest): ReplySource | undefined {
    const { assistantMessageId: mid, conversationId, action } = request;
    if (mid === undefined) return undefined;
    const running = this.#deps.live.findByMessage(conversationId, mid);
    if (running !== undefined) return running;
    if (action !== "send" && action !== "edit") return undefined;
    const stored = this.#findStored(conversationId, mid, "answer");
    if (stored === undefined || isEmptyFailure(this.#deps.reader.message(conversationId, mid))) return undefined;
    return stored;
  }

  /** @param what The last run, which may have failed, or the message's active text. */
  #findStored(conversationId: string, mid: string, what: "lastRun" | "answer"): StoredReply | undefined {
    const { db, store, reader, variants } = this.#deps;
    const row = findReplyRow(db, conversationId, mid);
    if (row === undefined || store.find(conversationId) === undefined) return undefined;
    const rounds = this.#deps.blocks.roundsOf(conversationId, mid);
    const stored = { ...reader.message(conversationId, mid), ...(rounds.length > 0 && { tool_rounds: rounds }) };
    const isRun = what === "lastRun" && row.previous_variant !== null;
    const message = isRun ? lastAttemptOf(variants, conversationId, stored) : stored;
    return new StoredReply(conversationId, row.generation, row.started_at, message);
  }
}
