/** One reply while it is being written: collects and journals what the model sends, and lets clients follow it. */
import type { LiveReply } from "../conversations/live_replies.ts";
import type { Message } from "../conversations/message.ts";
import { AppError } from "../errors.ts";
import type { ChatEvent, Usage } from "../llm/chat_event.ts";
import { ToolCalls } from "../llm/tool_calls.ts";
import type { JournalBatch, ReplyJournal } from "./journal/journal.ts";
import {
  INTERRUPTED,
  type ReplyBatch,
  type ReplyCursor,
  type ReplyEnd,
  type ReplyEvent,
  type ReplySource,
  type ReplyStep,
  restAfter,
} from "./reply_source.ts";

/** Text kept as batches for clients that lag a little. A client further behind gets the rest in one batch. */
const MAX_RECENT_CHARS = 512 * 1024;
/** What an event counts toward that limit besides its text. */
const EVENT_CHARS = 64;
/** Longest reply. A longer one is an endless loop of the model. */
const MAX_CHARS = 32 * 1024 * 1024;

interface NewBatch extends JournalBatch {
  events: ReplyEvent[];
}

/** What a reply starts with. */
export interface ReplyOptions {
  conversationId: string;
  messageId: string;
  generation: string;
  /** Absent until the connection or its server has named one. */
  model: string | undefined;
  startedAtMs: number;
  /** Text and reasoning of the message before, if the reply continues it. */
  base: { text: string; reasoning: string };
  /** The message before, if the reply continues it or writes it again. */
  previous?: Message;
  journal: ReplyJournal;
}

/** Why the upstream call was ended early. */
type AbortReason = "stopped" | "interrupted";

/** How far a reply is. Each state follows only from one above it. */
type ReplyState =
  | { phase: "writing" }
  | { phase: "aborting"; reason: AbortReason }
  /** The upstream call is over. Clients still wait, because the message isn't saved. */
  | { phase: "ended"; end: ReplyEnd }
  /** Saving failed and is tried again. Clients see `shownEnd`, so that they don't take the reply for complete. */
  | { phase: "unsaved"; end: ReplyEnd; shownEnd: ReplyEnd; failure: AppError; since: string }
  | { phase: "saved"; end: ReplyEnd }
  /** Clients see the end. `isSaved` is false if the message was removed while it was being written. */
  | { phase: "settled"; end: ReplyEnd; isSaved: boolean };

