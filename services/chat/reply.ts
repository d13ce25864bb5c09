/** One reply while it is being written: collects and journals what the model sends, and lets clients follow it. */
import type { LiveReply } from "../conversations/live_replies.ts";
import type { Message } from "../conversations/message.ts";
import { AppError } from "../errors.ts";
import type { ChatEvent, ChatNotice, Usage } from "../llm/chat_event.ts";
import type { SentFacts } from "../llm/provider.ts";
import { ReasoningDetails, type SplitAnswer, splitAtClosingTag } from "../llm/reasoning.ts";
import { type ToolCall, ToolCalls } from "../llm/streaming/completion.ts";
import type { JournalBatch, ReplyJournal } from "./journal/journal.ts";
import type { ToolRun } from "./tools/tool_run.ts";
import { ReplyCalls, type ToolCallJson } from "./tools/tool_messages.ts";
import {
  addStoredCalls,
  INTERRUPTED,
  nextCalls,
  nextText,
  type ReplyBatch,
  type ReplyCursor,
  type ReplyEnd,
  type ReplyEvent,
  type ReplySource,
  type ReplyStep,
} from "./replies.ts";

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
  /** Number of the version before, if the message itself isn't known anymore. */
  previousVariant?: number | null;
  /** Messages of the rounds before, if the reply continues after calls of tools. */
  rounds?: readonly Message[];
  journal: ReplyJournal;
}

/** What the model sent before it called tools. */
export interface WrittenRound {
  text: string;
  reasoning: string;
  isSplit: boolean;
  details?: Record<string, unknown>[];
  calls: ToolCall[];
  usage?: Usage;
  timings?: Record<string, unknown>;
  finishReason: string | null;
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
  /** The connection that answers. Absent until it is known. */
  connectionId: string | undefined;
  /** What the request was sent with. Absent until the model answers. */
  sent: SentFacts | undefined;
  readonly startedAtMs: number;
  readonly calls = new ReplyCalls();
  /** Runs the tools that the model calls. Absent for a reply without tools of Parlor. */
  tools: ToolRun | undefined;
  #journal: ReplyJournal;
  /** Number of the last event before the current journal. */
  #journalStart = 0;
  readonly #previous: Message | undefined;
  readonly #previousVariant: number | null;
  /** Text that the message had before this run. */
  #base: { text: string; reasoning: string };
  /** Messages of the rounds before the current one. */
  #rounds: readonly Message[];
  /** Lengths of their text, which clients have followed as one. */
  #start: { text: number; reasoning: number };
  readonly #abort = new AbortController();
  #state: ReplyState = { phase: "writing" };
  /** Resolves when clients first see an end. */
  readonly #endShown = Promise.withResolvers<void>();
  #text: string;
  #reasoning: string;
  /** The message in two parts, if it ended and only a closing tag separates them. */
  #split: SplitAnswer | undefined;
  #seq = 0;
  #recent: ReplyBatch[] = [];
  #recentChars = 0;
  #waiting: { cursor: ReplyCursor; resolve(step: ReplyStep | Promise<ReplyStep>): void }[] = [];
  #finishReason: string | null = null;
  #usage: Usage | undefined;
  #timings: Record<string, unknown> | undefined;
  #toolCalls = new ToolCalls();
  #details = new ReasoningDetails();
  /** What the model server does before it answers. Absent once it answers. */
  #notice: ChatNotice | undefined;
  #notices = 0;
  #isSuspended = false;

