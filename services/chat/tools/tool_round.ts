/**
 * The current round of a reply: the calls that the model made, who allows them, the messages of all rounds so far, and
 * what a restart needs.
 */
import type { Conversations } from "../../conversations/conversations.ts";
import type { Message } from "../../conversations/message.ts";
import { uuidV7 } from "../../crypto/random.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { Statement } from "../../storage/database/database.ts";
import type { ToolCallRecord, ToolCallStore } from "../../tools/tool_call_store.ts";
import type { Reply } from "../reply.ts";
import type { StatefulChatRequest } from "../chat_service.ts";
import {
  createResultMessage,
  type OpenCall,
  parseArguments,
  toCallJson,
  toMessageCall,
  toNotice,
  type ToolResult,
} from "./tool_messages.ts";
import { Mutex } from "../../async/locks.ts";
import { AppError } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Tool } from "../../tools/tool_registry.ts";
import type { ChatToolsDeps } from "../call_tools.ts";

/** Dependencies of a ToolRound. */
interface ToolRoundDeps {
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

/** Dependencies of a ToolApproval. */
export interface ToolApprovalDeps extends Pick<ChatToolsDeps, "registry" | "callStore"> {
  events: EventHub;
  now(): number;
}

/** What the owner decides about a call. */
export interface ToolDecision {
  decision: "allow" | "deny";
  /** A JSON object as text, if the owner changed what the model wanted. */
  arguments?: string;
  remember?: "chat" | "always";
  /** Who decides. */
  by: string;
}

const DENIED = "The user denied this call. It wasn't made.";

/**
 * Decides which calls of one reply are made: by stored permissions, or by the owner. An allowed call has the state
 * `running`; somebody else makes it.
 */
export class ToolApproval {
  readonly #deps: ToolApprovalDeps;
  readonly #reply: Reply;
  readonly #round: ToolRound;
  readonly #decisions = new Mutex();
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();

  constructor(deps: ToolApprovalDeps, reply: Reply, round: ToolRound) {
    this.#deps = deps;
    this.#reply = reply;
    this.#round = round;
  }

  /** Decides about a new call by the permissions, as far as they go. */
  applyPermission(call: OpenCall, tool: Tool | undefined): void {
    const { record } = call;
    if (tool === undefined) return this.#round.fail(call, `There is no tool "${record.name}".`);
    const { description: _, inputSchema: __, permission, ...rest } = tool;
    call.record = { ...record, tool: rest };
    if (parseArguments(record.arguments) === undefined) {
      return this.#round.fail(call, "The arguments aren't a complete JSON object.");
    }
    const inChat = this.#deps.callStore.findPermission(this.#reply.conversationId, tool);
    const wanted = permission === "deny" ? "deny" : inChat ?? permission;
    if (wanted !== "ask") this.#setDecision(call, wanted, inChat === undefined ? "always" : "chat");
  }

