/** The tools of one reply: stores the calls of each round, waits for decisions, and runs what is allowed. */
import { type ImagePartsDeps, storeInlineImages } from "../../attachments/image_parts.ts";
import { Mutex } from "../../async/keyed_mutex.ts";
import type { Conversations } from "../../conversations/conversations.ts";
import type { Message } from "../../conversations/message.ts";
import { randomToken, uuidV7 } from "../../crypto/random.ts";
import { AppError, messageOf, traceOf } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import type { Log } from "../../log.ts";
import type { Statement } from "../../storage/database/database.ts";
import type { ToolCallRecord } from "../../tools/tool_call_store.ts";
import type { ToolOffer } from "../../tools/tool_registry.ts";
import type { Tool } from "../../tools/tool_source.ts";
import type { UpstreamCall } from "../call_builder.ts";
import type { StatefulChatRequest } from "../chat_request.ts";
import type { Journal } from "../journal/journal.ts";
import type { Reply } from "../reply.ts";
import type { ReplyResumes, ResumeState } from "./reply_resume.ts";
import { type ChatToolsDeps, listChatTools } from "./chat_tools.ts";
import { RunClock } from "./run_clock.ts";
import {
  closeCall,
  createResultMessage,
  createRoundMessage,
  type OpenCall,
  toCallJson,
  toMessageCall,
  toRoundGeneration,
} from "./tool_messages.ts";
import { MAX_SEEN_BYTES, MAX_STORED_BYTES, toNotice, type ToolResult, toToolResult } from "./tool_result.ts";

/** Dependencies of a ToolRun. */
export interface ToolRunDeps extends ChatToolsDeps {
  conversations: Conversations;
  images: ImagePartsDeps;
  resumes: ReplyResumes;
  journal: Journal;
  events: EventHub;
  log: Log;
  now(): number;
  limits?: Partial<ToolLimits>;
  /** Tells other devices. */
  push: { approvalNeeded(reply: { conversationId: string }): void };
}

/** Limits of one reply. */
export interface ToolLimits {
  /** Requests that may call tools. */
  rounds: number;
  /** Milliseconds that a reply runs, without waiting for the owner. */
  runningMs: number;
  /** Milliseconds of one call. */
  callMs: number;
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

const LIMITS: ToolLimits = { rounds: 25, runningMs: 10 * 60_000, callMs: 120_000 };
/** Calls of one round. A model that makes more is in a loop. */
const MAX_CALLS = 64;
/** Bytes of a result that a model sees in any case. */
const LEAST_RESULT_BYTES = 1024;
/** Bytes that a token stands for at least. */
const TOKEN_BYTES = 3;
/** Ids and names that servers accept; those of a model can be anything. */
const VALID_ID = /^[\w.:-]{1,128}$/;
const VALID_NAME = /^[\w.:-]{1,128}$/;
const INVALID_NAME = "invalid_name";

const DENIED = "The user denied this call. It wasn't made.";

/** Runs the tools of a reply. */
export class ToolRun {
  readonly #deps: ToolRunDeps;
  readonly #reply: Reply;
  readonly #request: StatefulChatRequest;
  readonly #limits: ToolLimits;
  readonly #clock: RunClock;
  readonly #decisions = new Mutex();
  #rounds: number;
  #maxResultBytes: number;
  /** Messages of the rounds before the current one. */
  #earlier: readonly Message[];
  /** The message with the calls, without them. */
  #round: Message | undefined;
  #open: OpenCall[] = [];
  /** The calls are on disk: nobody sees them before, or decides about them. */
  #isStored = false;
  #waiting = new Map<string, PromiseWithResolvers<void>>();

  /** @param resumed The state before a restart. */
  constructor(deps: ToolRunDeps, reply: Reply, request: StatefulChatRequest, resumed?: ResumeState) {
    this.#deps = deps;
    this.#reply = reply;
    this.#request = request;
    this.#limits = { ...LIMITS, ...deps.limits };
    this.#clock = new RunClock(deps.now, resumed?.runningMs);
    this.#rounds = resumed?.rounds ?? 0;
    this.#maxResultBytes = resumed?.maxResultBytes ?? MAX_SEEN_BYTES;
    this.#earlier = reply.rounds;
    this.isResumed = resumed !== undefined;
    if (this.isResumed) this.#reopen();
  }

