/** Reads the body of a reply into ChatEvents, one array per network read, and decides whether the reply is complete. */
import {
  type AcceptedResponse,
  createWebPageError,
  findFirstCharacter,
  isLines,
  parseResponse,
  type ReplyTranslator,
} from "./response_body.ts";
import type { ChatEvent } from "../chat_event.ts";
import { EventStreamParser, LineParser } from "./event_stream_parser.ts";
import type { ChatStream } from "../provider.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ModelCall } from "../model_call.ts";
import { joinBytes } from "../../storage/atomic_file.ts";

// One buffer per stream, reused: allocating one per read costs several times more.
const READ_BYTES = 64 * 1024;
/** Servers that are busy send white space for a while. Of more than this, only the end is read. */
const MAX_HELD_BYTES = 64 * 1024;

/** Maximum length of a reply in characters: far above any context, but low enough for memory. */
const MAX_REPLY_CHARS = 32 * 1024 * 1024;
// Number of bytes to read after [DONE], so that the connection can be reused.
const DRAIN_BYTES = 64 * 1024;
const DRAIN_MS = 1_000;

/** Creates the stream of an accepted response. */
export function readReply(accepted: AcceptedResponse, call: ModelCall, translator: ReplyTranslator): ChatStream {
  const isJson = "value" in accepted;
  const reader = new ReplyReader(call, translator);
  let isCancelled = false;
  const wasCancelled = () => isCancelled;
  return {
    batches: () =>
      isJson
        ? yieldValue(accepted.value, call, reader, wasCancelled)
        : yieldBatches(accepted.response, call, reader, wasCancelled),
    cancel: () => {
      isCancelled = true;
      call.timer.end();
    },
  };
}

async function* yieldValue(
  value: unknown,
  call: ModelCall,
  reader: ReplyReader,
  wasCancelled: () => boolean,
): AsyncGenerator<ChatEvent[]> {
  call.timer.end();
  if (wasCancelled()) return;
  const batch = reader.readValue(value);
  if (batch.length > 0) yield batch;
  if (reader.failure !== undefined) throw reader.failure;
}

async function* yieldBatches(
  response: Response,
  call: ModelCall,
  reader: ReplyReader,
  wasCancelled: () => boolean,
): AsyncGenerator<ChatEvent[]> {
  const body = response.body?.getReader({ mode: "byob" });
  let isDrained = false;
  try {
    let buffer = new ArrayBuffer(READ_BYTES);
    while (body !== undefined && !reader.hasEnded) {
      let batch: ChatEvent[] = [];
      call.timer.startReading();
      try {
        const { done, value } = await body.read(new Uint8Array(buffer));
        if (done) break;
        buffer = value.buffer;
        call.timer.markActive();
        batch = reader.push(value);
      } catch (thrown) {
        if (wasCancelled()) return;
        reader.interrupt(call.toError(thrown));
        break;
      }
      // The prompt may take longer than the pauses within a reply.
      if (batch.length > 0 && batch.every(({ type }) => type === "progress" || type === "kept")) call.timer.restart();
      if (batch.length > 0) yield batch;
      if (wasCancelled()) return;
      if (reader.hasFinished) call.timer.startEnding();
    }
    const rest = reader.end();
    if (rest.length > 0) yield rest;
    if (reader.failure !== undefined) throw reader.failure;
    call.timer.release();
    isDrained = body !== undefined;
    if (body !== undefined) drain(body, call);
  } finally {
    if (!isDrained) call.timer.end();
  }
}

/** Reads the rest after the end mark, so that the connection can be reused. */
function drain(body: ReadableStreamBYOBReader, call: ModelCall): void {
  const timer = setTimeout(() => call.timer.end(), DRAIN_MS);
  const work = async () => {
    for (let size = 0; size < DRAIN_BYTES;) {
      const { done, value } = await body.read(new Uint8Array(4096));
      if (done) return;
      size += value.length;
    }
    call.timer.end();
  };
  // The reply is complete, so errors of its connection don't matter.
  work().catch(() => {}).finally(() => clearTimeout(timer));
}

/** The state of a reply between two reads. */
class ReplyReader {
  readonly #call: ModelCall;
  readonly #translator: ReplyTranslator;
  readonly #parser: EventStreamParser | LineParser;
  #form: "unknown" | "events" | "json" = "unknown";
  #json: string[] = [];
  #jsonDecoder: TextDecoder | undefined;
  #out: ChatEvent[] = [];
  #chars = 0;
  #isEnding = false;
  /** Reads of white space before the form is known. */
  #held: Uint8Array = new Uint8Array();
  #hasContent: boolean;
  #finishReason: string | undefined;
  #interruption: unknown;

  /** True once the end mark or a failure was found. Nothing more is read. */
  hasEnded = false;
  /** The error to throw once everything before it has been yielded. */
  failure: unknown;

