/**
 * The current round of a reply: the model's tool calls, their approval, the messages of all rounds so far, and the
 * state for continuing after a restart.
 */
import type { ConversationWriter } from "../../conversations/conversation_writer.ts";
import type { Message } from "../../conversations/message.ts";
import { createUuidV7 } from "../../crypto/random.ts";
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
  conversationWriter: ConversationWriter;
  callStore: ToolCallStore;
  now(): number;
}

/** Stores the tool calls of a round. */
export class ToolRound {
  /** In the order in which the model made them. */
  calls: readonly OpenCall[] = [];
  readonly #deps: ToolRoundDeps;
  readonly #reply: Reply;
  /** Messages of earlier rounds. */
  #earlier: readonly Message[];
  /** The message for the calls, without them. */
  #message: Message | undefined;
  #isStored = false;

  constructor(deps: ToolRoundDeps, reply: Reply) {
    this.#deps = deps;
    this.#reply = reply;
    this.#earlier = reply.rounds;
  }

  /** Whether the calls are stored. Until then, clients can neither see nor decide them. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** The calls that wait for the owner. */
  get pending(): ToolCallRecord[] {
    if (!this.#isStored) return [];
    return this.calls.filter(({ record }) => record.state === "pending").map(({ record }) => record);
  }

  /** Number of rounds of the reply, including this one. */
  get count(): number {
    return this.#toMessages().filter(({ role }) => role === "assistant").length;
  }

  /** Finds a call. */
  find(callId: string): OpenCall | undefined {
    return this.#isStored ? this.calls.find(({ record }) => record.id === callId) : undefined;
  }

  /** Starts the next round and stores it, together with the statements of `extraStatements`. */
  async start(message: Message, calls: readonly OpenCall[], extraStatements: Statement[]): Promise<void> {
    this.#isStored = false;
    this.#earlier = this.#reply.rounds;
    this.#message = message;
    this.calls = calls;
    this.#reply.beginRound(this.#toMessages());
    await this.store(calls, extraStatements);
    this.#isStored = true;
  }

  /** Reads the last round of the reply again after a restart. */
  reopen(): void {
    const { rounds, conversationId } = this.#reply;
    const at = rounds.findLastIndex(({ role }) => role === "assistant");
    const { tool_calls: stored, ...message } = rounds[at]!;
    this.#earlier = rounds.slice(0, at);
    this.#message = message as Message;
    this.calls = this.#deps.callStore.listByMessage(conversationId, message.id).map((record) => {
      const call = Array.isArray(stored)
        ? stored.find((call) => isJsonObject(call) && call.id === record.id)
        : undefined;
      const result = rounds.slice(at + 1).find(({ tool_call_id }) => tool_call_id === record.id);
      return { record, extra: isJsonObject(call) ? call : {}, result };
    });
    this.#isStored = true;
  }

  /** Sets the result of a call. Call `store` to save it. */
  setResult(call: OpenCall, { content, text, fullText }: ToolResult): void {
    const now = new Date(this.#deps.now()).toISOString();
    call.record = { ...call.record, result: text, ...(fullText !== undefined && { fullResult: fullText }) };
    call.result = createResultMessage(call.record.id, content, {
      replyId: this.#reply.messageId,
      id: createUuidV7(),
      now,
    });
  }

  /** Ends a call that can't be made. Call `store` to save it. */
  fail(call: OpenCall, reason: string): void {
    call.record = { ...call.record, state: "failed", decidedBy: "system", endedAtMs: this.#deps.now() };
    this.setResult(call, toNotice(reason));
  }

  /** Saves the messages of all rounds, the changed calls and the statements of `extraStatements` in one transaction. */
  async store(changed: readonly OpenCall[], extraStatements: Statement[] = []): Promise<void> {
    const { conversationWriter, callStore } = this.#deps;
    const { conversationId, messageId } = this.#reply;
    this.syncReply();
    await conversationWriter.editMessage(conversationId, messageId, (before) => this.#reply.getFinalMessage(before), {
      byReply: true,
      withRounds: true,
      extraStatements: () => [...changed.map(({ record }) => callStore.save(record)), ...extraStatements],
    });
  }

  /** Passes the current messages to the reply. */
  syncReply(): void {
    this.#reply.setRounds(this.#toMessages());
  }

  /** Shows calls to clients that follow the reply. */
  show(calls: readonly OpenCall[]): void {
    for (const { record } of calls) this.#reply.showCall(toCallJson(record));
  }

  #toMessages(): Message[] {
    const message: Message = { ...this.#message!, tool_calls: this.calls.map(toMessageCall) };
    return [...this.#earlier, message, ...this.calls.flatMap(({ result }) => result === undefined ? [] : [result])];
  }
}

// The state that a reply with tools needs to continue after a restart: encrypted, in a row that exists until the reply
// ends.

/** The state of a reply between two requests to the model. */
export interface ResumeState {
  request: StatefulChatRequest;
  /** Number of rounds of this run so far. */
  rounds: number;
  /** Running time in milliseconds, excluding waiting. */
  runningMs: number;
  /** Maximum size of a result's text in this round. */
  maxResultBytes: number;
}

/** Dependencies of a ToolApproval. */
export interface ToolApprovalDeps extends Pick<ChatToolsDeps, "registry" | "callStore"> {
  events: EventHub;
  now(): number;
}

/** The owner's decision about a call. */
export interface ToolDecision {
  decision: "allow" | "deny";
  /** A JSON object as text, if the owner changed the arguments. */
  arguments?: string;
  remember?: "chat" | "always";
  /** Who decided. */
  by: string;
}

const DENIED = "The user denied this call. It wasn't made.";

/**
 * Decides which calls of a reply are made, by stored permissions or by the owner. An allowed call gets the state
 * `running`; ToolRun makes it.
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

  /** Decides about a new call by stored permissions, if there are any for it. */
  applyPermission(call: OpenCall, tool: Tool | undefined): void {
    const { record } = call;
    if (tool === undefined) return this.#round.fail(call, `There is no tool named "${record.name}".`);
    const { description: _, inputSchema: __, permission, ...rest } = tool;
    call.record = { ...record, tool: rest };
    if (parseArguments(record.arguments) === undefined) {
      return this.#round.fail(call, "The arguments aren't a complete JSON object.");
    }
    const inChat = this.#deps.callStore.findPermission(this.#reply.conversationId, tool);
    const effective = permission === "deny" ? "deny" : inChat ?? permission;
    if (effective !== "ask") this.#setDecision(call, effective, inChat === undefined ? "always" : "chat");
  }

  /** Waits, without a time limit, until a call is decided and the decision is stored. */
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
   * Allows or denies a waiting call.
   *
   * @throws {AppError} `conflict` if another decision was made or the tool has changed; `invalid_request`, `not_found`,
   *   `storage_full`
   */
  decide(callId: string, decision: ToolDecision): Promise<ToolCallRecord> {
    return this.#decisions.run(async () => {
      const call = this.#round.find(callId);
      if (call === undefined) throw new AppError("not_found", `Tool call "${callId}" not found`);
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
    const decided = { ...call.record, decision, decidedBy: by, decidedAtMs: atMs } satisfies Partial<ToolCallRecord>;
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

  /**
   * Checks that the tool of a waiting call is still what its server lists.
   *
   * @throws {AppError} `conflict` if it has changed
   */
  async #requireUnchanged(call: OpenCall, { decision }: ToolDecision): Promise<Tool | undefined> {
    const { tool } = call.record;
    if (tool === undefined || decision === "deny") return undefined;
    const current = await (await this.#deps.registry()).findTool(tool, this.#reply.signal);
    if (current === undefined) {
      throw new AppError(
        "conflict",
        `"${tool.serverName}" no longer has a tool "${tool.name}". Deny the call to continue`,
      );
    }
    if (current.fingerprint === tool.fingerprint) return current;
    const { description: _, inputSchema: __, permission: ___, ...rest } = current;
    call.record = { ...call.record, tool: rest };
    await this.#round.store([call]);
    this.#round.show([call]);
    throw new AppError(
      "conflict",
      `The definition of the tool "${tool.name}" has changed since the model called it. Check it again, then decide`,
    );
  }

  /** Stores a permission for later calls, if wanted. Returns statements to write with the decision. */
  async #remember({ record }: OpenCall, { decision, remember }: ToolDecision, found?: Tool): Promise<Statement[]> {
    const { registry, callStore } = this.#deps;
    if (remember === undefined || record.tool === undefined) return [];
    if (remember === "chat") return [callStore.savePermission(this.#reply.conversationId, record.tool, decision)];
    const tool = found ?? await (await registry()).findTool(record.tool, this.#reply.signal);
    if (tool !== undefined) await (await registry()).setPermission(tool, decision, this.#reply.signal);
    return [];
  }
}

/** Rejects a different decision about a call that is already decided. @throws {AppError} `conflict` */
export function refuseOtherDecision(record: ToolCallRecord, { decision, arguments: args }: ToolDecision): void {
  if (record.state === "pending") return;
  const isSame = record.decision === decision && (args === undefined || args === record.arguments);
  if (isSame) return;
  const how = record.decision === undefined ? "has ended" : `was ${record.decision === "allow" ? "allowed" : "denied"}`;
  throw new AppError("conflict", `The tool call "${record.id}" already ${how}`);
}