  /** Whether the reply goes on after a restart. */
  readonly isResumed: boolean;

  /** Whether the reply only waits for the owner. */
  get isWaiting(): boolean {
    if (!this.#isStored) return false;
    const states = this.#open.map(({ record }) => record.state);
    return states.includes("pending") && !states.includes("running");
  }

  /** The calls that wait for the owner. */
  get pending(): ToolCallRecord[] {
    if (!this.#isStored) return [];
    return this.#open.filter(({ record }) => record.state === "pending").map(({ record }) => record);
  }

  /** Messages of the rounds of this run: a reply that is continued may have earlier ones. */
  get ownRounds(): readonly Message[] {
    const { rounds } = this.#reply;
    const starts = rounds.flatMap(({ role }, index) => role === "assistant" ? [index] : []);
    return this.#rounds === 0 ? [] : rounds.slice(starts.at(-this.#rounds));
  }

  /** Whether the model may not call tools anymore. */
  get isOver(): boolean {
    return this.#rounds >= this.#limits.rounds || this.#clock.elapsedMs >= this.#limits.runningMs;
  }

  /** Why it may not. */
  get overReason(): string {
    return this.#rounds >= this.#limits.rounds
      ? `The model called tools in ${this.#rounds} rounds without an answer, which is the limit`
      : `The model ran for ${
        Math.round(this.#limits.runningMs / 60_000)
      } minutes without an answer, which is the limit`;
  }

  /** Measures work of the model. */
  measure<T>(work: () => Promise<T>): Promise<T> {
    return this.#clock.measure(work);
  }

  /** Lists the tools for the next request. Returns undefined if the chat has none. */
  async listOffer(): Promise<ToolOffer | undefined> {
    return await listChatTools(this.#deps, this.#reply.conversationId, this.#reply.signal);
  }

  /** Stores the round that the model has ended with calls. Those that need no decision run from here on. */
  async storeRound(offer: ToolOffer, sent: UpstreamCall): Promise<void> {
    const { journal, events, conversations } = this.#deps;
    const { conversationId, messageId, generation } = this.#reply;
    const written = this.#reply.readRound();
    const { character_id: speaker } = conversations.reader.message(conversationId, messageId);
    const owner = {
      messageId,
      model: this.#reply.model,
      connectionId: this.#reply.connectionId,
      characterId: typeof speaker === "string" ? speaker : undefined,
    };
    this.#rounds++;
    this.#maxResultBytes = chooseResultBytes(sent, written.calls.length);
    this.#earlier = this.#reply.rounds;
    this.#round = createRoundMessage(written, owner, uuidV7(), this.#isoNow());
    const usedIds = findCallIds(sent.call.messages);
    this.#open = written.calls.slice(0, MAX_CALLS).map(({ id, index: _, type: __, function: named, ...extra }) => {
      const record: ToolCallRecord = {
        id: this.#chooseId(id, usedIds),
        conversationId,
        messageId: this.#round!.id,
        name: VALID_NAME.test(named.name) ? named.name : INVALID_NAME,
        arguments: named.arguments.trim() === "" ? "{}" : named.arguments,
        state: "pending",
      };
      const open: OpenCall = { record, extra };
      this.#decideByRule(open, offer.tools.find(({ name }) => name === named.name)?.tool);
      return open;
    });
    this.#isStored = false;
    this.#reply.beginRound(this.#toRounds());
    await this.#commit(this.#open, [this.#saveState()]);
    this.#isStored = true;
    const old = this.#reply.journal;
    this.#reply.useJournal(
      journal.begin({ messageId, generation: toRoundGeneration(generation, this.#countRounds()) }),
    );
    await old.settle();
    for (const { record } of this.#open) this.#reply.showCall(toCallJson(record));
    if (this.pending.length === 0) return;
    events.publish({ kind: "approval", id: conversationId });
    this.#deps.push.approvalNeeded({ conversationId });
  }

  /** Waits until all calls of the round have results. Returns at once if the reply is stopped. */
  async settleCalls(): Promise<void> {
    const { signal } = this.#reply;
    for (const { record } of this.#open) {
      if (record.state === "pending") this.#waiting.set(record.id, Promise.withResolvers());
    }
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const all = Promise.all(this.#open.map(async (open) => {
      await this.#waiting.get(open.record.id)?.promise;
      if (!signal.aborted && open.record.state === "running") await this.#runCall(open);
    }));
    await Promise.race([all, stopped]);
    all.catch(() => {}); // What fails after the stop has no effect anymore.
  }

  /** Finds a call of the current round. */
  find(callId: string): ToolCallRecord | undefined {
    return this.#isStored ? this.#open.find(({ record }) => record.id === callId)?.record : undefined;
  }

  /**
   * Decides about a waiting call.
   *
   * @throws {AppError} `conflict` if it was decided otherwise, or if its tool has changed since; `invalid_request`,
   *   `not_found`, `storage_full`
   */
  decide(callId: string, decision: ToolDecision): Promise<ToolCallRecord> {
    return this.#decisions.run(async () => {
      const open = this.#open.find(({ record }) => record.id === callId);
      if (open === undefined) throw new AppError("not_found", `There is no call "${callId}"`);
      refuseOtherDecision(open.record, decision);
      if (open.record.state !== "pending") return open.record;
      const args = decision.arguments ?? open.record.arguments;
      if (decision.decision === "allow" && parseArguments(args) === undefined) {
        const message = "arguments must be a JSON object as text";
        throw new AppError("invalid_request", message, { issues: [{ path: "arguments", message }] });
      }
      const tool = await this.#requireUnchanged(open, decision);
      const statements = await this.#remember(open, decision, tool);
      const before = open.record;
      const isChanged = decision.decision === "allow" && args !== before.arguments;
      open.record = {
        ...before,
        ...(isChanged && { arguments: args, proposedArguments: before.arguments }),
        ...this.#toDecided(decision.decision, decision.by),
      };
      if (decision.decision === "deny") this.#setResult(open, toNotice(DENIED));
      const followed = decision.remember === undefined ? [] : this.#decideLike(open, decision.decision);
      try {
        await this.#commit([open, ...followed.map(({ open }) => open)], statements);
      } catch (error) {
        for (const one of [{ open, before }, ...followed]) {
          one.open.record = one.before;
          delete one.open.result;
        }
        this.#reply.setRounds(this.#toRounds());
        throw error;
      }
      for (const { record } of [open, ...followed.map(({ open }) => open)]) {
        this.#reply.showCall(toCallJson(record));
        this.#waiting.get(record.id)?.resolve();
      }
      this.#deps.events.publish({ kind: "approval", id: this.#reply.conversationId });
      return open.record;
    });
  }

