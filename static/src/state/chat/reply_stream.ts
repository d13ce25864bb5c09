/** Follows one reply: its growing text, and reconnecting. */
import type { ToolCall } from "../../api/tools.ts";
import type { Message, Usage } from "../../api/types.ts";
import { batch, signal } from "@preact/signals";
import { ApiError, readEvents } from "../../api/client.ts";
import {
  parseReplyFrame,
  placeDelta,
  type PromptProgress,
  type ReplyFrame,
  type ReplyNotice,
} from "../../api/reply_frames.ts";
import type { Api } from "../../api/api.ts";
import { getRetryDelayMs, pause } from "../app/backoff.ts";
import { getContentText } from "./message_text.ts";

/** Reasoning times below this are not shown, in milliseconds. */
const MIN_REASONING_MS = 500;

/** A page that isn't seen for so long lets go of its stream, in milliseconds. */
const HIDDEN_MS = 5_000;

/** The state of a running reply. */
export type ReplyPhase = "sending" | "unsent" | "waiting" | "writing" | "reconnecting";

/** Why following ended: the reply ended, was refused, can't be followed from here, or the page left. */
export type ReplyOutcome =
  | { kind: "ended"; error?: ApiError }
  | { kind: "refused"; error: ApiError }
  | { kind: "lost" }
  | { kind: "left" };

/** Durations that this page measured; undefined if it did not see all of it. */
export interface ReplyTimes {
  reasoningMs: number | undefined;
  /** From the first piece of text or reasoning to the last. */
  writingMs: number | undefined;
  /** Until the first text or reasoning. */
  firstWordMs?: number;
  /** When the reply ended, by this page's clock. */
  endedAtMs: number;
}

/** A tool call, and the length of the text before it. */
export interface PlacedCall {
  call: ToolCall;
  textLength: number;
  reasoningLength: number;
}

/** The start of a stream. */
export interface ReplyStreamOptions {
  messageId: string;
  startedAtMs: number;
  /** The message's present content: of a reply that runs already, or one that is being continued. */
  text: string;
  reasoning: string;
  /** Starts the reply; undefined attaches to a running one. Sending twice is safe, since the server knows the ids. */
  start?: (signal: AbortSignal) => Promise<Response>;
  attach: (lastEventId: string | undefined, signal: AbortSignal) => Promise<Response>;
  /** Called once when the server has accepted the request. */
  onAccepted?: () => void;
  /** There is a text that the user can change before it's sent. */
  canEdit?: boolean;
  /** Tells whether the page does something at the reply's end, also while nobody sees it. */
  hasNext?: () => boolean;
  /** The reply depends on this connection, so reconnecting is pointless. */
  isLostWithConnection?: boolean;
}

/** Deltas from which the speed of a reply is known. */
const MIN_PIECES = 8;

/** Follows one reply to its end. Signals update at most once a frame. */
export class ReplyStream {
  readonly messageId: string;
  readonly startedAtMs: number;
  /** What the reply had when the page began to follow it. */
  readonly joinedText: string;
  readonly text = signal("");
  readonly reasoning = signal("");
  readonly phase = signal<ReplyPhase>("waiting");
  /** How long the model reasoned before its first text; undefined while unknown. */
  readonly reasoningMs = signal<number | undefined>(undefined);
  readonly isStopping = signal(false);
  /** Tool calls so far. The text of a reply continues after the last one. */
  readonly calls = signal<readonly PlacedCall[]>([]);
  /** The reason for a delay, until the reply's first text. */
  readonly notice = signal<ReplyNotice | undefined>(undefined);
  /** How much of the prompt the server has read, until the reply's first text. */
  readonly progress = signal<PromptProgress | undefined>(undefined);
  /** Tokens a second; undefined until there are enough. Most servers send each token by itself. */
  readonly speed = signal<number | undefined>(undefined);
  finishReason: string | undefined;
  /** Model and usage, as the frames reported them so far. */
  model: string | undefined;
  usage: Usage | undefined;
  #options: ReplyStreamOptions;
  #abort = new AbortController();
  #text: string;
  #reasoning: string;
  #generation: string | undefined;
  #lastEventId: string | undefined;
  #reasoningSinceMs: number | undefined;
  #firstAtMs: number | undefined;
  #lastAtMs: number | undefined;
  /** Number of deltas. */
  #pieces = 0;
  #cancelFlush: (() => void) | undefined;
  #wasAccepted = false;
  #endPause: (() => void) | undefined;
  /** Set if the user doesn't want it sent anymore. */
  isDiscarded = false;
  /** Tells whether the text is needed as it comes also while nobody sees the page: it's read aloud. */
  isHeard = () => false;
  #connection = new AbortController();
  #hasLetGo = false;

  constructor(options: ReplyStreamOptions) {
    this.#options = options;
    this.messageId = options.messageId;
    this.startedAtMs = options.startedAtMs;
    this.#text = this.joinedText = options.text;
    this.#reasoning = options.reasoning;
    // A running reply that this page joins may have text already.
    const hasBegun = options.text !== "" || options.reasoning !== "";
    this.phase.value = options.start ? "sending" : hasBegun ? "writing" : "waiting";
    this.#flush();
  }

