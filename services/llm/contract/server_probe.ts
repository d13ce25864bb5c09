/**
 * Asks one server what it does with one model: what it reports, and, if that costs nobody anything, a few calls of a few
 * tokens each (docs/decisions/0059-server-contract.md).
 */
import type { HttpClient } from "../../http/http_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ChatCall, ChatMessage } from "../chat_event.ts";
import { COMMON_IMAGE_TYPES, CONTINUE_LAST_MESSAGE, type Dialect, SHOW_PROGRESS } from "../dialects/dialect.ts";
import { isHosted } from "../dialects/dialects.ts";
import { getTargetDialect, type Provider, type UpstreamTarget } from "../provider.ts";
import type { Refusal } from "../refused_fields.ts";
import {
  CONTRACT_ITEMS,
  type ContractItem,
  type Finding,
  getExpected,
  type NotAsked,
  type ServerContract,
} from "./contract.ts";
import { readServerState, type ServerLoad, type ServerState } from "./server_state.ts";

/** How a probe may ask. */
export interface ProbeOptions {
  /**
   * Who asks. Parlor itself makes calls only if the server says that nobody is affected: no slot is busy, and none has to
   * drop a chat. For the owner's test it's enough that the server isn't known to be busy. Neither loads a model.
   */
  by: "parlor" | "owner";
  /** After this time, what isn't known stays unknown. */
  limitMs: number;
  /** Ends the probe early: a chat needs the server. */
  yielding?: AbortSignal;
  now(): number;
}

/** A sentence that any model goes on with in the same way. */
const SYSTEM = "You count.";
const QUESTION = "Count from one to ten in words.";
const PREFILL = "One, two, three,";
const SHORT = 8;
/** Tokens of the call that is canceled. A server that goes on writes no more than these. */
const CANCELED = 64;
/** Share of a probe's time in which a server has to free a slot after a reply, or after its client has left. */
const FREE_SHARE = 0.25;
const POLL_MS = 40;
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const TOOL = {
  type: "function",
  function: { name: "get_time", description: "Returns the time", parameters: { type: "object", properties: {} } },
};

/** Errors about one thing that a call had. Servers of one kind use many words. */
const ABOUT: Partial<Record<ContractItem, RegExp>> = {
  continues: /assistant|prefill|last message|final message|continu|roles? must|alternate/i,
  system_message: /system/i,
  tools: /\btools?\b|tool_|function.?call|jinja/i,
  images: /image|vision|multi.?modal|mmproj|content|text/i,
};

/** What came of one call. */
interface Answer {
  text: string;
  finish?: string;
  hasUsage: boolean;
  hasProgress: boolean;
  leftOut: string[];
  error?: UpstreamError;
  writingMs: number;
}

/** Returns a text that changes when the server was started with another version, model or options. */
export async function readFingerprint(
  deps: ProbeDeps,
  target: UpstreamTarget,
  model: string,
  signal: AbortSignal,
): Promise<string> {
  const [state, contextSize] = await Promise.all([
    readServerState(deps.http, target, model, signal),
    deps.provider.readContextSize(target, model, signal),
  ]);
  return toFingerprint(state, contextSize);
}

function toFingerprint(
  { version, options }: Pick<ServerState, "version" | "options">,
  contextSize: number | undefined,
): string {
  return [version ?? "", contextSize ?? "", options].join(" | ");
}

/** What a probe needs. */
export interface ProbeDeps {
  http: HttpClient;
  provider: Provider;
}

/** Asks a server. @throws The caller's abort reason. */
export async function probeServer(
  deps: ProbeDeps,
  target: UpstreamTarget,
  model: string,
  options: ProbeOptions,
  signal: AbortSignal,
): Promise<ServerContract> {
  const time = AbortSignal.timeout(options.limitMs);
  const { yielding = new AbortController().signal } = options;
  const probe = new Probe(deps, target, model, options.limitMs, AbortSignal.any([signal, time, yielding]));
  try {
    await probe.run(options.by);
  } catch (thrown) {
    signal.throwIfAborted();
    if (yielding.aborted) probe.stop("busy");
    else if (!time.aborted) throw thrown;
  }
  return probe.finish(options.now());
}