  /** Gives every call a state that holds after the end of the reply. A call in flight becomes `unknown`. */
  async abandon(): Promise<void> {
    const changed = this.#open.filter(({ record }) => record.state === "pending" || record.state === "running");
    if (changed.length === 0) return;
    for (const open of changed) closeCall(open, this.#deps.now(), (result) => this.#setResult(open, result));
    this.#reply.setRounds(this.#toRounds());
    try {
      await this.#commit(changed);
    } catch (error) {
      // The reply's own saving tries again.
      this.#deps.log("error", "Can't store the end of tool calls yet", { error: traceOf(error) });
    }
    for (const { record } of changed) this.#reply.showCall(toCallJson(record));
    this.#deps.events.publish({ kind: "approval", id: this.#reply.conversationId });
  }

  /** Reads the calls of the last round again, after a restart. */
  #reopen(): void {
    const { callStore } = this.#deps;
    const rounds = this.#reply.rounds;
    const at = rounds.findLastIndex(({ role }) => role === "assistant");
    const { tool_calls: calls, ...round } = rounds[at]!;
    this.#isStored = true;
    this.#earlier = rounds.slice(0, at);
    this.#round = round as Message;
    this.#open = callStore.listOf(this.#reply.conversationId, round.id).map((record) => {
      const stored = Array.isArray(calls)
        ? calls.find((call) => isJsonObject(call) && call.id === record.id)
        : undefined;
      const result = rounds.slice(at + 1).find(({ tool_call_id }) => tool_call_id === record.id);
      return { record, extra: isJsonObject(stored) ? stored : {}, result };
    });
  }

  #chooseId(wanted: string | undefined, used: Set<string>): string {
    const isFree = (id: string) => !used.has(id) && !this.#deps.callStore.has(this.#reply.conversationId, id);
    const id = wanted !== undefined && VALID_ID.test(wanted) && isFree(wanted) ? wanted : `call_${randomToken(12)}`;
    used.add(id);
    return id;
  }

  /** Decides about a new call by the permissions, as far as they go. */
  #decideByRule(open: OpenCall, tool: Tool | undefined): void {
    const { record } = open;
    if (tool === undefined) return this.#failCall(open, `There is no tool "${record.name}".`);
    const { description: _, inputSchema: __, permission, ...rest } = tool;
    open.record = { ...record, tool: rest };
    if (parseArguments(record.arguments) === undefined) {
      return this.#failCall(open, "The arguments aren't a complete JSON object.");
    }
    const inChat = this.#deps.callStore.findPermission(this.#reply.conversationId, tool);
    const wanted = permission === "deny" ? "deny" : inChat ?? permission;
    if (wanted === "ask") return;
    open.record = { ...open.record, ...this.#toDecided(wanted, inChat === undefined ? "always" : "chat") };
    if (wanted === "deny") this.#setResult(open, toNotice(DENIED));
  }

  /** Decides about other waiting calls of the same tool. */
  #decideLike(
    { record: { tool, id } }: OpenCall,
    decision: "allow" | "deny",
  ): { open: OpenCall; before: ToolCallRecord }[] {
    const same = this.#open.filter(({ record }) =>
      record.state === "pending" && record.id !== id && record.tool?.serverId === tool?.serverId &&
      record.tool?.name === tool?.name && record.tool?.fingerprint === tool?.fingerprint
    );
    return same.map((open) => {
      const before = open.record;
      open.record = { ...before, ...this.#toDecided(decision, "chat") };
      if (decision === "deny") this.#setResult(open, toNotice(DENIED));
      return { open, before };
    });
  }

  #toDecided(decision: "allow" | "deny", by: string): Partial<ToolCallRecord> {
    const atMs = this.#deps.now();
    const decided = { decision, decidedBy: by, decidedAtMs: atMs };
    return decision === "allow"
      ? { ...decided, state: "running", startedAtMs: atMs }
      : { ...decided, state: "denied", endedAtMs: atMs };
  }

  /** Compares the tool of a waiting call with what its server lists now. */
  async #requireUnchanged(open: OpenCall, { decision }: ToolDecision): Promise<Tool | undefined> {
    const { tool } = open.record;
    if (tool === undefined || decision === "deny") return undefined;
    const current = await (await this.#deps.registry()).findTool(tool, this.#reply.signal);
    if (current === undefined) {
      throw new AppError("conflict", `"${tool.serverName}" has no tool "${tool.name}" anymore; deny the call to go on`);
    }
    if (current.fingerprint === tool.fingerprint) return current;
    const { description: _, inputSchema: __, permission: ___, ...rest } = current;
    open.record = { ...open.record, tool: rest };
    await this.#commit([open]);
    this.#reply.showCall(toCallJson(open.record));
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

  async #runCall(open: OpenCall): Promise<void> {
    const { registry, log, images } = this.#deps;
    const { signal } = this.#reply;
    const { record } = open;
    const timeoutMs = Math.max(1, Math.min(this.#limits.callMs, this.#limits.runningMs - this.#clock.elapsedMs));
    const call = async () => {
      const tools = await registry();
      const tool = await tools.findTool(record.tool!, signal);
      if (tool === undefined) throw new AppError("not_found", `There is no tool "${record.tool!.name}" anymore`);
      if (tool.fingerprint !== record.tool!.fingerprint) {
        throw new AppError("conflict", `The description of tool "${tool.name}" has changed, so it wasn't called`);
      }
      return await tools.callTool(tool, parseArguments(record.arguments)!, {
        signal,
        timeoutMs,
        maxBytes: MAX_STORED_BYTES,
        conversationId: this.#reply.conversationId,
        messageId: this.#reply.messageId,
      });
    };
    let result: ToolResult;
    let isFailed = false;
    try {
      const output = await this.#clock.measure(() => withTimeout(call(), timeoutMs, signal));
      result = toToolResult(output, this.#maxResultBytes);
      isFailed = output.isError;
      result = { ...result, content: await storeInlineImages(images, result.content) };
    } catch (error) {
      if (signal.aborted) return; // `abandon` decides what the call is.
      if (!(error instanceof AppError)) log("error", "A call of a tool failed", { error: traceOf(error) });
      isFailed = true;
      result = toNotice(`The call failed: ${error instanceof AppError ? messageOf(error) : "internal error"}`);
    }
    if (signal.aborted) return;
    open.record = { ...open.record, state: isFailed ? "failed" : "done", endedAtMs: this.#deps.now() };
    this.#setResult(open, result);
    await this.#commit([open]);
    this.#reply.showCall(toCallJson(open.record));
  }

  #failCall(open: OpenCall, reason: string): void {
    open.record = { ...open.record, state: "failed", decidedBy: "system", endedAtMs: this.#deps.now() };
    this.#setResult(open, toNotice(reason));
  }

  #setResult(open: OpenCall, { content, text, fullText }: ToolResult): void {
    open.record = { ...open.record, result: text, ...(fullText !== undefined && { fullResult: fullText }) };
    const ids = { replyId: this.#reply.messageId, id: uuidV7(), now: this.#isoNow() };
    open.result = createResultMessage(open.record.id, content, ids);
  }

  #toRounds(): Message[] {
    const message: Message = { ...this.#round!, tool_calls: this.#open.map(toMessageCall) };
    return [...this.#earlier, message, ...this.#open.flatMap(({ result }) => result === undefined ? [] : [result])];
  }

  #countRounds(): number {
    return this.#toRounds().filter(({ role }) => role === "assistant").length;
  }

  #saveState(): Statement {
    const { conversationId, messageId } = this.#reply;
    return this.#deps.resumes.save(conversationId, messageId, {
      request: this.#request,
      rounds: this.#rounds,
      runningMs: this.#clock.elapsedMs,
      maxResultBytes: this.#maxResultBytes,
    });
  }

  /** Writes the messages of all rounds and the given calls in one transaction. */
  async #commit(changed: readonly OpenCall[], beside: Statement[] = []): Promise<void> {
    const { conversations, callStore } = this.#deps;
    const { conversationId, messageId } = this.#reply;
    this.#reply.setRounds(this.#toRounds());
    await conversations.editMessage(conversationId, messageId, (before) => this.#reply.finalMessage(before), {
      byReply: true,
      withRounds: true,
      beside: () => [...changed.map(({ record }) => callStore.save(record)), ...beside],
    });
  }

  #isoNow(): string {
    return new Date(this.#deps.now()).toISOString();
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

function parseArguments(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the ids of all calls in messages. */
function findCallIds(messages: UpstreamCall["call"]["messages"]): Set<string> {
  const calls = messages.flatMap(({ tool_calls: calls }) => Array.isArray(calls) ? calls : []);
  return new Set(calls.filter(isJsonObject).map(({ id }) => String(id)));
}

/** Shares the free part of the context among the calls of a round, so that the next prompt has space for their results. */
function chooseResultBytes({ prompt }: UpstreamCall, calls: number): number {
  if (prompt === undefined) return MAX_SEEN_BYTES;
  const free = (prompt.budget - prompt.tokens) * TOKEN_BYTES / 2 / Math.max(1, calls);
  return Math.max(LEAST_RESULT_BYTES, Math.min(MAX_SEEN_BYTES, Math.floor(free)));
}

/** Waits for a call, also for one that ignores its limits. */
async function withTimeout<T>(call: Promise<T>, timeoutMs: number, signal: AbortSignal): Promise<T> {
  const ended = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => ended.reject(new AppError("upstream_timeout", `no answer after ${Math.round(timeoutMs / 1000)} s`)),
    timeoutMs,
  );
  const abort = () => ended.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([call, ended.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    call.catch(() => {});
  }
}
