/** A running reply: collects and journals the model's output, and lets clients follow it. */
import type { LiveReply } from "../conversations/live_replies.ts";
import type { Message, MessageContent, MessageError } from "../conversations/message.ts";
import { AppError } from "../errors.ts";
import { readField } from "../json/type_guards.ts";
import type { ChatEvent, ChatNotice, ContentPart, PromptProgress, Usage } from "../llm/chat_event.ts";
import type { SentFacts } from "../llm/provider.ts";
import { ReasoningDetails, splitAtClosingTag, type SplitReply } from "../llm/reasoning.ts";
import { SourceList } from "../llm/sources.ts";
import { Sound } from "../llm/streaming/sound.ts";
import { type ToolCall, ToolCalls } from "../llm/streaming/tool_calls.ts";
import { SUSPENDED } from "../llm/upstream_client.ts";
import type { JournalBatch, KeptStream, ReplyJournal, ReplyPlan } from "./journal/journal.ts";
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

/** Maximum length of text in batches, for clients that are slightly behind. Others get the rest as one batch. */
const MAX_RECENT_CHARS = 512 * 1024;
/** Length that an event adds to that limit besides its text. */
const EVENT_CHARS = 64;
/** Maximum number of pictures in a reply. */
const MAX_IMAGES = 16;
/** Maximum length of a reply. The model of a longer one is in an endless loop. */
const MAX_CHARS = 32 * 1024 * 1024;

interface NewBatch extends JournalBatch {
  events: ReplyEvent[];
}

/** Initial state of a reply. */
export interface ReplyOptions {
  conversationId: string;
  messageId: string;
  generation: string;
  /** `undefined` until the connection or its server selects one. */
  model: string | undefined;
  startedAtMs: number;
  /** Text and reasoning that the reply continues, if any. */
  base: { text: string; reasoning: string };
  /** The message before this run, if the reply continues or rewrites it. */
  previous?: Message;
  /** Number of the previous version, if the previous message is no longer available. */
  previousVariant?: number | null;
  /** Messages of earlier rounds, if the reply continues after tool calls. */
  rounds?: readonly Message[];
  /** What the reply had written before a restart, after `base`. */
  written?: JournalBatch;
  journal: ReplyJournal;
}

/** The model's output before it called tools. */
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

/** Stores what a model returns besides text. What can't be stored is left out; the text is saved nevertheless. */
export interface MediaStore {
  /** Stores the pictures in data URLs, and returns the parts of the message. */
  storeImages(parts: ContentPart[]): Promise<ContentPart[]>;
  /** Stores a sound, and returns its URL. */
  storeSound(bytes: Uint8Array): Promise<string | undefined>;
}

/** Why the call to the model was ended early. */
type AbortReason = "stopped" | "interrupted";

/** The state of a reply. Each state can only follow one listed above it. */
type ReplyState =
  | { phase: "writing" }
  | { phase: "aborting"; reason: AbortReason }
  /** The call to the model has ended. Clients still wait, because the message isn't saved. */
  | { phase: "ended"; end: ReplyEnd }
  /** Saving failed and is retried. Clients see `shownEnd`, so that they don't consider the reply complete. */
  | { phase: "unsaved"; end: ReplyEnd; shownEnd: ReplyEnd; failure: AppError; since: string }
  | { phase: "saved"; end: ReplyEnd }
  /** Clients see the end. `isSaved` is false if the message was deleted in the meantime. */
  | { phase: "settled"; end: ReplyEnd; isSaved: boolean };

