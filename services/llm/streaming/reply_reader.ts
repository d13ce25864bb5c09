/** Reads the body of an answer into ChatEvents, one array per network read, until its end of whatever kind. */
import { type Accepted, parseAnswer, type ReplyTranslator, webPage } from "./response_body.ts";
import type { ChatEvent } from "../chat_event.ts";
import { EventStreamParser } from "./event_stream_parser.ts";
import type { ChatStream } from "../provider.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { UpstreamCall } from "../model_call.ts";

// One reused buffer per stream: a new one per read costs several times more.
const READ_BYTES = 64 * 1024;
/** Characters one answer may have; far above any context, low enough for memory. */
const MAX_ANSWER_CHARS = 32 * 1024 * 1024;
// What may follow [DONE] before the body ends: reading it lets the connection be used again.
const DRAIN_BYTES = 64 * 1024;
const DRAIN_MS = 1_000;

/** Makes the stream of an accepted answer. */
export function readReply(accepted: Accepted, call: UpstreamCall, translator: ReplyTranslator): ChatStream {
  const isWhole = "value" in accepted;
  const reader = new ReplyReader(
    call,
    translator,
    isWhole ? "" : accepted.response.headers.get("content-type") ?? "",
  );
  let isCancelled = false;
  const wasCancelled = () => isCancelled;
  return {
    batches: () =>
      isWhole
        ? wholeBatch(accepted.value, call, reader, wasCancelled)
        : batches(accepted.response, call, reader, wasCancelled),
    cancel: () => {
      isCancelled = true;
      call.watch.end();
    },
  };
}

async function* wholeBatch(
  value: unknown,
  call: UpstreamCall,
  reader: ReplyReader,
  wasCancelled: () => boolean,
): AsyncGenerator<ChatEvent[]> {
  call.watch.end();
  if (wasCancelled()) return;
  const batch = reader.takeWhole(value);
  if (batch.length > 0) yield batch;
  if (reader.failure !== undefined) throw reader.failure;
}

async function* batches(
  response: Response,
  call: UpstreamCall,
  reader: ReplyReader,
  wasCancelled: () => boolean,
): AsyncGenerator<ChatEvent[]> {
  const body = response.body?.getReader({ mode: "byob" });
  let isDrained = false;
  try {
    let buffer = new ArrayBuffer(READ_BYTES);
    while (body !== undefined && !reader.hasEnded) {
      let batch: ChatEvent[] = [];
      call.watch.waiting();
      try {
        const { done, value } = await body.read(new Uint8Array(buffer));
        if (done) break;
        buffer = value.buffer;
        call.watch.arrived();
        batch = reader.push(value);
      } catch (thrown) {
        if (wasCancelled()) return;
        reader.cut(call.translate(thrown));
        break;
      }
      if (batch.length > 0) yield batch;
      if (wasCancelled()) return;
      if (reader.hasFinished) call.watch.ending();
    }
    const rest = reader.end();
    if (rest.length > 0) yield rest;
    if (reader.failure !== undefined) throw reader.failure;
    call.watch.release();
    isDrained = body !== undefined;
    if (body !== undefined) drain(body, call);
  } finally {
    if (!isDrained) call.watch.end();
  }
}

/** Reads the little that follows the end mark, so that the connection can serve the next call. */
function drain(body: ReadableStreamBYOBReader, call: UpstreamCall): void {
  const timer = setTimeout(() => call.watch.end(), DRAIN_MS);
  const work = async () => {
    for (let size = 0; size < DRAIN_BYTES;) {
      const { done, value } = await body.read(new Uint8Array(4096));
      if (done) return;
      size += value.length;
    }
    call.watch.end();
  };
  // The answer is complete; how its connection ends concerns nobody.
  work().catch(() => {}).finally(() => clearTimeout(timer));
}

/** The state between two reads. */
class ReplyReader {
  readonly #call: UpstreamCall;
  readonly #translator: ReplyTranslator;
  readonly #parser: EventStreamParser;
  #form: "unknown" | "events" | "json";
  #json: string[] = [];
  #jsonDecoder: TextDecoder | undefined;
  #out: ChatEvent[] = [];
  #chars = 0;
  #isEnding = false;
  #hasContent = false;
  #finishReason: string | undefined;
  #cutBy: unknown;

  /** True when the end mark has come or a failure was found: nothing more is read. */
  hasEnded = false;
  /** What to throw once everything before it has been given out. */
  failure: unknown;

  constructor(call: UpstreamCall, translator: ReplyTranslator, contentType: string) {
    this.#call = call;
    this.#translator = translator;
    this.#form = /\bjson\b/i.test(contentType) ? "json" : "unknown";
    this.#parser = new EventStreamParser(this.#onEvent);
  }