  constructor(call: ModelCall, translator: ReplyTranslator) {
    this.#call = call;
    this.#translator = translator;
    this.#hasContent = translator.isResumed === true;
    this.#parser = translator.hasLines
      ? new LineParser((line) => this.#onEvent(undefined, line))
      : new EventStreamParser(this.#onEvent);
  }

  /** True once the finish reason has arrived. */
  get hasFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  push(bytes: Uint8Array): ChatEvent[] {
    this.#out = [];
    try {
      if (this.#form === "unknown") {
        this.#detectForm(bytes);
        bytes = this.#hold(bytes);
      }
      if (this.#form === "json") this.#pushJson(bytes);
      else if (this.#form === "events") this.#parser.push(bytes);
    } catch (thrown) {
      this.#fail(thrown);
    }
    return this.#count(this.#out);
  }

  /** Translates a response that is one JSON value. */
  readValue(value: unknown): ChatEvent[] {
    this.#out = [];
    try {
      this.#translator.translateResponse(value, this.#out);
      this.hasEnded = true;
    } catch (thrown) {
      this.#fail(thrown);
    }
    return this.end(this.#out);
  }

  /** Records that a connection failure, a timeout or an abort ended the body. */
  interrupt(reason: unknown): void {
    this.#interruption = reason;
  }

  /** Handles the end of the body. Sets `failure` unless the reply is complete (docs/protocols/llm.md, "End of a stream"). */
  end(out: ChatEvent[] = []): ChatEvent[] {
    this.#out = out;
    if (!this.hasEnded) {
      this.#isEnding = true;
      try {
        if (this.#form === "json" && this.#interruption === undefined) this.#endJson();
        else if (this.#form === "events") this.#parser.end();
      } catch (thrown) {
        this.#fail(thrown);
      }
    }
    const batch = this.#count(this.#out);
    if (this.failure !== undefined) return batch;
    const isComplete = this.hasEnded || this.hasFinished;
    if (!isComplete) {
      this.failure = this.#interruption !== undefined ? this.#toInterruptionError() : this.#createUnfinishedError();
    } else if (!this.#hasContent && this.#finishReason === "content_filter") {
      this.failure = this.#call.createError("filtered", "returned nothing: the model's provider blocked this reply");
    } else if (!this.#hasContent && (this.#finishReason ?? "stop") === "stop") this.failure = this.#createEmptyError();
    return batch;
  }

  readonly #onEvent = (name: string | undefined, data: string): void => {
    if (this.hasEnded) return; // Ignores events after the end mark.
    try {
      if (this.#translator.translateEvent(name, data, this.#out)) this.hasEnded = true;
    } catch (thrown) {
      this.#fail(thrown);
    }
  };

  /** Holds reads until the form is known, and then returns them as one: where the network cuts must not matter. */
  #hold(bytes: Uint8Array): Uint8Array {
    if (this.#form !== "unknown" && this.#held.length === 0) return bytes;
    const all = joinBytes([this.#held, bytes]);
    this.#held = this.#form === "unknown" ? all.subarray(-MAX_HELD_BYTES) : new Uint8Array();
    return all;
  }

  #detectForm(bytes: Uint8Array): void {
    const first = findFirstCharacter(bytes);
    if (first === "") return;
    if (first === "{" || first === "[") this.#form = this.#translator.hasLines ? "events" : "json";
    else if (first === "<") throw createWebPageError(this.#call);
    else this.#form = "events";
  }

  #pushJson(bytes: Uint8Array): void {
    // A byte order mark inside the text must be preserved, even at the start of a read.
    this.#jsonDecoder ??= new TextDecoder("utf-8", { ignoreBOM: true });
    const text = this.#jsonDecoder.decode(bytes, { stream: true });
    this.#json.push(text);
    if ((this.#chars += text.length) > MAX_REPLY_CHARS) throw createTooLongError(this.#call);
  }

  #endJson(): void {
    this.#chars = 0;
    const text = this.#json.join("").replace(/^\ufeff/, "");
    if (isLines(text)) {
      for (const line of text.split("\n")) if (line.trim() !== "") this.#onEvent(undefined, line);
      return;
    }
    this.#translator.translateResponse(parseResponse(this.#call, text), this.#out);
    this.hasEnded = true;
  }

  #fail(thrown: unknown): void {
    this.hasEnded = true;
    if (thrown instanceof RangeError) {
      this.failure ??= this.#call.createError("bad_answer", `sent ${thrown.message}`);
    } else if (this.#isEnding && thrown instanceof SyntaxError) {
      this.hasEnded = false; // An incomplete event at the end of the body
    } else if (thrown instanceof SyntaxError) {
      this.failure ??= this.#call.createError("bad_answer", "sent an event that isn't JSON");
    } else this.failure ??= thrown;
  }

  #count(batch: ChatEvent[]): ChatEvent[] {
    for (const event of batch) {
      if (event.type === "text" || event.type === "reasoning") {
        this.#hasContent = true;
        this.#chars += event.text.length;
      } else if (event.type === "images") {
        this.#hasContent = true;
        for (const url of event.urls) this.#chars += url.length;
      } else if (event.type === "audio") {
        this.#hasContent ||= event.audio.data !== undefined;
        this.#chars += event.audio.data?.length ?? 0;
      } else if (event.type === "tool_calls") this.#hasContent = true;
      else if (event.type === "finish") this.#finishReason = event.reason;
    }
    if (this.#chars > MAX_REPLY_CHARS && this.failure === undefined) {
      this.failure = createTooLongError(this.#call);
      this.hasEnded = true;
    }
    return batch;
  }

  #toInterruptionError(): unknown {
    const thrown = this.#interruption;
    const isConnectionError = thrown instanceof UpstreamError &&
      !["timeout", "unreachable", "bad_answer"].includes(thrown.kind);
    return isConnectionError ? this.#createInterruptedError() : thrown;
  }

  /** Creates the error for a body that ended too early. Text outside of events explains why. */
  #createUnfinishedError(): UpstreamError {
    const text = this.#parser instanceof EventStreamParser ? this.#parser.strayText : "";
    return text === "" ? this.#createInterruptedError() : this.#call.createReportedError(text);
  }

  #createInterruptedError(): UpstreamError {
    return this.#call.createError("interrupted", "ended its reply without finishing");
  }

  #createEmptyError(): UpstreamError {
    return this.#call.createError("empty", "returned an empty reply. The conversation may be longer than its context.");
  }
}

function createTooLongError(call: ModelCall): UpstreamError {
  return call.createError("bad_answer", `returned more than ${MAX_REPLY_CHARS} characters`);
}