  constructor(options: ReplyOptions) {
    this.conversationId = options.conversationId;
    this.messageId = options.messageId;
    this.generation = options.generation;
    this.model = options.model ?? "";
    this.startedAtMs = options.startedAtMs;
    this.#journal = options.journal;
    this.#previous = options.previous;
    this.#previousVariant = options.previousVariant ?? null;
    this.#base = options.base;
    this.#rounds = options.rounds ?? [];
    const before = addStoredCalls(this.calls, this.#rounds);
    this.#start = { text: before.text.length, reasoning: before.reasoning.length };
    this.#text = before.text + options.base.text;
    this.#reasoning = before.reasoning + options.base.reasoning;
  }

  get journal(): ReplyJournal {
    return this.#journal;
  }

  /** Messages of the rounds before the current one. */
  get rounds(): readonly Message[] {
    return this.#rounds;
  }

  /** The position of a client that has all text and all calls. */
  get position(): ReplyCursor {
    const [textLength, reasoningLength] = [this.#text.length, this.#reasoning.length];
    return { seq: this.#seq, textLength, reasoningLength, calls: this.calls.changes };
  }

  /** Whether the reply was left to go on at the next start. */
  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** Fires when the upstream call has to end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The text written since the last calls of tools. At the end, without reasoning that only a closing tag set off. */
  get text(): string {
    return this.#split?.text ?? this.#text.slice(this.#start.text);
  }

  /** Number of the version that was active before. */
  get previousVariant(): number | null {
    return this.#previous?.active_variant ?? this.#previousVariant;
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
      const { tool_rounds: _, ...previous } = this.#previous;
      return { ...previous as Message, last_attempt: { status, error, created_at: since } };
    }
    // Until clients see the end, the reply counts as being written: nothing else may start in its conversation.
    const end = this.#shownEnd;
    return this.#messageWith(stored, end ?? this.end, end === undefined);
  }

  /** Returns the message as it will be stored, with its `tool_rounds`. */
  finalMessage(stored: Message): Message {
    const message = this.#messageWith(stored, this.end);
    delete message.tool_rounds;
    return this.#rounds.length === 0 ? message : { ...message, tool_rounds: [...this.#rounds] };
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

  /**
   * Collects everything the model sends. Never throws: `end` says what happened.
   *
   * @param options.runsTools Calls of tools don't end the reply.
   * @returns Whether the model called tools and the reply goes on with their results.
   */
  async collect(
    batches: AsyncIterable<ChatEvent[]>,
    { runsTools = false }: { runsTools?: boolean } = {},
  ): Promise<boolean> {
    try {
      for await (const events of batches) {
        if (this.#state.phase === "aborting") break;
        const batch = this.#toBatch(events);
        if (batch === undefined) continue;
        const { after, seq, ...texts } = batch;
        await this.#journal.append({ ...texts, after: after - this.#journalStart, seq: seq - this.#journalStart });
        // Only now: clients must not see text that a crash could take back.
        this.#add(batch);
      }
      if (this.#state.phase === "aborting") this.#finish(this.#abortedEnd(this.#state.reason));
      else if (runsTools && !this.#toolCalls.isEmpty) return true;
      else this.#finish(this.#completedEnd());
    } catch (error) {
      this.fail(error);
    }
    return false;
  }

  /** Returns what the model sent since the last calls of tools. */
  readRound(): WrittenRound {
    const [whole, thought] = [this.#text.slice(this.#start.text), this.#reasoning.slice(this.#start.reasoning)];
    const split = thought === this.#base.reasoning ? splitContinued(this.#base, whole) : undefined;
    return {
      text: split?.text ?? whole,
      reasoning: split?.reasoning ?? thought,
      isSplit: split !== undefined,
      details: this.#details.isEmpty ? undefined : this.#details.all(),
      calls: this.#toolCalls.all(),
      usage: this.#usage,
      timings: this.#timings,
      finishReason: this.#finishReason,
    };
  }

  /** Begins the next round. The one before is in `rounds` from here on. */
  beginRound(rounds: readonly Message[]): void {
    this.#rounds = rounds;
    this.#start = { text: this.#text.length, reasoning: this.#reasoning.length };
    this.#base = { text: "", reasoning: "" };
    this.#toolCalls = new ToolCalls();
    this.#details = new ReasoningDetails();
    [this.#usage, this.#timings, this.#finishReason] = [undefined, undefined, null];
  }

  /** Replaces the messages of the rounds, after a call has changed. */
  setRounds(rounds: readonly Message[]): void {
    this.#rounds = rounds;
  }

  /** Journals the text of the next round apart, so that what is stored already isn't recovered again. */
  useJournal(journal: ReplyJournal): void {
    this.#journal = journal;
    this.#journalStart = this.#seq;
  }

  /** Shows a call, or a change of one, to clients. */
  showCall(call: ToolCallJson): void {
    this.calls.set(call, this.position);
    this.#wakeClients();
  }

  /** Leaves the reply as it is stored, because the server stops. It goes on at the next start. */
  suspend(): void {
    const end: ReplyEnd = { status: "interrupted", finishReason: null, error: INTERRUPTED };
    this.#isSuspended = true;
    this.#state = { phase: "settled", end, isSaved: true };
    this.#abort.abort();
    this.#showEnd();
  }
  /** Tells clients what the model server does before it answers. */
  notify(notice: ChatNotice): void {
    this.#notice = notice;
    this.#notices++;
    this.#wakeClients();
  }

  /** Ends the reply with an error, or with the abort that caused it. */
  fail(thrown: unknown): void {
    if (this.#state.phase === "aborting") return this.#finish(this.#abortedEnd(this.#state.reason));
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const message = thrown instanceof AppError ? thrown.message : "The reply failed because of a bug in the server";
    const upstream = thrown instanceof AppError ? thrown.upstream : undefined;
    const error = { code, message, ...(upstream && { upstream }) };
    this.#finish({ status: "failed", finishReason: null, error, ...this.#measurements() });
    this.#abort.abort(); // If the error was ours, the model needn't go on.
  }

  /** Records that the message is on disk. Clients get it if it isn't what was streamed. */
  markSaved(message: Message): void {
    const end = this.end!;
    this.#state = { phase: "saved", end: this.#split === undefined ? end : { ...end, message } };
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

  #messageWith(stored: Message, end: ReplyEnd | undefined, isStreaming = end === undefined): Message {
    const { text, reasoning } = this.#split ??
      { text: this.#text.slice(this.#start.text), reasoning: this.#reasoning.slice(this.#start.reasoning) };
    const message: Message = { ...stored, content: text, status: isStreaming ? "streaming" : end!.status };
    if (this.model !== "") message.model = this.model;
    if (this.connectionId !== undefined) message.connection_id = this.connectionId;
    if (this.sent?.outputLimit !== undefined) message.output_limit = this.sent.outputLimit;
    if (this.sent !== undefined && this.sent.leftOut.length > 0) message.left_out = this.sent.leftOut;
    if (reasoning !== "") message.reasoning = reasoning;
    if (this.#split !== undefined) message.split_reasoning = true;
    const { error, usage, timings, toolCalls, finishReason } = end ?? {};
    if (error !== undefined) message.error = error;
    if (usage !== undefined) message.usage = usage;
    if (timings !== undefined) message.timings = timings;
    if (toolCalls !== undefined) message.tool_calls = toolCalls;
    // Servers want them back with the results of tools, and at no other time.
    if (toolCalls !== undefined && !this.#details.isEmpty) message.reasoning_details = this.#details.all();
    if (finishReason) message.finish_reason = finishReason;
    return message;
  }

  #stepAfter(cursor: ReplyCursor): ReplyStep | undefined {
    const calls = nextCalls(cursor, this.calls);
    if (calls !== undefined) return calls;
    // After a power cut a client may have more text than there is.
    const isCurrent = cursor.textLength >= this.#text.length && cursor.reasoningLength >= this.#reasoning.length;
    const end = this.#shownEnd;
    if (isCurrent && end !== undefined) return { end };
    if (isCurrent) {
      const isNew = this.#notice !== undefined && cursor.notices !== this.#notices;
      return isNew ? { notice: this.#notice!, after: { ...cursor, notices: this.#notices } } : undefined;
    }
    const oldest = this.#recent[0]?.[0]?.seq ?? Infinity;
    if (cursor.seq + 1 >= oldest) {
      // Newest first: nearly every client waits for the last batch.
      for (let i = this.#recent.length - 1; i >= 0; i--) {
        const batch = this.#recent[i]!;
        if (batch[0]!.seq === cursor.seq + 1 && startsAt(batch[0]!, cursor)) return { batch };
        if (batch[0]!.seq <= cursor.seq) break;
      }
    }
    return nextText(cursor, this.calls, { text: this.#text, reasoning: this.#reasoning }, this.#seq);
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
        case "reasoning_details":
          this.#details.add(event.details);
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
    this.#notice = undefined;
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
    if (this.end !== undefined) return;
    // The server's own reasoning has no tags.
    if (this.#reasoning.slice(this.#start.reasoning) === this.#base.reasoning) {
      this.#split = splitContinued(this.#base, this.#text.slice(this.#start.text));
    }
    this.#state = { phase: "ended", end };
  }

  #completedEnd(): ReplyEnd {
    if (this.#seq === this.#journalStart && this.#toolCalls.isEmpty) {
      return {
        status: "failed",
        finishReason: null,
        error: { code: "upstream_error", message: "The model returned an empty reply" },
        ...this.#measurements(),
      };
    }
    return { status: "complete", finishReason: this.#finishReason, ...this.#measurements(true) };
  }

  #abortedEnd(reason: AbortReason): ReplyEnd {
    if (reason === "stopped") return { status: "stopped", finishReason: "stop", ...this.#measurements() };
    return { status: "interrupted", finishReason: null, error: INTERRUPTED, ...this.#measurements() };
  }

  #measurements(isComplete = false): Pick<ReplyEnd, "usage" | "timings" | "toolCalls"> {
    // Nobody answers calls of Parlor's own tools after the end.
    const isDropped = this.tools !== undefined && !isComplete;
    return {
      usage: this.#usage,
      timings: this.#timings,
      toolCalls: this.#toolCalls.isEmpty || isDropped ? undefined : this.#toolCalls.all(),
    };
  }
}

/**
 * Splits the new part of an answer at a closing tag of reasoning.
 *
 * @param base The answer that is continued, empty for a new one.
 * @param text The whole text.
 */
export function splitContinued(base: { text: string; reasoning: string }, text: string): SplitAnswer | undefined {
  const added = text.slice(base.text.length);
  const split = splitAtClosingTag(added);
  if (split === undefined) return undefined;
  const separator = base.text === "" ? "" : /^\s*/.exec(added)![0];
  return { reasoning: base.reasoning + split.reasoning, text: base.text + separator + split.text };
}

function startsAt(event: ReplyEvent, cursor: ReplyCursor): boolean {
  const textBefore = event.textLength - (event.type === "text" ? event.delta.length : 0);
  const reasoningBefore = event.reasoningLength - (event.type === "reasoning" ? event.delta.length : 0);
  return textBefore === cursor.textLength && reasoningBefore === cursor.reasoningLength;
}