/** A running reply. */
export class Reply implements LiveReply, ReplySource {
  readonly conversationId: string;
  readonly messageId: string;
  readonly generation: string;
  /** Empty until it's known. */
  model: string;
  /** ID of the connection that answers; `undefined` until it's known. */
  connectionId: string | undefined;
  /** Facts about the sent request; `undefined` until the model answers. */
  sent: SentFacts | undefined;
  readonly startedAtMs: number;
  readonly calls = new ReplyCalls();
  readonly #followers = new Set<object>();
  /** Runs the tools that the model calls; `undefined` for a reply without Parlor's tools. */
  tools: ToolRun | undefined;
  #journal: ReplyJournal;
  /** Number of the last event before the current journal. */
  #journalStart = 0;
  readonly #previous: Message | undefined;
  readonly #previousVariant: number | null;
  /** Text that the message had before this run. */
  #base: { text: string; reasoning: string };
  /** Messages of earlier rounds. */
  #rounds: readonly Message[];
  /** Lengths of their texts. Clients follow them and the current text as one. */
  #start: { text: number; reasoning: number };
  readonly #abort = new AbortController();
  #state: ReplyState = { phase: "writing" };
  /** Resolves when clients see an end for the first time. */
  readonly #endShown = Promise.withResolvers<void>();
  #text: string;
  #reasoning: string;
  /** Reasoning and text of the ended message, if only a closing tag separates them. */
  #split: SplitReply | undefined;
  #seq = 0;
  #recent: ReplyBatch[] = [];
  #recentChars = 0;
  #waiting: { cursor: ReplyCursor; resolve(step: ReplyStep | Promise<ReplyStep>): void }[] = [];
  #finishReason: string | null = null;
  #usage: Usage | undefined;
  #timings: Record<string, unknown> | undefined;
  #toolCalls = new ToolCalls();
  #details = new ReasoningDetails();
  /** Number of pictures that the model returned. */
  #images = 0;
  /** The stored pictures and sounds. */
  readonly #media: ContentPart[] = [];
  #sound = new Sound();
  #hasSound = false;
  readonly #sources = new SourceList();
  /** What the model server is doing before it answers; `undefined` once it answers. */
  #notice: ChatNotice | undefined;
  #notices = 0;
  /** How much of the prompt the server has read; `undefined` once it answers. */
  #progress: PromptProgress | undefined;
  #progressCount = 0;
  #isSuspended = false;
  #plan: ReplyPlan = {};
  /** Whether the model is being asked. Otherwise tools run. */
  #isAsking = false;

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
    if (options.written !== undefined) this.#resume(options.written);
  }

  /** Takes over what was written before a restart. */
  #resume({ text, reasoning, seq, media = [], plan }: JournalBatch): void {
    this.#text += text;
    this.#reasoning += reasoning;
    this.#seq = seq;
    this.#media.push(...media);
    this.#images = media.filter(({ type }) => type === "image_url").length;
    this.#hasSound = media.some(({ type }) => type === "audio");
    this.#plan = plan ?? {};
    this.#isAsking = true;
  }

  /** Writes what was written before a restart to the journal of this process. */
  async copyToJournal(): Promise<void> {
    await this.#journal.append(this.written);
  }

  /** The text and reasoning that this run continues, since the last tool calls. */
  get base(): { text: string; reasoning: string } {
    return this.#base;
  }

  /** What was written in this run since the last tool calls. */
  get written(): JournalBatch {
    return {
      after: 0,
      seq: this.#seq - this.#journalStart,
      text: this.#text.slice(this.#start.text + this.#base.text.length),
      reasoning: this.#reasoning.slice(this.#start.reasoning + this.#base.reasoning.length),
      media: [...this.#media],
      plan: this.#plan,
    };
  }

  /** What the reply needs to go on after a restart. */
  get plan(): ReplyPlan {
    return this.#plan;
  }

  /** Whether the reply can go on after a restart. False while tools run, and once it has ended or has to end. */
  get canGoOn(): boolean {
    const { request, stream, isRepeated } = this.#plan;
    if (this.#state.phase !== "writing" || !this.#isAsking) return false;
    return request !== undefined && (stream != null || isRepeated !== true);
  }

  /** Records what the reply needs to go on after a restart, before it's needed. */
  async savePlan(plan: ReplyPlan): Promise<void> {
    this.#plan = { ...this.#plan, ...plan };
    this.#isAsking = true;
    const at = this.#seq - this.#journalStart;
    await this.#journal.append({ after: at, seq: at, text: "", reasoning: "", plan });
  }

  get journal(): ReplyJournal {
    return this.#journal;
  }

  /** Messages of earlier rounds. */
  get rounds(): readonly Message[] {
    return this.#rounds;
  }

  /** The position of a client that has all text and all calls. */
  get position(): ReplyCursor {
    const [textLength, reasoningLength] = [this.#text.length, this.#reasoning.length];
    return { seq: this.#seq, textLength, reasoningLength, calls: this.calls.changes };
  }

  /** Whether the reply is suspended, to continue at the next start. */
  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** Fires when the call to the model has to end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The text since the last tool calls. After the end, it excludes reasoning that only a closing tag marked. */
  get text(): string {
    return this.#split?.text ?? this.#text.slice(this.#start.text);
  }

  /** Number of the version that was active before. */
  get previousVariant(): number | null {
    return this.#previous?.active_variant ?? this.#previousVariant;
  }

  /** How the reply ended; `undefined` while the model writes. */
  get end(): ReplyEnd | undefined {
    return "end" in this.#state ? this.#state.end : undefined;
  }

  /** Whether the model returned pictures or sound. They may not have been stored. */
  get #hasMedia(): boolean {
    return this.#images > 0 || this.#hasSound;
  }

  /** The end that clients see. */
  get #shownEnd(): ReplyEnd | undefined {
    if (this.#state.phase === "unsaved") return this.#state.shownEnd;
    return this.#state.phase === "settled" ? this.#state.end : undefined;
  }

  get isSaved(): boolean {
    return this.#state.phase === "saved" || (this.#state.phase === "settled" && this.#state.isSaved);
  }

  withLiveText(stored: Message): Message {
    // An unsaved version doesn't hide the previous text.
    if (this.#state.phase === "unsaved" && this.#previous !== undefined) {
      const { shownEnd: { status, error }, since } = this.#state;
      const { tool_rounds: _, ...previous } = this.#previous;
      return { ...previous as Message, last_attempt: { status, error, created_at: since } };
    }
    // Until clients see the end, the reply counts as running: no other may start in its conversation.
    const end = this.#shownEnd;
    return this.#createMessage(stored, end ?? this.end, end === undefined);
  }

  /** Returns the message as it will be stored, with its `tool_rounds`. */
  getFinalMessage(stored: Message): Message {
    const message = this.#createMessage(stored, this.end);
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
   * Collects the model's output. Never throws; failures are in `end`.
   *
   * @param options.media Stores pictures and sound as they arrive.
   * @param options.runsTools Tool calls don't end the reply.
   * @param options.notesPosition What follows an event of a kept stream can be read without the events before.
   * @returns Whether the model called tools, so that the reply continues with their results.
   */
  async collect(
    batches: AsyncIterable<ChatEvent[]>,
    { media, runsTools = false, notesPosition = false }: {
      media: MediaStore;
      runsTools?: boolean;
      notesPosition?: boolean;
    },
  ): Promise<boolean> {
    try {
      for await (const events of batches) {
        if (this.#state.phase === "aborting") break;
        await this.#storeImages(events, media);
        const batch = this.#toBatch(events, notesPosition);
        if (batch === undefined) {
          if (events.some(({ type }) => type === "progress")) this.#wakeClients();
          continue;
        }
        const { after, seq, events: replyEvents, ...texts } = batch;
        await this.#journal.append({ ...texts, after: after - this.#journalStart, seq: seq - this.#journalStart });
        // Only after that: clients must not see text that a crash could undo.
        if (replyEvents.length > 0) this.#add(batch);
      }
      await this.#storeSound(media);
      if (this.#state.phase === "aborting") this.#finish(this.#createAbortedEnd(this.#state.reason));
      else if (runsTools && !this.#toolCalls.isEmpty) return true;
      else this.#finish(this.#createCompletedEnd());
    } catch (error) {
      await this.#storeSound(media).catch(() => {}); // The first error is shown.
      this.fail(error);
    }
    return false;
  }

  /** Stores the pictures of a batch. */
  async #storeImages(events: readonly ChatEvent[], media: MediaStore): Promise<void> {
    const all = events.flatMap((event) => event.type === "images" ? event.urls : []);
    const urls = all.slice(0, MAX_IMAGES - this.#images);
    if (urls.length === 0) return;
    this.#images += urls.length;
    const parts = urls.map((url) => ({ type: "image_url", image_url: { url }, origin: "model" }));
    const stored = await media.storeImages(parts);
    // Pictures in unknown formats are dropped: a message is too small for them.
    await this.#addMedia(stored.filter((part) => !/^data:/i.test(String(readField(part.image_url, "url")))));
  }

  /** Stores the sound of one call to the model. A stopped one is kept up to there. */
  async #storeSound(media: MediaStore): Promise<void> {
    const sound = this.#sound;
    if (sound.isEmpty) return;
    this.#sound = new Sound();
    const url = await media.storeSound(sound.toBytes());
    if (url === undefined) return;
    const audio = { url, ...sound.reference, ...(this.connectionId && { connection_id: this.connectionId }) };
    await this.#addMedia([{ type: "audio", audio, origin: "model" }]);
  }

  async #addMedia(parts: readonly ContentPart[]): Promise<void> {
    if (parts.length === 0) return;
    const at = this.#seq - this.#journalStart;
    await this.#journal.append({ after: at, seq: at, text: "", reasoning: "", media: parts });
    this.#media.push(...parts);
  }

  /** Returns the model's output since the last tool calls. */
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

  /** Starts the next round. `rounds` includes the previous one from now on. */
  beginRound(rounds: readonly Message[]): void {
    this.#rounds = rounds;
    this.#start = { text: this.#text.length, reasoning: this.#reasoning.length };
    this.#base = { text: "", reasoning: "" };
    this.#isAsking = false;
    this.#toolCalls = new ToolCalls();
    this.#details = new ReasoningDetails();
    [this.#usage, this.#timings, this.#finishReason] = [undefined, undefined, null];
  }

  /** Replaces the messages of the rounds, after a call has changed. */
  setRounds(rounds: readonly Message[]): void {
    this.#rounds = rounds;
  }

  /**
   * Writes the text of the next round to another journal, so that recovery doesn't repeat text that is already stored.
   */
  useJournal(journal: ReplyJournal): void {
    this.#journal = journal;
    this.#journalStart = this.#seq;
    const { restarts, isRepeated } = this.#plan;
    this.#plan = { restarts, isRepeated };
    const media = [...this.#media];
    if (media.length === 0 && restarts === undefined && isRepeated === undefined) return;
    journal.append({ after: 0, seq: 0, text: "", reasoning: "", media, plan: this.#plan }).catch(() => {}); // The next batch reports it.
  }

  /** Shows a new or changed tool call to clients. */
  showCall(call: ToolCallJson): void {
    this.calls.set(call, this.position);
    this.#wakeClients();
  }

  /** Suspends the reply because the server is stopping, or because it goes on as another run. Clients connect again. */
  suspend(): void {
    const end: ReplyEnd = { status: "interrupted", finishReason: null, error: INTERRUPTED };
    this.#isSuspended = true;
    this.#state = { phase: "settled", end, isSaved: true };
    this.#abort.abort(SUSPENDED);
    this.#showEnd();
  }

  /** Whether the reply is looked for at its model server, after a restart. */
  get isReattaching(): boolean {
    return this.#notice?.code === "reattaching";
  }

  /** Tells clients what the model server is doing before it answers. Without a notice, nothing anymore. */
  notify(notice: ChatNotice | undefined): void {
    this.#notice = notice;
    this.#notices++;
    this.#wakeClients();
  }

  /** Ends the reply with an error, or with the abort that caused it. */
  fail(thrown: unknown): void {
    if (this.#state.phase === "aborting") return this.#finish(this.#createAbortedEnd(this.#state.reason));
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const message = thrown instanceof AppError ? thrown.message : "The reply failed because of a bug in the server";
    const upstream = thrown instanceof AppError ? thrown.upstream : undefined;
    const error = { code, message, ...(upstream && { upstream }) } satisfies MessageError;
    this.#finish({ status: "failed", finishReason: null, error, ...this.#getMeasurements() });
    this.#abort.abort(); // If the error is Parlor's own, the model must stop, too.
  }

  /** Records that the message was saved. Clients get it if it differs from what was streamed. */
  markSaved(message: Message): void {
    const end = this.end!;
    const isStreamed = this.#split === undefined && this.#media.length === 0 && message.sources === undefined;
    this.#state = { phase: "saved", end: isStreamed ? end : { ...end, message } };
  }

  /**
   * Records that saving the message failed. Until it's saved, clients see this error as the end, so that they don't
   * wait for space on the disk.
   *
   * @param now ISO 8601, UTC.
   */
  markUnsaved(thrown: unknown, now: string): void {
    const code = thrown instanceof AppError ? thrown.code : "internal";
    const reason = thrown instanceof AppError ? `: ${thrown.message}` : "";
    const failure = new AppError(code, `Can't save the reply yet. Its text is safe and will be saved later${reason}`);
    const end = this.end!;
    const shownEnd: ReplyEnd = { ...end, status: "failed", error: { code, message: failure.message } };
    const since = this.#state.phase === "unsaved" ? this.#state.since : now;
    this.#state = { phase: "unsaved", end, shownEnd, failure, since };
    this.#showEnd();
  }

  /**
   * Shows the end to clients. By then the message is saved or its conversation was deleted, because a client may send
   * its next request right after `[DONE]`. An unsaved reply remains unsaved.
   */
  markSettled(): void {
    if (this.#state.phase === "unsaved") return;
    this.#state = { phase: "settled", end: this.end!, isSaved: this.isSaved };
    this.#showEnd();
  }

  /** Whether a client follows the reply. */
  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  follow(): () => void {
    const follower = {};
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  next(cursor: ReplyCursor): ReplyStep | Promise<ReplyStep> {
    const step = this.#findStep(cursor);
    if (step !== undefined) return step;
    return new Promise((resolve) => this.#waiting.push({ cursor, resolve }));
  }

  #createMessage(stored: Message, end: ReplyEnd | undefined, isStreaming = end === undefined): Message {
    const { text, reasoning } = this.#split ??
      { text: this.#text.slice(this.#start.text), reasoning: this.#reasoning.slice(this.#start.reasoning) };
    const content = withMedia(text, [...findMedia(stored.content), ...this.#media]);
    const message: Message = { ...stored, content, status: isStreaming ? "streaming" : end!.status };
    if (this.model !== "") message.model = this.model;
    if (this.connectionId !== undefined) message.connection_id = this.connectionId;
    if (this.sent?.outputLimit !== undefined) message.output_limit = this.sent.outputLimit;
    if (this.sent !== undefined && this.sent.leftOut.length > 0) message.left_out = this.sent.leftOut;
    if (reasoning !== "") message.reasoning = reasoning;
    if (this.#split !== undefined) message.split_reasoning = true;
    const { error, usage, timings, toolCalls, finishReason } = end ?? {};
    const sources = this.#sources.all();
    if (sources.length > 0) message.sources = sources;
    if (error !== undefined) message.error = error;
    if (usage !== undefined) message.usage = usage;
    if (timings !== undefined) message.timings = timings;
    if (toolCalls !== undefined) message.tool_calls = toolCalls;
    // Servers require the details together with tool results, and at no other time.
    if (toolCalls !== undefined && !this.#details.isEmpty) message.reasoning_details = this.#details.all();
    if (finishReason) message.finish_reason = finishReason;
    return message;
  }

  #findStep(cursor: ReplyCursor): ReplyStep | undefined {
    const calls = nextCalls(cursor, this.calls);
    if (calls !== undefined) return calls;
    // After a power failure, a client may have more text than the server.
    const isCurrent = cursor.textLength >= this.#text.length && cursor.reasoningLength >= this.#reasoning.length;
    const end = this.#shownEnd;
    if (isCurrent && end !== undefined) return this.#isSuspended ? { suspended: end } : { end };
    if (isCurrent) {
      if (this.#notice !== undefined && cursor.notices !== this.#notices) {
        return { notice: this.#notice, after: { ...cursor, notices: this.#notices } };
      }
      const hasProgress = this.#progress !== undefined && cursor.progress !== this.#progressCount;
      return hasProgress
        ? { progress: this.#progress!, after: { ...cursor, progress: this.#progressCount } }
        : undefined;
    }
    const oldest = this.#recent[0]?.[0]?.seq ?? Infinity;
    if (cursor.seq + 1 >= oldest) {
      // Newest first: almost every client waits for the last batch.
      for (let i = this.#recent.length - 1; i >= 0; i--) {
        const batch = this.#recent[i]!;
        if (batch[0]!.seq === cursor.seq + 1 && startsAt(batch[0]!, cursor)) return { batch };
        if (batch[0]!.seq <= cursor.seq) break;
      }
    }
    return nextText(cursor, this.calls, { text: this.#text, reasoning: this.#reasoning }, this.#seq);
  }

  /** Records everything except text, and returns the text as a batch for the journal and the clients. */
  #toBatch(events: ChatEvent[], notesPosition: boolean): NewBatch | undefined {
    let plan: ReplyPlan | undefined;
    let isNewlyKept = false;
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
        case "audio":
          this.#sound.add(event.audio);
          this.#hasSound ||= event.audio.data !== undefined;
          break;
        case "sources":
          this.#sources.add(event.sources);
          break;
        case "progress":
          this.#progress = event.progress;
          this.#progressCount++;
          break;
        case "kept":
          isNewlyKept = this.#plan.stream?.id !== event.id;
          if (isNewlyKept || notesPosition) plan = { stream: this.#toKeptStream(event, notesPosition) };
          break;
        case "finish":
          this.#finishReason = event.reason;
          break;
        case "usage":
          this.#usage = event.usage;
          this.#timings = event.timings ?? this.#timings;
      }
    }
    // A position without text is written with the next text.
    if (replyEvents.length === 0 && !isNewlyKept) return undefined;
    const { stream } = this.#plan;
    // The server no longer numbers its events.
    if (plan === undefined && stream?.after !== undefined) plan = { stream: { ...stream, after: undefined } };
    this.#plan = { ...this.#plan, ...plan };
    return { after: this.#seq, seq, text, reasoning, events: replyEvents, ...(plan && { plan }) };
  }

  #toKeptStream({ id, after }: { id: string; after: number }, notesPosition: boolean): KeptStream {
    return { id, connectionId: this.connectionId!, model: this.model, ...(notesPosition && { after }) };
  }

  #add({ seq, text, reasoning, events }: NewBatch): void {
    this.#text += text;
    this.#reasoning += reasoning;
    this.#seq = seq;
    this.#notice = undefined;
    this.#progress = undefined;
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
    // Reasoning that the server separated has no tags.
    if (this.#reasoning.slice(this.#start.reasoning) === this.#base.reasoning) {
      this.#split = splitContinued(this.#base, this.#text.slice(this.#start.text));
    }
    this.#split = this.#toAnswer(end) ?? this.#split;
    this.#state = { phase: "ended", end };
  }

  /**
   * Returns the reasoning as the answer if the model stopped without any: it, or its server, didn't mark the end of the
   * reasoning.
   */
  #toAnswer({ status, finishReason, toolCalls }: ReplyEnd): SplitReply | undefined {
    const hasOther = toolCalls !== undefined || this.#hasMedia;
    if (status !== "complete" || finishReason !== "stop" || hasOther) return undefined;
    const { text, reasoning } = this.#split ??
      { text: this.#text.slice(this.#start.text), reasoning: this.#reasoning.slice(this.#start.reasoning) };
    const answer = reasoning.slice(this.#base.reasoning.length).trim();
    if (text.trim() !== this.#base.text.trim() || answer === "") return undefined;
    return { reasoning: this.#base.reasoning, text: this.#base.text + answer };
  }

  #createCompletedEnd(): ReplyEnd {
    if (this.#seq === this.#journalStart && this.#toolCalls.isEmpty && !this.#hasMedia) {
      return {
        status: "failed",
        finishReason: null,
        error: { code: "upstream_error", message: "The model returned an empty reply" },
        ...this.#getMeasurements(),
      };
    }
    return { status: "complete", finishReason: this.#finishReason, ...this.#getMeasurements(true) };
  }

  #createAbortedEnd(reason: AbortReason): ReplyEnd {
    if (reason === "stopped") return { status: "stopped", finishReason: "stop", ...this.#getMeasurements() };
    return { status: "interrupted", finishReason: null, error: INTERRUPTED, ...this.#getMeasurements() };
  }

  #getMeasurements(isComplete = false): Pick<ReplyEnd, "usage" | "timings" | "toolCalls"> {
    // After the end, nothing handles calls of Parlor's tools.
    const isDropped = this.tools !== undefined && !isComplete;
    return {
      usage: this.#usage,
      timings: this.#timings,
      toolCalls: this.#toolCalls.isEmpty || isDropped ? undefined : this.#toolCalls.all(),
    };
  }
}

/** Returns the pictures and sounds that a message has. */
export function findMedia(content: MessageContent): ContentPart[] {
  return Array.isArray(content) ? content.filter(({ type }) => type === "image_url" || type === "audio") : [];
}

/** Creates the content of a message. */
export function withMedia(text: string, media: readonly ContentPart[]): MessageContent {
  if (media.length === 0) return text;
  return [...(text === "" ? [] : [{ type: "text", text }]), ...media];
}

/**
 * Splits the new part of a reply at the closing tag of its reasoning.
 *
 * @param base The text and reasoning to continue; empty for a new reply.
 * @param text The whole text.
 */
export function splitContinued(base: { text: string; reasoning: string }, text: string): SplitReply | undefined {
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
