/** Decides which calls of tools are made: by stored permissions, or by the owner. */
import { Mutex } from "../../async/locks.ts";
import { AppError } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Statement } from "../../storage/database/database.ts";
import type { ToolCallRecord } from "../../tools/tool_call_store.ts";
import type { Tool } from "../../tools/tool_registry.ts";
import type { Reply } from "../reply.ts";
import type { ChatToolsDeps } from "../call_tools.ts";
import { type OpenCall, parseArguments, toNotice } from "./tool_messages.ts";
import type { ToolRound } from "./tool_round.ts";

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

/** Decides about the calls of one reply. An allowed call has the state `running`; somebody else makes it. */
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