  /** True once the finish reason has come. */
  get hasFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  push(bytes: Uint8Array): ChatEvent[] {
    this.#out = [];
    try {
      if (this.#form === "unknown") this.#findForm(bytes);
      if (this.#form === "json") this.#pushJson(bytes);
      else if (this.#form === "events") this.#parser.push(bytes);
    } catch (thrown) {
      this.#fail(thrown);
    }
    return this.#account(this.#out);
  }

  /** Takes an answer that is one value already. */
  takeWhole(value: unknown): ChatEvent[] {
    this.#out = [];
    try {
      this.#translator.whole(value, this.#out);
      this.hasEnded = true;
    } catch (thrown) {
      this.#fail(thrown);
    }
    return this.end(this.#out);
  }

  /** Notes that the body ended by a failure of the connection, a limit or an abort. */
  cut(reason: unknown): void {
    this.#cutBy = reason;
  }

  /** Decides how the stream ended (docs/protocols/llm.md#end-of-a-stream); sets `failure` unless it's complete. */
  end(out: ChatEvent[] = []): ChatEvent[] {
    this.#out = out;
    if (!this.hasEnded) {
      this.#isEnding = true;
      try {
        if (this.#form === "json" && this.#cutBy === undefined) this.#endJson();
        else if (this.#form === "events") this.#parser.end();
      } catch (thrown) {
        this.#fail(thrown);
      }
    }
    const batch = this.#account(this.#out);
    if (this.failure !== undefined) return batch;
    const isComplete = this.hasEnded || this.hasFinished;
    if (!isComplete) this.failure = this.#cutBy !== undefined ? this.#cutFailure() : this.#interrupted();
    else if (!this.#hasContent && (this.#finishReason ?? "stop") === "stop") this.failure = this.#empty();
    return batch;
  }

  readonly #onEvent = (name: string | undefined, data: string): void => {
    if (this.hasEnded) return; // nothing after the end mark counts
    try {
      if (this.#translator.event(name, data, this.#out)) this.hasEnded = true;
    } catch (thrown) {
      this.#fail(thrown);
    }
  };

  #findForm(bytes: Uint8Array): void {
    const first = bytes.find((byte) => byte > 0x20);
    if (first === undefined) return;
    if (first === 0x7b /* { */ || first === 0x5b /* [ */) this.#form = "json";
    else if (first === 0x3c /* < */) throw webPage(this.#call);
    else this.#form = "events";
  }

  #pushJson(bytes: Uint8Array): void {
    // A byte order mark inside a text belongs to the text, also where a read begins with it.
    this.#jsonDecoder ??= new TextDecoder("utf-8", { ignoreBOM: true });
    const text = this.#jsonDecoder.decode(bytes, { stream: true });
    this.#json.push(text);
    if ((this.#chars += text.length) > MAX_ANSWER_CHARS) throw tooLong(this.#call);
  }

  #endJson(): void {
    this.#chars = 0;
    this.#translator.whole(parseAnswer(this.#call, this.#json.join("").replace(/^\ufeff/, "")), this.#out);
    this.hasEnded = true;
  }

  #fail(thrown: unknown): void {
    this.hasEnded = true;
    if (thrown instanceof RangeError) {
      this.failure ??= new UpstreamError("bad_answer", `The model at "${this.#place}" sent ${thrown.message}`);
    } else if (this.#isEnding && thrown instanceof SyntaxError) {
      this.hasEnded = false; // half an event, cut with the body: judged as such
    } else if (thrown instanceof SyntaxError) {
      this.failure ??= new UpstreamError("bad_answer", `The model at "${this.#place}" sent an event that is not JSON`);
    } else this.failure ??= thrown;
  }

  #account(batch: ChatEvent[]): ChatEvent[] {
    for (const event of batch) {
      if (event.type === "text" || event.type === "reasoning") {
        this.#hasContent = true;
        this.#chars += event.text.length;
      } else if (event.type === "tool_calls") this.#hasContent = true;
      else if (event.type === "finish") this.#finishReason = event.reason;
    }
    if (this.#chars > MAX_ANSWER_CHARS && this.failure === undefined) {
      this.failure = tooLong(this.#call);
      this.hasEnded = true;
    }
    return batch;
  }

  get #place(): string {
    return this.#call.target.baseUrl;
  }

  #cutFailure(): unknown {
    const isConnection = this.#cutBy instanceof UpstreamError && this.#cutBy.kind !== "timeout" &&
      this.#cutBy.kind !== "unreachable";
    return isConnection ? this.#interrupted() : this.#cutBy;
  }

  #interrupted(): UpstreamError {
    return new UpstreamError("interrupted", `The answer of the model at "${this.#place}" ended without finishing`);
  }

  #empty(): UpstreamError {
    const hint = "often the conversation is longer than the model's context";
    return new UpstreamError("empty", `The model at "${this.#place}" gave an empty answer; ${hint}`);
  }
}

function tooLong(call: UpstreamCall): UpstreamError {
  return new UpstreamError(
    "bad_answer",
    `The model at "${call.target.baseUrl}" wrote more than ${MAX_ANSWER_CHARS} characters`,
  );
}