/** One run. What was found before its time is over stays. */
class Probe {
  readonly #deps: ProbeDeps;
  readonly #target: UpstreamTarget;
  readonly #model: string;
  readonly #signal: AbortSignal;
  readonly #dialect: Dialect;
  readonly #freeMs: number;
  readonly #refusals = new ProbeRefusals();
  readonly #found = new Map<ContractItem, boolean | number>();
  /** Why the rest isn't known. */
  #reason: NotAsked = "time";
  #state: ServerState | undefined;
  #isExactWithFields = false;
  #tellsLoad = false;
  /** The first call that the server accepted. */
  #reply: { messages: ChatMessage[]; params: Record<string, unknown>; text: string } | undefined;

  constructor(deps: ProbeDeps, target: UpstreamTarget, model: string, limitMs: number, signal: AbortSignal) {
    this.#deps = deps;
    this.#freeMs = limitMs * FREE_SHARE;
    this.#model = model;
    this.#signal = signal;
    this.#dialect = getTargetDialect(target);
    // Nothing of a probe is remembered as a call of the connection.
    const { connection: _, ...rest } = target;
    this.#target = rest;
  }

  async run(by: ProbeOptions["by"]): Promise<void> {
    const [state, contextSize] = await Promise.all([
      readServerState(this.#deps.http, this.#target, this.#model, this.#signal),
      this.#deps.provider.readContextSize(this.#target, this.#model, this.#signal),
    ]);
    this.#state = state;
    this.#learn("context_size", contextSize);
    this.#learn("slots", state.slots);
    this.#learn("images", state.images);
    this.#learn("tools", state.tools);
    this.#learn("resumable", state.resumable);
    // Templates without the role take its text all the same, or refuse it: only a call tells.
    if (state.systemMessage) this.#learn("system_message", true);
    if (!state.isLoaded) return this.stop("would_load");
    const load = await this.#findRoom(by);
    if (load === undefined) return;
    const ask = {
      continuation: () => this.#askContinuation(load),
      stop: () => this.#askStop(load),
      tools: () => this.#askField("tools", load),
      images: () => this.#askField("images", load),
      cancel: () => this.#askCancel(load),
    };
    if (isHosted(this.#dialect)) {
      await Promise.all([ask.continuation().then(ask.stop), ask.tools(), ask.images()]);
    } else {
      // A server of one's own answers one after the other anyway.
      for (const question of [ask.continuation, ask.stop, ask.tools, ask.cancel, ask.images]) {
        if (!await this.#isFree()) return this.stop("busy");
        await question();
      }
    }
    this.stop("unclear");
  }

  /** Ends the probe. @param reason Why the rest isn't known. */
  stop(reason: NotAsked): void {
    this.#reason = reason;
  }

  finish(atMs: number): ServerContract {
    const contextSize = this.#found.get("context_size") as number | undefined;
    const findings: ServerContract["findings"] = {};
    for (const item of CONTRACT_ITEMS) {
      const found = this.#found.get(item);
      const expected = getExpected(this.#dialect, item);
      if (found === undefined && !this.#isApplicable(item)) continue;
      findings[item] = {
        ...(expected !== undefined && { expected }),
        ...(found === undefined ? { reason: this.#reason } : { found }),
      } satisfies Finding;
    }
    return {
      atMs,
      fingerprint: toFingerprint(this.#state ?? { options: "" }, contextSize),
      ...(this.#state?.version !== undefined && { version: this.#state.version }),
      findings,
      ...(this.#isExactWithFields && { isExactWithFields: true }),
    };
  }

  /** Reports whether an item can be known of such a server at all. */
  #isApplicable(item: ContractItem): boolean {
    const canReport = !isHosted(this.#dialect);
    if (item === "slots" || item === "resumable") return false;
    if (item === "cancels") return this.#tellsLoad;
    if (item === "progress") return canReport && this.#target.kind === "openai";
    if (item === "continues") return this.#dialect.continues;
    if (item === "repeats_prefill") return this.#dialect.continues && this.#found.get("continues") !== false;
    return true;
  }

  #learn(item: ContractItem, value: boolean | number | undefined): void {
    if (value !== undefined) this.#found.set(item, value);
  }

  /** Returns whether a call may be made now. It sets the reason otherwise. */
  async #findRoom(by: ProbeOptions["by"]): Promise<ServerLoad | undefined> {
    if (!await this.#isFree()) return void this.stop("busy");
    const load = await this.#state!.readLoad();
    this.#tellsLoad = load !== undefined;
    if (by === "owner") return load ?? { isBusy: false, isEmpty: false };
    if (load?.isEmpty) return load;
    return void this.stop("holds_chat");
  }

  /** One call shows several things. What it's refused for is left out of the next. */
  async #askContinuation(load: ServerLoad): Promise<void> {
    const isAsking = this.#target.kind === "openai" && !isHosted(this.#dialect);
    const params = { max_tokens: SHORT, temperature: 0, ...(isAsking && SHOW_PROGRESS) };
    const system: ChatMessage = { role: "system", content: SYSTEM };
    const question: ChatMessage = { role: "user", content: QUESTION };
    const prefill: ChatMessage = { role: "assistant", content: PREFILL };
    let answer = await this.#ask([system, question, prefill], params, load);
    if (isAbout("system_message", answer)) {
      this.#learn("system_message", false);
      answer = await this.#ask([question, prefill], params, load);
    } else if (answer.error === undefined) this.#learn("system_message", true);
    if (isAbout("continues", answer)) {
      this.#learn("continues", false);
      answer = await this.#ask([system, question], params, load);
      if (answer.error === undefined) this.#learn("system_message", true);
    }
    if (answer.error !== undefined && answer.error.kind !== "empty") return;
    const accepted = [system, question, prefill].filter((message) =>
      !(message === system && this.#found.get("system_message") === false) &&
      !(message === prefill && this.#found.get("continues") === false)
    );
    this.#reply = { messages: accepted, params, text: answer.text };
    this.#learn("usage", answer.hasUsage);
    if (isAsking) this.#learn("progress", answer.hasProgress);
    // Whether another text than the prefill continues it isn't seen, so the table is believed.
    if (!this.#dialect.continues || this.#found.get("continues") === false || answer.text === "") return;
    this.#learn("continues", true);
    const isRepeated = repeatsPrefill(answer);
    this.#learn("repeats_prefill", isRepeated);
    if (!isRepeated || this.#dialect.continuationFields !== undefined || this.#target.kind !== "openai") return;
    const exact = await this.#ask(accepted, { ...params, ...CONTINUE_LAST_MESSAGE }, load);
    this.#isExactWithFields = exact.error === undefined && exact.text !== "" && !repeatsPrefill(exact);
  }

  /** Asks the same again, to stop at the end of the first reply. */
  async #askStop(load: ServerLoad): Promise<void> {
    if (this.#reply === undefined) return;
    const { messages, params, text } = this.#reply;
    const stop = text.trim().slice(-2).trim();
    if (stop === "") return;
    const answer = await this.#ask(messages, { ...params, stop: [stop] }, load);
    if (answer.leftOut.includes("stop")) return this.#learn("stop", false);
    if (answer.error !== undefined && answer.error.kind !== "empty") return;
    if (answer.text.includes(stop)) this.#learn("stop", false);
    else if (text.startsWith(answer.text)) this.#learn("stop", true);
  }

  /** Whether a server takes a tool or an image. */
  async #askField(item: "tools" | "images", load: ServerLoad): Promise<void> {
    if (this.#found.has(item)) return;
    const image = [{ type: "text", text: "What is this?" }, { type: "image_url", image_url: { url: PIXEL } }];
    const content = item === "images" ? image : "Hello";
    const params = { max_tokens: 1, ...(item === "tools" && { tools: [TOOL] }) };
    const answer = await this.#ask([{ role: "user", content }], params, load);
    if (answer.leftOut.some((field) => field.startsWith(item)) || isAbout(item, answer)) this.#learn(item, false);
    else if (answer.error === undefined || answer.error.kind === "empty") this.#learn(item, true);
  }

  /** Reports whether no slot is busy. One that has just answered may need a moment. */
  async #isFree(): Promise<boolean> {
    const untilMs = performance.now() + this.#freeMs;
    while ((await this.#state!.readLoad())?.isBusy) {
      if (performance.now() > untilMs) return false;
      await this.#pause();
    }
    return true;
  }

  /** Leaves during a reply, and looks whether the server goes on. Only of servers that say what they do. */
  async #askCancel(load: ServerLoad): Promise<void> {
    const { readLoad } = this.#state!;
    if (!this.#tellsLoad) return;
    const messages: ChatMessage[] = [{ role: "user", content: QUESTION }];
    const params = { max_tokens: CANCELED, temperature: 0, ignore_eos: true };
    const answer = await this.#ask(messages, params, load, { isLeaving: true });
    if (answer.error !== undefined || answer.text === "") return;
    const leftAtMs = performance.now();
    const restMs = answer.writingMs * CANCELED;
    while ((await readLoad())?.isBusy) {
      if (performance.now() - leftAtMs > this.#freeMs) return this.#learn("cancels", false);
      await this.#pause();
    }
    // A server that would have written everything by now tells nothing.
    if (performance.now() - leftAtMs < Math.max(restMs, this.#freeMs)) this.#learn("cancels", true);
  }

  async #pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    this.#signal.throwIfAborted();
  }

  /** Makes a call and reads it to its end, or to its first text. @throws The abort reason. */
  async #ask(
    messages: ChatMessage[],
    params: Record<string, unknown>,
    { emptySlot }: ServerLoad,
    { isLeaving = false } = {},
  ): Promise<Answer> {
    const answer: Answer = { text: "", hasUsage: false, hasProgress: false, leftOut: [], writingMs: 0 };
    const call: ChatCall = {
      model: this.#model,
      messages,
      params: { ...this.#withoutThinking(), ...params, ...(emptySlot !== undefined && { id_slot: emptySlot }) },
      ...(this.#state?.loadedContextSize && { extraBody: { options: { num_ctx: this.#state.loadedContextSize } } }),
    };
    // The table's belief mustn't keep a probe from asking.
    const dialect: Dialect = { ...this.#dialect, imageTypes: COMMON_IMAGE_TYPES };
    const target: UpstreamTarget = {
      ...this.#target,
      dialect,
      connection: { id: "", name: "", memory: this.#refusals },
    };
    try {
      const stream = await this.#deps.provider.openChatStream(target, call, this.#signal);
      answer.leftOut.push(...(stream.sent?.leftOut ?? []).map(({ field }) => field));
      const startedMs = performance.now();
      for await (const batch of stream.batches()) {
        for (const event of batch) {
          if (event.type === "text") answer.text += event.text;
          if (event.type === "finish") answer.finish = event.reason;
          answer.hasUsage ||= event.type === "usage" && (event.usage.prompt_tokens ?? 0) > 0;
          answer.hasProgress ||= event.type === "progress";
        }
        if (!isLeaving || answer.text === "") continue;
        answer.writingMs = performance.now() - startedMs;
        stream.cancel();
      }
    } catch (thrown) {
      this.#signal.throwIfAborted();
      if (!(thrown instanceof UpstreamError)) throw thrown;
      answer.error = thrown;
    }
    return answer;
  }

  /** A model that thinks would use up its tokens with that. Unknown servers may not know the field. */
  #withoutThinking(): Record<string, unknown> {
    const { name, thinking } = this.#dialect;
    return thinking.hasSwitch && name !== "generic" && !isHosted(this.#dialect) ? { reasoning_effort: "none" } : {};
  }
}

/** Remembers refused fields for one probe only. */
class ProbeRefusals {
  readonly #known: Refusal[] = [];

  list(): readonly Refusal[] {
    return this.#known;
  }

  add(_model: string, refusal: Refusal): void {
    this.#known.push(refusal);
  }

  reportCall(): void {}
  reportNotice(): void {}
  reportDialect(): void {}
  reportThinking(): void {}
  reportModels(): void {}
  reportContract(): void {}
}

function repeatsPrefill({ text }: Answer): boolean {
  return text.trimStart().startsWith(PREFILL);
}

/** Reports whether a server refused a call because of one thing that it had. */
function isAbout(item: ContractItem, { error }: Answer): boolean {
  if (error === undefined || error.status === undefined || error.kind === "overflow") return false;
  const isRequest = [200, 400, 404, 422, 500, 501].includes(error.status);
  return isRequest && ABOUT[item]!.test(error.reported ?? error.message);
}