  /** True once the server has accepted the request, or if there was none. */
  get isAccepted(): boolean {
    return this.#wasAccepted || !this.#options.start;
  }

  /** True if the message that asks for it can be changed before it's sent. */
  get canEdit(): boolean {
    return this.#options.canEdit ?? false;
  }

  /** True if this page asked for the reply. Another device may have, too. */
  get isAskedHere(): boolean {
    return this.#options.start !== undefined;
  }

  /** The durations so far. */
  get times(): ReplyTimes {
    const sawAll = this.#options.start !== undefined && this.#options.text === "";
    const writingMs = sawAll && this.#firstAtMs !== undefined ? this.#lastAtMs! - this.#firstAtMs : undefined;
    const firstWordMs = sawAll && this.#firstAtMs !== undefined ? this.#firstAtMs - this.startedAtMs : undefined;
    return { reasoningMs: this.reasoningMs.peek(), writingMs, firstWordMs, endedAtMs: Date.now() };
  }

  /** Adds or updates a tool call after the text so far. Ignores an older state, which may arrive later. */
  showCall(call: ToolCall): void {
    const before = this.calls.peek();
    const at = before.findIndex((placed) => placed.call.id === call.id);
    if (at >= 0 && getStage(call) < getStage(before[at]!.call)) return;
    this.calls.value = at >= 0
      ? before.with(at, { ...before[at]!, call: { ...before[at]!.call, ...call } })
      : [...before, { call, textLength: this.#text.length, reasoningLength: this.#reasoning.length }];
  }

  /** Stops following; a reply that the server has continues there. */
  leave(): void {
    this.#abort.abort();
  }

  /** Ends the delay before the next attempt. */
  retryNow(): void {
    this.#endPause?.();
  }

  /** Follows to the end. Never throws. */
  async follow(): Promise<ReplyOutcome> {
    const endWatch = this.#letGoWhileHidden();
    try {
      return await this.#followToEnd();
    } finally {
      endWatch();
    }
  }

  async #followToEnd(): Promise<ReplyOutcome> {
    const { signal } = this.#abort;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const outcome = await this.#followOnce(() => attempt = 0);
        if (outcome) return outcome;
        if (this.#options.isLostWithConnection) return { kind: "lost" };
      } catch (thrown) {
        if (signal.aborted) break;
        if (this.#hasLetGo) {
          await untilShown(signal);
          attempt = -1;
          continue;
        }
        const outcome = this.#getImportOutcome(thrown);
        if (outcome) return outcome;
      } finally {
        this.#flush();
      }
      this.phase.value = this.isAccepted ? "reconnecting" : "unsent";
      const early = new AbortController();
      this.#endPause = () => early.abort();
      await pause(getRetryDelayMs(attempt), AbortSignal.any([signal, early.signal]));
    }
    return { kind: "left" };
  }

