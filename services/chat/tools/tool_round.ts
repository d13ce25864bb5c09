/** The current round of a reply: the calls that the model made, the messages of all rounds so far, and what a restart needs. */
import type { Conversations } from "../../conversations/conversations.ts";
import type { Message } from "../../conversations/message.ts";
import { uuidV7 } from "../../crypto/random.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import type { ToolCallRecord, ToolCallStore } from "../../tools/tool_call_store.ts";
import type { Reply } from "../reply.ts";
import { deleteResumeRow, findResumeRow, saveResumeRow } from "../../conversations/reply_rows.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { StatefulChatRequest } from "../chat_request.ts";
import {
  createResultMessage,
  type OpenCall,
  toCallJson,
  toMessageCall,
  toNotice,
  type ToolResult,
} from "./tool_messages.ts";

/** Dependencies of a ToolRound. */
export interface ToolRoundDeps {
  conversations: Conversations;
  callStore: ToolCallStore;
  now(): number;
}

/** Keeps and stores the calls of a round. */
export class ToolRound {
  /** In the order in which the model made them. */
  calls: readonly OpenCall[] = [];
  readonly #deps: ToolRoundDeps;
  readonly #reply: Reply;
  /** Messages of the rounds before. */
  #earlier: readonly Message[];
  /** The message with the calls, without them. */
  #message: Message | undefined;
  #isStored = false;

  constructor(deps: ToolRoundDeps, reply: Reply) {
    this.#deps = deps;
    this.#reply = reply;
    this.#earlier = reply.rounds;
  }

  /** Whether the calls are on disk: nobody sees them before, or decides about them. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** The calls that wait for the owner. */
  get pending(): ToolCallRecord[] {
    if (!this.#isStored) return [];
    return this.calls.filter(({ record }) => record.state === "pending").map(({ record }) => record);
  }

  /** Rounds of the reply, this one included. */
  get count(): number {
    return this.#toMessages().filter(({ role }) => role === "assistant").length;
  }

  /** Finds a call. */
  find(callId: string): OpenCall | undefined {
    return this.#isStored ? this.calls.find(({ record }) => record.id === callId) : undefined;
  }

  /** Starts the next round, and stores it with what `beside` writes. */
  async start(message: Message, calls: readonly OpenCall[], beside: Statement[]): Promise<void> {
    this.#isStored = false;
    this.#earlier = this.#reply.rounds;
    this.#message = message;
    this.calls = calls;
    this.#reply.beginRound(this.#toMessages());
    await this.store(calls, beside);
    this.#isStored = true;
  }

  /** Reads the last round of the reply again, after a restart. */
  reopen(): void {
    const { rounds, conversationId } = this.#reply;
    const at = rounds.findLastIndex(({ role }) => role === "assistant");
    const { tool_calls: stored, ...message } = rounds[at]!;
    this.#earlier = rounds.slice(0, at);
    this.#message = message as Message;
    this.calls = this.#deps.callStore.listOf(conversationId, message.id).map((record) => {
      const call = Array.isArray(stored)
        ? stored.find((call) => isJsonObject(call) && call.id === record.id)
        : undefined;
      const result = rounds.slice(at + 1).find(({ tool_call_id }) => tool_call_id === record.id);
      return { record, extra: isJsonObject(call) ? call : {}, result };
    });
    this.#isStored = true;
  }

  /** Sets the result of a call. `store` writes it. */
  setResult(call: OpenCall, { content, text, fullText }: ToolResult): void {
    const now = new Date(this.#deps.now()).toISOString();
    call.record = { ...call.record, result: text, ...(fullText !== undefined && { fullResult: fullText }) };
    call.result = createResultMessage(call.record.id, content, { replyId: this.#reply.messageId, id: uuidV7(), now });
  }

  /** Ends a call that can't be made. `store` writes it. */
  fail(call: OpenCall, reason: string): void {
    call.record = { ...call.record, state: "failed", decidedBy: "system", endedAtMs: this.#deps.now() };
    this.setResult(call, toNotice(reason));
  }

  /** Writes the messages of all rounds, the given calls and what is `beside` in one transaction. */
  async store(changed: readonly OpenCall[], beside: Statement[] = []): Promise<void> {
    const { conversations, callStore } = this.#deps;
    const { conversationId, messageId } = this.#reply;
    this.syncReply();
    await conversations.editMessage(conversationId, messageId, (before) => this.#reply.finalMessage(before), {
      byReply: true,
      withRounds: true,
      beside: () => [...changed.map(({ record }) => callStore.save(record)), ...beside],
    });
  }

  /** Hands the messages as they are now to the reply. */
  syncReply(): void {
    this.#reply.setRounds(this.#toMessages());
  }

  /** Shows calls to those who follow the reply. */
  show(calls: readonly OpenCall[]): void {
    for (const { record } of calls) this.#reply.showCall(toCallJson(record));
  }

  #toMessages(): Message[] {
    const message: Message = { ...this.#message!, tool_calls: this.calls.map(toMessageCall) };
    return [...this.#earlier, message, ...this.calls.flatMap(({ result }) => result === undefined ? [] : [result])];
  }
}

// What a reply that calls tools needs to go on after a restart: sealed, in a row of its own until the reply ends.

/** The state of a reply between two requests to the model. */
export interface ResumeState {
  request: StatefulChatRequest;
  /** Rounds of this run so far. */
  rounds: number;
  /** Milliseconds that it ran, without waiting. */
  runningMs: number;
  /** Most bytes of a result's text in this round. */
  maxResultBytes: number;
}

const decoder = new TextDecoder();

/** Reads and writes these rows. */
export class ReplyResumes {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Statement that stores the state. */
  save(conversationId: string, mid: string, state: ResumeState): Statement {
    const version = (findResumeRow(this.#db, conversationId, mid)?.version ?? 0) + 1;
    const sealed = this.#sealer.sealNow(resumeAad(conversationId, mid, version), JSON.stringify(state));
    return saveResumeRow({ conversation_id: conversationId, mid, version, sealed });
  }

  /** Finds the state of a reply. Returns undefined for a reply without rounds. */
  find(conversationId: string, mid: string): ResumeState | undefined {
    const row = findResumeRow(this.#db, conversationId, mid);
    if (row === undefined) return undefined;
    return JSON.parse(decoder.decode(this.#sealer.openNow(resumeAad(conversationId, mid, row.version), row.sealed)));
  }

  /** Statement that forgets the state. */
  remove(conversationId: string, mid: string): Statement {
    return deleteResumeRow(conversationId, mid);
  }
}

function resumeAad(conversationId: string, mid: string, version: number) {
  return { table: "reply_resume", id: `${mid}/${conversationId}`, field: "state", version };
}
