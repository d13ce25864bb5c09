/** The tools of one reply: stores the calls of each round, waits for decisions, and runs what is allowed. */
import { raceAbort } from "../../async/delay.ts";
import { type ImagePartsDeps, storeInlineImages } from "../../attachments/image_parts.ts";
import type { ConversationWriter } from "../../conversations/conversation_writer.ts";
import type { ConversationReader } from "../../conversations/conversation_reader.ts";
import type { Message } from "../../conversations/message.ts";
import { createUuidV7, randomToken } from "../../crypto/random.ts";
import { AppError, getErrorMessage, getErrorTrace } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { Log } from "../../log.ts";
import type { Statement } from "../../storage/database/database.ts";
import type { ToolCallRecord } from "../../tools/tool_call_store.ts";
import type { ToolCallOptions, ToolOffer, ToolOutput } from "../../tools/tool_registry.ts";
import type { UpstreamCall } from "../call_builder.ts";
import type { StatefulChatRequest } from "../chat_service.ts";
import type { Journal } from "../journal/journal.ts";
import type { Reply } from "../reply.ts";
import { type ChatToolsDeps, listChatTools } from "../call_tools.ts";
import type { ReplyResumes } from "../../conversations/live_replies.ts";
import { type ResumeState, ToolApproval, type ToolDecision, ToolRound } from "./tool_round.ts";
import {
  closeCall,
  createRoundMessage,
  MAX_SENT_BYTES,
  MAX_STORED_BYTES,
  type OpenCall,
  parseArguments,
  type RoundOwner,
  toNotice,
  type ToolResult,
  toRoundGeneration,
  toToolResult,
} from "./tool_messages.ts";

/** Measures how long a reply runs, excluding time in which it only waits for the owner. */
class RunClock {
  readonly #now: () => number;
  #elapsedMs: number;
  #running = 0;
  #sinceMs = 0;

  /** @param elapsedMs Running time before a restart. */
  constructor(now: () => number, elapsedMs = 0) {
    this.#now = now;
    this.#elapsedMs = elapsedMs;
  }

  /** Running time so far, in milliseconds. */
  get elapsedMs(): number {
    return this.#elapsedMs + (this.#running > 0 ? this.#now() - this.#sinceMs : 0);
  }

  /** Runs work and counts its time. Concurrent work counts once. */
  async measure<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running++ === 0) this.#sinceMs = this.#now();
    try {
      return await work();
    } finally {
      if (--this.#running === 0) this.#elapsedMs += this.#now() - this.#sinceMs;
    }
  }
}

/** Dependencies of a ToolRun. */
export interface ToolRunDeps extends ChatToolsDeps {
  conversationWriter: ConversationWriter;
  reader: ConversationReader;
  images: ImagePartsDeps;
  resumes: ReplyResumes<ResumeState>;
  journal: Journal;
  events: EventHub;
  log: Log;
  now(): number;
  limits?: Partial<ToolLimits>;
  /** Notifies other devices. */
  push: { notifyApproval(reply: { conversationId: string }): void };
}

/** Limits per reply. */
export interface ToolLimits {
  /** Maximum number of requests to the model that offer tools. */
  rounds: number;
  /** Maximum running time in milliseconds, excluding waiting for the owner. */
  runningMs: number;
  /** Maximum duration of one call in milliseconds. */
  callMs: number;
}

const LIMITS: ToolLimits = { rounds: 25, runningMs: 10 * 60_000, callMs: 120_000 };
/** Maximum number of calls per round. A model that makes more is in a loop. */
const MAX_CALLS = 64;
/** Minimum size of a result's text for the model. */
const LEAST_RESULT_BYTES = 1024;
/** Minimum number of bytes per token, for estimates. */
const TOKEN_BYTES = 3;
/** Matches IDs and names that servers accept; those from a model can be anything. */
const VALID_ID = /^[\w.:-]{1,128}$/;
const VALID_NAME = /^[\w.:-]{1,128}$/;
const INVALID_NAME = "invalid_name";

/** Runs the tools of a reply. */
export class ToolRun {
  /** Whether the reply continued after a restart. */
  readonly isResumed: boolean;
  readonly #deps: ToolRunDeps;
  readonly #reply: Reply;
  readonly #request: StatefulChatRequest;
  readonly #limits: ToolLimits;
  readonly #clock: RunClock;
  readonly #round: ToolRound;
  readonly #approval: ToolApproval;
  /** Number of rounds of this run so far. */
  #rounds: number;
  #maxResultBytes: number;