  /** One connection; undefined if it broke before the reply's end. */
  async #followOnce(onAlive: () => void): Promise<ReplyOutcome | undefined> {
    const { start, attach, onAccepted } = this.#options;
    this.#connection = new AbortController();
    this.#hasLetGo = false;
    const signal = AbortSignal.any([this.#abort.signal, this.#connection.signal]);
    const response = start && !this.#wasAccepted ? await start(signal) : await attach(this.#lastEventId, signal);
    const isNew = !this.#wasAccepted;
    this.#wasAccepted = true;
    if (isNew) onAccepted?.();
    if (this.#text === "" && this.#reasoning === "") this.phase.value = "waiting";
    else this.phase.value = "writing";
    for await (const events of readEvents(response)) {
      onAlive();
      for (const event of events) {
        const frame = parseReplyFrame(event);
        if (frame?.kind === "done") return { kind: "ended" };
        if (frame?.kind === "error") return { kind: "ended", error: frame.error };
        if (frame?.kind === "notice") this.notice.value = frame.notice;
        else if (frame?.kind === "progress") this.progress.value = frame.progress;
        else if (frame?.kind === "message") this.#replace(frame.message);
        else if (frame?.kind === "call") this.showCall(frame.call);
        else if (frame && !this.#take(frame)) return { kind: "lost" };
      }
      if (events.length > 0) this.#flushSoon();
    }
    return undefined;
  }

  /**
   * Ends the connection while nobody sees the page. A browser gives a host six connections over HTTP/1.1, so a few hidden
   * pages with running replies would keep all others from loading.
   */
  #letGoWhileHidden(): () => void {
    let timer: ReturnType<typeof setInterval> | undefined;
    const letGo = () => {
      const { isLostWithConnection, hasNext } = this.#options;
      if (this.#hasLetGo || !this.isAccepted || isLostWithConnection || hasNext?.() || this.isHeard()) return;
      this.#hasLetGo = true;
      this.#connection.abort();
    };
    const onChange = () => {
      clearInterval(timer);
      if (document.visibilityState === "hidden") timer = setInterval(letGo, HIDDEN_MS);
    };
    document.addEventListener("visibilitychange", onChange);
    onChange();
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", onChange);
    };
  }

  #getImportOutcome(thrown: unknown): ReplyOutcome | undefined {
    if (this.#wasAccepted && this.#options.isLostWithConnection) return { kind: "lost" };
    if (!(thrown instanceof ApiError) || thrown.isOffline) return undefined;
    if (!this.#wasAccepted && this.#options.start) return { kind: "refused", error: thrown };
    // A restarting server, or its proxy, responds with 5xx for a while. Other statuses are final.
    return thrown.status >= 500 ? undefined : { kind: "lost" };
  }

  /** Applies a delta. Returns false if text before it is missing. */
  #take(frame: Extract<ReplyFrame, { kind: "delta" }>): boolean {
    const generation = frame.position?.generation;
    if (generation !== undefined && this.#generation !== undefined && generation !== this.#generation) return false;
    if (generation !== undefined) this.#generation = generation;
    const text = placeDelta(this.#text, frame.text, frame.position?.textLength);
    const reasoning = placeDelta(this.#reasoning, frame.reasoning, frame.position?.reasoningLength);
    if (text === undefined || reasoning === undefined) return false;
    if (frame.reasoning !== "") this.#reasoningSinceMs ??= Date.now();
    if (frame.text !== "" && this.#reasoningSinceMs !== undefined && this.reasoningMs.value === undefined) {
      const reasoningMs = Date.now() - this.#reasoningSinceMs;
      // Reasoning that arrives together with text was replayed, so its duration is unknown.
      if (reasoningMs >= MIN_REASONING_MS) this.reasoningMs.value = reasoningMs;
    }
    if (frame.text !== "" || frame.reasoning !== "") {
      this.#lastAtMs = Date.now();
      this.#firstAtMs ??= this.#lastAtMs;
      this.#pieces++;
    }
    this.#text = text;
    this.#reasoning = reasoning;
    this.model = frame.model ?? this.model;
    this.usage = frame.usage ?? this.usage;
    this.finishReason = frame.finishReason ?? this.finishReason;
    if (frame.id !== undefined) this.#lastEventId = frame.id;
    return true;
  }

  /** The server split the reply after it was streamed: it ended with reasoning that had no opening tag. */
  #replace({ content, reasoning }: Pick<Message, "content" | "reasoning">): void {
    const { textLength, reasoningLength } = this.calls.peek().at(-1) ?? { textLength: 0, reasoningLength: 0 };
    this.#text = this.#text.slice(0, textLength) + getContentText(content);
    this.#reasoning = this.#reasoning.slice(0, reasoningLength) + (reasoning ?? "");
  }

  #flushSoon(): void {
    if (this.#cancelFlush) return;
    // Background pages get no animation frames; a slow update is enough there.
    if (document.visibilityState === "hidden") {
      const timer = setTimeout(() => this.#flush(), 250);
      this.#cancelFlush = () => clearTimeout(timer);
    } else {
      const frame = requestAnimationFrame(() => this.#flush());
      this.#cancelFlush = () => cancelAnimationFrame(frame);
    }
  }

  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    batch(() => {
      this.text.value = this.#text;
      this.reasoning.value = this.#reasoning;
      const hasBegun = this.#text !== this.#options.text || this.#reasoning !== this.#options.reasoning;
      if (hasBegun && this.phase.value === "waiting") this.phase.value = "writing";
      if (hasBegun) this.notice.value = this.progress.value = undefined;
      const { writingMs = 0 } = this.times;
      if (this.#pieces >= MIN_PIECES && writingMs > 0) this.speed.value = this.#pieces / (writingMs / 1000);
    });
  }
}

/** Resolves when the page is seen again, or the signal fires. */
function untilShown(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.visibilityState === "hidden" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", check);
      signal.removeEventListener("abort", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    signal.addEventListener("abort", check);
    check();
  });
}

/** Returns the fields of a message after its reply ended. */
export function toEndedMessage(run: ReplyStream, outcome: ReplyOutcome): Partial<Message> {
  const error = outcome.kind === "ended" ? outcome.error : undefined;
  const lastCall = run.calls.peek().at(-1);
  const status = error ? (error.code === "interrupted" ? "interrupted" : "failed") : "complete";
  return {
    content: run.text.peek().slice(lastCall?.textLength),
    reasoning: run.reasoning.peek().slice(lastCall?.reasoningLength) || undefined,
    status: outcome.kind === "refused" ? "failed" : status,
    finish_reason: run.finishReason,
    error: error?.toBody(),
  };
}

/** Returns when a running reply started; an estimate if the server does not say. */
export async function findReplyStart(api: Pick<Api, "listReplies">, message: Message): Promise<number> {
  const fallback = Date.parse(message.updated_at ?? "") || Date.now();
  try {
    const replies = await api.listReplies();
    const reply = replies.find((each) => each.assistant_message_id === message.id);
    return reply ? Date.parse(reply.started_at) : fallback;
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown;
    return fallback;
  }
}

/** Orders the states of a call: it waits, runs, and ends. */
function getStage({ state }: ToolCall): number {
  if (state === undefined || state === "pending") return 0;
  return state === "running" ? 1 : 2;
}