/** A reply that is being written. */
export class Reply implements LiveReply, ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  /** Empty until it is known. */
  model: string;
  readonly startedAtMs: number;
  readonly journal: ReplyJournal;
  readonly #previous: Message | undefined;
  readonly #abort = new AbortController();
  #state: ReplyState = { phase: "writing" };
  /** Resolves when clients first see an end. */
  readonly #endShown = Promise.withResolvers<void>();
  #text: string;
  #reasoning: string;
  #seq = 0;
  #recent: ReplyBatch[] = [];
  #recentChars = 0;
  #waiting: { cursor: ReplyCursor; resolve(step: ReplyStep | Promise<ReplyStep>): void }[] = [];
  #finishReason: string | null = null;
  #usage: Usage | undefined;
  #timings: Record<string, unknown> | undefined;
  readonly #toolCalls = new ToolCalls();

  constructor(options: ReplyOptions) {
    this.conversationId = options.conversationId;
    this.messageId = options.messageId;
    this.generation = options.generation;
    this.model = options.model ?? "";
    this.startedAtMs = options.startedAtMs;
    this.journal = options.journal;
    this.#previous = options.previous;
    this.#text = options.base.text;
    this.#reasoning = options.base.reasoning;
  }

  /** Fires when the upstream call has to end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The text written so far. */
  get text(): string {
    return this.#text;
  }

  /** Number of the version that was active before. */
  get previousVariant(): number | null {
    return this.#previous?.active_variant ?? null;
  }

  /** How the reply ended. `undefined` while the model writes. */
  get end(): ReplyEnd | undefined {
    return "end" in this.#state ? this.#state.end : undefined;
  }

  /** The end that clients see. */
  get #shownEnd(): ReplyEnd | undefined {
    if (this.#state.phase === "unsaved") return this.#state.shownEnd;
    return this.#state.phase === "settled" ? this.#state.end : undefined;
  }

  get isSaved(): boolean {
    return this.#state.phase === "saved" || (this.#state.phase === "settled" && this.#state.isSaved);
  }

  overlay(stored: Message): Message {
    // A version that can't be saved yet doesn't hide the answer before it.
    if (this.#state.phase === "unsaved" && this.#previous !== undefined) {
      const { shownEnd: { status, error }, since } = this.#state;
      return { ...this.#previous, last_attempt: { status, error, created_at: since } };
    }
    // Until clients see the end, the reply counts as being written: nothing else may start in its conversation.
    const end = this.#shownEnd;
    return end === undefined ? { ...this.finalMessage(stored), status: "streaming" } : this.#messageWith(stored, end);
  }

  /** Returns the message as it will be stored. */
  finalMessage(stored: Message): Message {
    return this.#messageWith(stored, this.end);
  }

  async stop(): Promise<void> {
    this.abort("stopped");
    await this.#endShown.promise;
    if (this.#state.phase === "unsaved") throw this.#state.failure;
  }

  /** Ends the upstream call. Only the first reason counts. */
  abort(reason: AbortReason): void {
    if (this.end !== undefined) return;
    if (this.#state.phase === "writing") this.#state = { phase: "aborting", reason };
    this.#abort.abort();
  }

  /** Collects everything the model sends. Never throws: `end` says what happened. */
  async collect(batches: AsyncIterable<ChatEvent[]>): Promise<void> {
    try {
      for await (const events of batches) {
        if (this.#state.phase === "aborting") break;
        const batch = this.#toBatch(events);
        if (batch === undefined) continue;
        await this.journal.append(batch);
        // Only now: clients must not see text that a crash could take back.
        this.#add(batch);
      }
      this.#finish(this.#state.phase === "aborting" ? this.#abortedEnd(this.#state.reason) : this.#completedEnd());
    } catch (error) {
      this.fail(error);
    }
  }

  /** Ends the reply with an error, or with the abort that caused it. */
  fail(thrown: unknown): void {
    if (this.#state.phase === "aborting") return this.#finish(this.#abortedEnd(this.#state.reason));
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const message = thrown instanceof AppError ? thrown.message : "The reply failed because of a bug in the server";
    this.#finish({ status: "failed", finishReason: null, error: { code, message }, ...this.#measurements() });
    this.#abort.abort(); // If the error was ours, the model needn't go on.
  }

  /** Records that the message is on disk. */
  markSaved(): void {
    this.#state = { phase: "saved", end: this.end! };
  }

  /**
   * Records that the message can't be saved yet. Clients don't wait until the disk has space again: they see this error as
   * the end, until the message is saved.
   *
   * @param now ISO 8601, UTC.
   */
  markUnsaved(thrown: unknown, now: string): void {
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const reason = thrown instanceof AppError ? `: ${thrown.message}` : "";
    const failure = new AppError(code, `Can't save the reply yet. Its text is kept and will be saved later${reason}`);
    const end = this.end!;
    const shownEnd: ReplyEnd = { ...end, status: "failed", error: { code, message: failure.message } };
    const since = this.#state.phase === "unsaved" ? this.#state.since : now;
    this.#state = { phase: "unsaved", end, shownEnd, failure, since };
    this.#showEnd();
  }

  /**
   * Shows the end to clients. The message is saved by then, or its conversation is gone: after `[DONE]` a client may send
   * its next request at once. A reply that is still unsaved stays so.
   */
  markSettled(): void {
    if (this.#state.phase === "unsaved") return;
    this.#state = { phase: "settled", end: this.end!, isSaved: this.isSaved };
    this.#showEnd();
  }

  next(cursor: ReplyCursor): ReplyStep | Promise<ReplyStep> {
    const step = this.#stepAfter(cursor);
    if (step !== undefined) return step;
    return new Promise((resolve) => this.#waiting.push({ cursor, resolve }));
  }

  #messageWith(stored: Message, end: ReplyEnd | undefined): Message {
    const message: Message = { ...stored, content: this.#text, status: end?.status ?? "streaming" };
    if (this.model !== "") message.model = this.model;
    if (this.#reasoning !== "") message.reasoning = this.#reasoning;
    const { error, usage, timings, toolCalls, finishReason } = end ?? {};
    if (error !== undefined) message.error = error;
    if (usage !== undefined) message.usage = usage;
    if (timings !== undefined) message.timings = timings;
    if (toolCalls !== undefined) message.tool_calls = toolCalls;
    if (finishReason) message.finish_reason = finishReason;
    return message;
  }

  #stepAfter(cursor: ReplyCursor): ReplyStep | undefined {
    // After a power cut a client may have more text than there is.
    const isCurrent = cursor.textLength >= this.#text.length && cursor.reasoningLength >= this.#reasoning.length;
    const end = this.#shownEnd;
    if (isCurrent) return end && { end };
    const oldest = this.#recent[0]?.[0]?.seq ?? Infinity;
    if (cursor.seq + 1 >= oldest) {
      // Newest first: nearly every client waits for the last batch.
      for (let i = this.#recent.length - 1; i >= 0; i--) {
        const batch = this.#recent[i]!;
        if (batch[0]!.seq === cursor.seq + 1 && startsAt(batch[0]!, cursor)) return { batch };
        if (batch[0]!.seq <= cursor.seq) break;
      }
    }
    return { batch: restAfter(cursor, this.#text, this.#reasoning, this.#seq) };
  }

  /** Records everything but text, and returns the text as a batch for the journal and the clients. */
  #toBatch(events: ChatEvent[]): NewBatch | undefined {
    let [text, reasoning, seq] = ["", "", this.#seq];
    const replyEvents: ReplyEvent[] = [];
    for (const event of events) {
      switch (event.type) {
        case "text":
        case "reasoning":
          if (event.text === "") break;
          if (event.type === "text") text += event.text;
          else reasoning += event.text;
          replyEvents.push({
            type: event.type,
            delta: event.text,
            seq: ++seq,
            textLength: this.#text.length + text.length,
            reasoningLength: this.#reasoning.length + reasoning.length,
          });
          break;
        case "tool_calls":
          this.#toolCalls.add(event.delta);
          break;
        case "finish":
          this.#finishReason = event.reason;
          break;
        case "usage":
          this.#usage = event.usage;
          this.#timings = event.timings ?? this.#timings;
      }
    }
    return replyEvents.length === 0 ? undefined : { after: this.#seq, seq, text, reasoning, events: replyEvents };
  }

  #add({ seq, text, reasoning, events }: NewBatch): void {
    this.#text += text;
    this.#reasoning += reasoning;
    this.#seq = seq;
    this.#remember(events, text.length + reasoning.length);
    this.#wakeClients();
    if (this.#text.length + this.#reasoning.length > MAX_CHARS) {
      throw new AppError("upstream_error", `The model wrote more than ${MAX_CHARS} characters without stopping`);
    }
  }

  #remember(batch: ReplyBatch, chars: number): void {
    this.#recent.push(batch);
    this.#recentChars += chars + batch.length * EVENT_CHARS;
    while (this.#recentChars > MAX_RECENT_CHARS && this.#recent.length > 1) {
      const dropped = this.#recent.shift()!;
      this.#recentChars -= dropped.reduce((sum, event) => sum + event.delta.length + EVENT_CHARS, 0);
    }
  }

  #wakeClients(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const { cursor, resolve } of waiting) resolve(this.next(cursor));
  }

  #showEnd(): void {
    this.#wakeClients();
    this.#endShown.resolve();
  }

  #finish(end: ReplyEnd): void {
    if (this.end === undefined) this.#state = { phase: "ended", end };
  }

  #completedEnd(): ReplyEnd {
    if (this.#seq === 0 && this.#toolCalls.isEmpty) {
      return {
        status: "failed",
        finishReason: null,
        error: { code: "upstream_error", message: "The model returned an empty reply" },
        ...this.#measurements(),
      };
    }
    return { status: "complete", finishReason: this.#finishReason, ...this.#measurements() };
  }

  #abortedEnd(reason: AbortReason): ReplyEnd {
    if (reason === "stopped") return { status: "stopped", finishReason: "stop", ...this.#measurements() };
    return { status: "interrupted", finishReason: null, error: INTERRUPTED, ...this.#measurements() };
  }

  #measurements(): Pick<ReplyEnd, "usage" | "timings" | "toolCalls"> {
    return {
      usage: this.#usage,
      timings: this.#timings,
      toolCalls: this.#toolCalls.isEmpty ? undefined : this.#toolCalls.all(),
    };
  }
}

function startsAt(event: ReplyEvent, cursor: ReplyCursor): boolean {
  const textBefore = event.textLength - (event.type === "text" ? event.delta.length : 0);
  const reasoningBefore = event.reasoningLength - (event.type === "reasoning" ? event.delta.length : 0);
  return textBefore === cursor.textLength && reasoningBefore === cursor.reasoningLength;
}