  /** @param resumed The state before a restart. */
  constructor(deps: ToolRunDeps, reply: Reply, request: StatefulChatRequest, resumed?: ResumeState) {
    this.#deps = deps;
    this.#reply = reply;
    this.#request = request;
    this.#limits = { ...LIMITS, ...deps.limits };
    this.#clock = new RunClock(deps.now, resumed?.runningMs);
    this.#round = new ToolRound(deps, reply);
    this.#approval = new ToolApproval(deps, reply, this.#round);
    this.#rounds = resumed?.rounds ?? 0;
    this.#maxResultBytes = resumed?.maxResultBytes ?? MAX_SENT_BYTES;
    this.isResumed = resumed !== undefined;
    if (this.isResumed) this.#round.reopen();
  }

  /** Whether the reply only waits for the owner. */
  get isWaiting(): boolean {
    if (!this.#round.isStored) return false;
    const states = this.#round.calls.map(({ record }) => record.state);
    return states.includes("pending") && !states.includes("running");
  }

  /** The calls that wait for the owner. */
  get pending(): ToolCallRecord[] {
    return this.#round.pending;
  }

  /** Messages of the rounds of this run. A continued reply may have earlier rounds. */
  get ownRounds(): readonly Message[] {
    const { rounds } = this.#reply;
    const starts = rounds.flatMap(({ role }, index) => role === "assistant" ? [index] : []);
    return this.#rounds === 0 ? [] : rounds.slice(starts.at(-this.#rounds));
  }

  /** Whether a limit is reached, so that the model may not call tools anymore. */
  get isOver(): boolean {
    return this.#rounds >= this.#limits.rounds || this.#clock.elapsedMs >= this.#limits.runningMs;
  }

  /** Which limit is reached. */
  get overReason(): string {
    return this.#rounds >= this.#limits.rounds
      ? `The model called tools in ${this.#rounds} rounds without answering, which is the limit`
      : `The model ran for ${
        Math.round(this.#limits.runningMs / 60_000)
      } minutes without an answer, which is the limit`;
  }

  /** Counts the time of work by the model. */
  measure<T>(work: () => Promise<T>): Promise<T> {
    return this.#clock.measure(work);
  }

  /** Lists the tools for the next request. Returns `undefined` if the chat has none. */
  async listOffer(): Promise<ToolOffer | undefined> {
    return await listChatTools(this.#deps, this.#reply.conversationId, this.#reply.signal);
  }

  /** Stores a round that the model ended with calls. Starts the calls that need no decision. */
  async storeRound(offer: ToolOffer, sent: UpstreamCall): Promise<void> {
    const { journal, events, reader } = this.#deps;
    const { conversationId, messageId, generation } = this.#reply;
    const written = this.#reply.readRound();
    const { character_id: speaker } = reader.readMessage(conversationId, messageId);
    const owner = {
      messageId,
      model: this.#reply.model,
      connectionId: this.#reply.connectionId,
      characterId: typeof speaker === "string" ? speaker : undefined,
    } satisfies RoundOwner;
    this.#rounds++;
    this.#maxResultBytes = chooseResultBytes(sent, written.calls.length);
    const message = createRoundMessage(written, owner, createUuidV7(), new Date(this.#deps.now()).toISOString());
    const usedIds = findCallIds(sent.call.messages);
    const calls = written.calls.slice(0, MAX_CALLS).map(({ id, index: _, type: __, function: named, ...extra }) => {
      const record: ToolCallRecord = {
        id: this.#chooseId(id, usedIds),
        conversationId,
        messageId: message.id,
        name: VALID_NAME.test(named.name) ? named.name : INVALID_NAME,
        arguments: named.arguments.trim() === "" ? "{}" : named.arguments,
        state: "pending",
      };
      const call: OpenCall = { record, extra };
      this.#approval.applyPermission(call, offer.tools.find(({ name }) => name === named.name)?.tool);
      return call;
    });
    await this.#round.start(message, calls, [this.#saveState()]);
    const old = this.#reply.journal;
    this.#reply.useJournal(journal.begin({ messageId, generation: toRoundGeneration(generation, this.#round.count) }));
    await old.settle();
    this.#round.show(calls);
    if (this.pending.length === 0) return;
    events.publish({ kind: "approval", id: conversationId });
    this.#deps.push.notifyApproval({ conversationId });
  }

  /** Waits until all calls of the round have results. Returns at once if the reply is stopped. */
  async settleCalls(): Promise<void> {
    const { signal } = this.#reply;
    const all = Promise.all(this.#round.calls.map(async (call) => {
      await this.#approval.waitForDecision(call);
      if (!signal.aborted && call.record.state === "running") await this.#runCall(call);
    }));
    try {
      await raceAbort(all, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Finds a call of the current round. */
  find(callId: string): ToolCallRecord | undefined {
    return this.#round.find(callId)?.record;
  }

  /** Allows or denies a waiting call. @throws {AppError} Like `ToolApproval.decide` */
  decide(callId: string, decision: ToolDecision): Promise<ToolCallRecord> {
    return this.#approval.decide(callId, decision);
  }

  /** Ends all open calls, because the reply has ended. A running call becomes `unknown`. */
  async abandon(): Promise<void> {
    const open = this.#round.calls.filter(({ record }) => record.state === "pending" || record.state === "running");
    if (open.length === 0) return;
    for (const call of open) closeCall(call, this.#deps.now(), (result) => this.#round.setResult(call, result));
    try {
      await this.#round.store(open);
    } catch (error) {
      // Saving the reply tries again.
      this.#deps.log("error", "Can't store the end of tool calls yet", { error: getErrorTrace(error) });
    }
    this.#round.show(open);
    this.#deps.events.publish({ kind: "approval", id: this.#reply.conversationId });
  }

  #chooseId(preferred: string | undefined, used: Set<string>): string {
    const isFree = (id: string) => !used.has(id) && !this.#deps.callStore.has(this.#reply.conversationId, id);
    const id = preferred !== undefined && VALID_ID.test(preferred) && isFree(preferred)
      ? preferred
      : `call_${randomToken(12)}`;
    used.add(id);
    return id;
  }

  async #runCall(call: OpenCall): Promise<void> {
    const { log, images } = this.#deps;
    const { signal } = this.#reply;
    let result: ToolResult;
    let isFailed = false;
    try {
      const output = await this.#clock.measure(() => this.#callTool(call.record));
      result = toToolResult(output, this.#maxResultBytes);
      isFailed = output.isError;
      result = { ...result, content: await storeInlineImages(images, result.content) };
    } catch (error) {
      if (signal.aborted) return; // `abandon` sets the state of the call.
      if (!(error instanceof AppError)) log("error", "A tool call failed", { error: getErrorTrace(error) });
      isFailed = true;
      result = toNotice(`The call failed: ${error instanceof AppError ? getErrorMessage(error) : "internal error"}`);
    }
    if (signal.aborted) return;
    call.record = { ...call.record, state: isFailed ? "failed" : "done", endedAtMs: this.#deps.now() };
    this.#round.setResult(call, result);
    await this.#round.store([call]);
    this.#round.show([call]);
  }

  /** Calls a tool, unless its definition has changed. Doesn't wait for one that ignores the time limit. */
  async #callTool({ tool: wanted, arguments: args }: ToolCallRecord): Promise<ToolOutput> {
    const { conversationId, messageId, signal: stopped } = this.#reply;
    const timeoutMs = Math.max(1, Math.min(this.#limits.callMs, this.#limits.runningMs - this.#clock.elapsedMs));
    const limit = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([stopped, limit]);
    const call = async () => {
      const tools = await this.#deps.registry();
      const tool = await tools.findTool(wanted!, signal);
      if (tool === undefined) throw new AppError("not_found", `The tool "${wanted!.name}" no longer exists`);
      if (tool.fingerprint !== wanted!.fingerprint) {
        throw new AppError("conflict", `The definition of the tool "${tool.name}" has changed, so it wasn't called`);
      }
      const options = {
        signal,
        timeoutMs,
        maxBytes: MAX_STORED_BYTES,
        conversationId,
        messageId,
      } satisfies ToolCallOptions;
      return await tools.callTool(tool, parseArguments(args)!, options);
    };
    try {
      return await raceAbort(call(), signal);
    } catch (error) {
      if (!limit.aborted || stopped.aborted) throw error;
      throw new AppError("upstream_timeout", `no response after ${Math.round(timeoutMs / 1000)} s`);
    }
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
}

/** Returns the IDs of all tool calls in messages. */
function findCallIds(messages: UpstreamCall["call"]["messages"]): Set<string> {
  const calls = messages.flatMap(({ tool_calls: calls }) => Array.isArray(calls) ? calls : []);
  return new Set(calls.filter(isJsonObject).map(({ id }) => String(id)));
}

/**
 * Divides the free part of the context among the calls of a round, so that the next prompt has space for their results.
 */
function chooseResultBytes({ prompt }: UpstreamCall, calls: number): number {
  if (prompt === undefined) return MAX_SENT_BYTES;
  const free = (prompt.budget - prompt.tokens) * TOKEN_BYTES / 2 / Math.max(1, calls);
  return Math.max(LEAST_RESULT_BYTES, Math.min(MAX_SENT_BYTES, Math.floor(free)));
}