  /** Waits until a call is decided and the decision is stored, without a limit. */
  async waitForDecision(call: OpenCall): Promise<void> {
    const waiting = await this.#decisions.run(() => {
      if (call.record.state !== "pending") return undefined;
      const decided = Promise.withResolvers<void>();
      this.#waiting.set(call.record.id, decided);
      return decided;
    });
    await waiting?.promise;
  }

  /**
   * Decides about a waiting call.
   *
   * @throws {AppError} `conflict` if it was decided otherwise, or if its tool has changed since; `invalid_request`,
   *   `not_found`, `storage_full`
   */
  decide(callId: string, decision: ToolDecision): Promise<ToolCallRecord> {
    return this.#decisions.run(async () => {
      const call = this.#round.find(callId);
      if (call === undefined) throw new AppError("not_found", `There is no call "${callId}"`);
      refuseOtherDecision(call.record, decision);
      if (call.record.state !== "pending") return call.record;
      const args = decision.arguments ?? call.record.arguments;
      if (decision.decision === "allow" && parseArguments(args) === undefined) {
        const message = "arguments must be a JSON object as text";
        throw new AppError("invalid_request", message, { issues: [{ path: "arguments", message }] });
      }
      const tool = await this.#requireUnchanged(call, decision);
      const statements = await this.#remember(call, decision, tool);
      const decided = decision.remember === undefined ? [call] : [call, ...this.#listLike(call)];
      const before = decided.map(({ record }) => record);
      for (const one of decided) this.#setDecision(one, decision.decision, one === call ? decision.by : "chat");
      if (decision.decision === "allow" && args !== before[0]!.arguments) {
        call.record = { ...call.record, arguments: args, proposedArguments: before[0]!.arguments };
      }
      try {
        await this.#round.store(decided, statements);
      } catch (error) {
        for (const [index, one] of decided.entries()) {
          one.record = before[index]!;
          delete one.result;
        }
        this.#round.syncReply();
        throw error;
      }
      this.#round.show(decided);
      for (const { record } of decided) this.#waiting.get(record.id)?.resolve();
      this.#deps.events.publish({ kind: "approval", id: this.#reply.conversationId });
      return call.record;
    });
  }

  #setDecision(call: OpenCall, decision: "allow" | "deny", by: string): void {
    const atMs = this.#deps.now();
    const decided = { ...call.record, decision, decidedBy: by, decidedAtMs: atMs };
    if (decision === "allow") {
      call.record = { ...decided, state: "running", startedAtMs: atMs };
    } else {
      call.record = { ...decided, state: "denied", endedAtMs: atMs };
      this.#round.setResult(call, toNotice(DENIED));
    }
  }

  /** Lists the other waiting calls of the same tool. */
  #listLike({ record: { tool, id } }: OpenCall): OpenCall[] {
    return this.#round.calls.filter(({ record }) =>
      record.state === "pending" && record.id !== id && record.tool?.serverId === tool?.serverId &&
      record.tool?.name === tool?.name && record.tool?.fingerprint === tool?.fingerprint
    );
  }

  /** Compares the tool of a waiting call with what its server lists now. @throws {AppError} `conflict` if it has changed */
  async #requireUnchanged(call: OpenCall, { decision }: ToolDecision): Promise<Tool | undefined> {
    const { tool } = call.record;
    if (tool === undefined || decision === "deny") return undefined;
    const current = await (await this.#deps.registry()).findTool(tool, this.#reply.signal);
    if (current === undefined) {
      throw new AppError("conflict", `"${tool.serverName}" has no tool "${tool.name}" anymore; deny the call to go on`);
    }
    if (current.fingerprint === tool.fingerprint) return current;
    const { description: _, inputSchema: __, permission: ___, ...rest } = current;
    call.record = { ...call.record, tool: rest };
    await this.#round.store([call]);
    this.#round.show([call]);
    throw new AppError(
      "conflict",
      `The description of tool "${tool.name}" has changed since the model called it. Look at it again, then decide`,
    );
  }

  /** Stores what is decided for later calls. Returns statements to write with the decision. */
  async #remember({ record }: OpenCall, { decision, remember }: ToolDecision, found?: Tool): Promise<Statement[]> {
    const { registry, callStore } = this.#deps;
    if (remember === undefined || record.tool === undefined) return [];
    if (remember === "chat") return [callStore.savePermission(this.#reply.conversationId, record.tool, decision)];
    const tool = found ?? await (await registry()).findTool(record.tool, this.#reply.signal);
    if (tool !== undefined) await (await registry()).setPermission(tool, decision, this.#reply.signal);
    return [];
  }
}

/** Refuses another decision about a call that is decided. @throws {AppError} `conflict` */
export function refuseOtherDecision(record: ToolCallRecord, { decision, arguments: args }: ToolDecision): void {
  if (record.state === "pending") return;
  const isSame = record.decision === decision && (args === undefined || args === record.arguments);
  if (isSame) return;
  const how = record.decision === undefined ? "has ended" : `was ${record.decision === "allow" ? "allowed" : "denied"}`;
  throw new AppError("conflict", `The call "${record.id}" ${how} already`);
}
