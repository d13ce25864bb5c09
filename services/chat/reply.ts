/**
 * One reply while it is being written: gathers what the model sends, journals it, and lets any number of clients follow
 * from any place. How a reply comes about and where it ends up is chat.ts.
 */
import { AppError } from "../errors.ts";
import type { ChatEvent, Usage } from "../llm/chat_event.ts";
import { ToolCalls } from "../llm/tool_calls.ts";
import type { JournalBatch, ReplyJournal } from "./journal/journal.ts";
import type { LiveReply } from "../conversations/live_replies.ts";
import type { Message } from "../conversations/message.ts";
import {
  type ReplyBatch,
  type ReplyEnd,
  type ReplyEvent,
  type ReplyPlace,
  type ReplySource,
  type ReplyStep,
  restFrom,
} from "./reply_source.ts";
import { INTERRUPTED } from "./stored_reply.ts";

/** Text kept in steps for followers that lag a little; one further behind gets the rest in one step. */
const RECENT_CHARS = 512 * 1024;
/** A step's share of that beyond its text. */
const STEP_CHARS = 64;
/** A reply beyond this is no reply any more. */
const MAX_CHARS = 32 * 1024 * 1024;

interface NewBatch extends JournalBatch {
  steps: ReplyEvent[];
}

/** What a running reply is made of. */
export interface ReplyParts {
  conversationId: string;
  messageId: string;
  generation: string;
  /** Absent until the connection or its server has named one. */
  model: string | undefined;
  startedAtMs: number;
  /** Text and reasoning that were there before: a reply that continues. */
  base: { text: string; reasoning: string };
  /** The message before, where its text is written again or continued. */
  previous?: Message;
  journal: ReplyJournal;
}

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
  #abort = new AbortController();
  #why: "stopped" | "interrupted" | undefined;
  #text: string;
  #reasoning: string;
  #seq = 0;
  #recent: ReplyBatch[] = [];
  #recentChars = 0;
  #waiting: { place: ReplyPlace; resolve(step: ReplyStep | Promise<ReplyStep>): void }[] = [];
  #end: ReplyEnd | undefined;
  /** The end as followers hear it: another one while the reply cannot be saved. */
  #toldEnd: ReplyEnd | undefined;
  /** Why it cannot be saved. */
  #unsaved: AppError | undefined;
  /** ISO 8601, UTC. */
  #unsavedSince: string | undefined;
  #isSaved = false;
  #told = Promise.withResolvers<void>();
  #finishReason: string | null = null;
  #usage: Usage | undefined;
  #timings: Record<string, unknown> | undefined;
  readonly #toolCalls = new ToolCalls();

  constructor(parts: ReplyParts) {
    this.conversationId = parts.conversationId;
    this.messageId = parts.messageId;
    this.generation = parts.generation;
    this.model = parts.model ?? "";
    this.startedAtMs = parts.startedAtMs;
    this.journal = parts.journal;
    this.#previous = parts.previous;
    this.#text = parts.base.text;
    this.#reasoning = parts.base.reasoning;
  }

  /** Fires when the upstream call has to end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isSaved(): boolean {
    return this.#isSaved;
  }

  /** Number of the version that was active before. */
  get previousVariant(): number | null {
    return this.#previous?.active_variant ?? null;
  }

  /** What has been written so far. */
  get text(): string {
    return this.#text;
  }

  get end(): ReplyEnd | undefined {
    return this.#end;
  }

  overlay(stored: Message): Message {
    // A version that can't be saved yet doesn't hide the answer before it.
    if (this.#previous !== undefined && this.#unsavedSince !== undefined && this.#toldEnd !== undefined) {
      const { status, error } = this.#toldEnd;
      return { ...this.#previous, last_attempt: { status, error, created_at: this.#unsavedSince } };
    }
    // Until its end is told, a reply is still being written: nothing else may begin in its conversation.
    return this.#toldEnd === undefined
      ? { ...this.finalMessage(stored), status: "streaming" }
      : this.#messageWith(stored, this.#toldEnd);
  }

  /** The message as it will be stored. */
  finalMessage(stored: Message): Message {
    return this.#messageWith(stored, this.#end);
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

  async stop(): Promise<void> {
    this.abort("stopped");
    await this.#told.promise;
    if (this.#unsaved !== undefined) throw this.#unsaved;
  }

  /** Ends the upstream call; the first reason given stands. */
  abort(why: "stopped" | "interrupted"): void {
    if (this.#end !== undefined) return;
    this.#why ??= why;
    this.#abort.abort();
  }

  /** Takes everything the model sends, until it ends in whatever way. Never throws: the end says what happened. */
  async gather(batches: AsyncIterable<ChatEvent[]>): Promise<void> {
    try {
      for await (const events of batches) {
        if (this.#why !== undefined) break;
        const batch = this.#batchOf(events);
        if (batch === undefined) continue;
        await this.journal.append(batch);
        // Only now is it part of the reply: whoever asked meanwhile was not to see what a crash could take back.
        this.#add(batch);
      }
      this.#finish(this.#why === undefined ? this.#completed() : this.#aborted());
    } catch (error) {
      this.fail(error);
    }
  }

  /** Ends the reply by an error, or by the abort that caused it. */
  fail(thrown: unknown): void {
    if (this.#why !== undefined) return this.#finish(this.#aborted());
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const message = thrown instanceof AppError ? thrown.message : "The reply ended by a defect of the server";
    this.#finish({ status: "failed", finishReason: null, error: { code, message }, ...this.#measured() });
    this.#abort.abort(); // Where our own side failed, the model need not go on.
  }

  /** Says that the message is on disk as it ended. */
  markSaved(): void {
    this.#isSaved = true;
    this.#unsaved = undefined;
  }

  /**
   * Says that the message cannot be saved for now. Nobody shall wait until a full disk is cleared, and nobody shall take the
   * reply for whole: followers hear it end by this error, and again until it is saved.
   *
   * @param now ISO 8601, UTC.
   */
  tellUnsaved(thrown: unknown, now: string): void {
    this.#unsavedSince ??= now;
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const reason = thrown instanceof AppError ? `: ${thrown.message}` : "";
    this.#unsaved = new AppError(
      code,
      `Cannot save the reply yet; its text is kept and saved once that works${reason}`,
    );
    this.#tell({ ...this.#end!, status: "failed", error: { code, message: this.#unsaved.message } });
  }

  /**
   * Says that the message is settled, or will not be, and lets followers hear of the end. They do so only once it is
   * saved: after `[DONE]` a client may at once ask for more.
   */
  markSettled(): void {
    if (this.#unsaved === undefined) this.#tell(this.#end);
  }

  #tell(end: ReplyEnd | undefined): void {
    this.#toldEnd = end;
    this.#wake();
    this.#told.resolve();
  }

  next(place: ReplyPlace): ReplyStep | Promise<ReplyStep> {
    const step = this.#stepFrom(place);
    if (step !== undefined) return step;
    return new Promise((resolve) => this.#waiting.push({ place, resolve }));
  }

  #stepFrom(place: ReplyPlace): ReplyStep | undefined {
    // A power cut may have cost the last second: a follower from before it has more than there is.
    const isCurrent = place.textLength >= this.#text.length && place.reasoningLength >= this.#reasoning.length;
    if (isCurrent) return this.#toldEnd && { end: this.#toldEnd };
    const oldest = this.#recent[0]?.[0]?.seq ?? Infinity;
    if (place.seq + 1 >= oldest) {
      // Newest first: nearly every follower waits for the last batch.
      for (let i = this.#recent.length - 1; i >= 0; i--) {
        const batch = this.#recent[i]!;
        if (batch[0]!.seq === place.seq + 1 && startsAt(batch[0]!, place)) return { batch };
        if (batch[0]!.seq <= place.seq) break;
      }
    }
    return { batch: restFrom(place, this.#text, this.#reasoning, this.#seq) };
  }

  /** Notes what came, and gives its texts as they are to be journalled and added. */
  #batchOf(events: ChatEvent[]): NewBatch | undefined {
    let [text, reasoning, seq] = ["", "", this.#seq];
    const steps: ReplyEvent[] = [];
    for (const event of events) {
      switch (event.type) {
        case "text":
        case "reasoning":
          if (event.text === "") break;
          if (event.type === "text") text += event.text;
          else reasoning += event.text;
          steps.push({
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
    return steps.length === 0 ? undefined : { after: this.#seq, seq, text, reasoning, steps };
  }

  #add({ seq, text, reasoning, steps }: NewBatch): void {
    this.#text += text;
    this.#reasoning += reasoning;
    this.#seq = seq;
    this.#remember(steps, text.length + reasoning.length);
    this.#wake();
    if (this.#text.length + this.#reasoning.length > MAX_CHARS) {
      throw new AppError("upstream_error", `The model wrote more than ${MAX_CHARS} characters without an end`);
    }
  }

  #remember(batch: ReplyBatch, chars: number): void {
    this.#recent.push(batch);
    this.#recentChars += chars + batch.length * STEP_CHARS;
    while (this.#recentChars > RECENT_CHARS && this.#recent.length > 1) {
      const dropped = this.#recent.shift()!;
      this.#recentChars -= dropped.reduce((sum, event) => sum + event.delta.length + STEP_CHARS, 0);
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const { place, resolve } of waiting) resolve(this.next(place));
  }

  #completed(): ReplyEnd {
    if (this.#seq === 0 && this.#toolCalls.isEmpty) {
      return {
        status: "failed",
        finishReason: null,
        error: { code: "upstream_error", message: "The model gave an empty answer" },
        ...this.#measured(),
      };
    }
    return { status: "complete", finishReason: this.#finishReason, ...this.#measured() };
  }

  #aborted(): ReplyEnd {
    if (this.#why === "stopped") return { status: "stopped", finishReason: "stop", ...this.#measured() };
    return { status: "interrupted", finishReason: null, error: INTERRUPTED, ...this.#measured() };
  }

  #measured(): Pick<ReplyEnd, "usage" | "timings" | "toolCalls"> {
    return {
      usage: this.#usage,
      timings: this.#timings,
      toolCalls: this.#toolCalls.isEmpty ? undefined : this.#toolCalls.all(),
    };
  }

  #finish(end: ReplyEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
  }
}

function startsAt(event: ReplyEvent, place: ReplyPlace): boolean {
  const textBefore = event.textLength - (event.type === "text" ? event.delta.length : 0);
  const reasoningBefore = event.reasoningLength - (event.type === "reasoning" ? event.delta.length : 0);
  return textBefore === place.textLength && reasoningBefore === place.reasoningLength;
}
