/** Fake OpenAI-compatible model server with a switch per quirk in docs/protocols/llm.md, and a manual mode. */
import { type FakeAnswer, type FakeHttp, openFakeHttp, type RecordedRequest } from "./fake_llm_http.ts";
import { answerFailure, failInStream } from "./fake_llm_failures.ts";
import { type FakePersonality, PERSONALITIES, type PersonalityName } from "./fake_llm_servers.ts";
import { KeptStreams } from "./kept_streams.ts";
import {
  fakeCompletion,
  FakeStream,
  type FakeSwitches,
  parseSwitches,
  PLAIN_SWITCHES,
  seededWords,
  stopAt,
} from "./fake_llm_stream.ts";

export type { RecordedRequest } from "./fake_llm_http.ts";
export { FAKE_TIMINGS, FAKE_USAGE, type FakeSwitches, seededWords } from "./fake_llm_stream.ts";

/** Switches of the fake. */
export interface FakeLlmOptions {
  /** The reply, one delta per item. */
  pieces?: string[];
  /** The reasoning, one delta per item. */
  reasoning?: string[];
  /** Pieces of tool calls sent after the text, one delta each. */
  tools?: unknown[][];
  /** The server to imitate; a generic one by default. */
  personality?: PersonalityName;
  models?: string[];
  /** Embedding of each input, if the server has embeddings. `ignoresFormat` sends numbers when asked for base64. */
  embeddings?: { vector: number[]; ignoresFormat?: boolean };
  /** Required API key. */
  apiKey?: string;
  switches?: Partial<FakeSwitches>;
  /** Address to listen on. */
  host?: string;
  port?: number;
  /** Path prefix of the endpoints; `/v1` by default. */
  prefix?: string;
}

/** A response that the test writes step by step. */
export class ManualAnswer {
  readonly request: RecordedRequest;
  readonly #answer: FakeAnswer;
  readonly #stream: FakeStream;

  constructor(request: RecordedRequest, answer: FakeAnswer, stream: FakeStream) {
    this.request = request;
    this.#answer = answer;
    this.#stream = stream;
  }

  /** Sends one text delta. */
  emit(text: string): Promise<void> {
    return this.#stream.write(this.#stream.deltas("text", text));
  }

  /** Sends one reasoning delta. */
  think(text: string): Promise<void> {
    return this.#stream.write(this.#stream.deltas("reasoning", text));
  }

  /** Sends tool calls and ends. */
  async callTools(...calls: { id?: string; name: string; arguments: string }[]): Promise<void> {
    const delta = calls.map(({ id, ...named }, index) => ({ index, id, type: "function", function: named }));
    await this.#stream.write(this.#stream.tools(delta));
    await this.finish("tool_calls");
  }

  /** Sends any bytes. */
  raw(bytes: string | Uint8Array): Promise<void> {
    return this.#answer.write(bytes);
  }

  /** Sends the finish reason, the usage if asked for, and the end. */
  async finish(reason = "stop"): Promise<void> {
    this.#stream.switches.reason = reason;
    const options = this.request.json?.stream_options as { include_usage?: boolean } | undefined;
    await this.#stream.write(this.#stream.ending(options?.include_usage === true));
    await this.#answer.end();
  }

  /** Fails in a given way; `cut` closes the connection. */
  fail(how: FakeSwitches["fail"] = "cut", message = "the double was told to fail"): Promise<void> {
    return failInStream(this.#answer, this.#stream, { ...this.#stream.switches, fail: how, message });
  }

  /** Resolves when the client disconnects or the response is complete. */
  get over(): Promise<void> {
    return this.request.over;
  }
}

/** What a server reports of its slots. */
export interface FakeLoad {
  /** Whether someone else's call runs. */
  isBusy?: boolean;
  /** Slots that keep the prompt of an earlier call. */
  kept?: number;
  /** Its slot stays busy after a client has left. */
  ignoresCancel?: boolean;
}

/** A running fake server. */
export class FakeLlm {
  pieces: string[];
  reasoning: string[];
  tools: unknown[][];
  models: string[];
  embeddings: FakeLlmOptions["embeddings"];
  apiKey: string | undefined;
  switches: FakeSwitches;
  /** Tokens the model can hold, where the imitated server tells and its usual number does not serve. */
  contextSize: number | undefined;
  /** If true, all paths respond like a server that is loading its model. */
  isLoading = false;
  /** If true, the server refuses because it is busy. */
  isBusy = false;
  /** What servers that report their load report; absent as with older versions. */
  load: FakeLoad | undefined;
  /** Number of replies that llama.cpp writes at the same time. */
  slots = 4;
  /** Chat requests that are being answered. */
  running = 0;
  personality: FakePersonality;
  readonly streams = new KeptStreams();
  readonly #host: string;
  readonly #prefix: string;
  #http!: FakeHttp;
  readonly #manual: ManualAnswer[] = [];
  readonly #waiting: ((answer: ManualAnswer) => void)[] = [];

  constructor(options: FakeLlmOptions = {}) {
    this.personality = PERSONALITIES[options.personality ?? "generic"];
    this.pieces = options.pieces ?? ["Hel", "lo"];
    this.reasoning = options.reasoning ?? [];
    this.tools = options.tools ?? [];
    this.models = options.models ?? ["fake-model"];
    this.embeddings = options.embeddings;
    this.apiKey = options.apiKey;
    this.switches = { ...PLAIN_SWITCHES, ...this.personality.switches, ...options.switches };
    this.#host = options.host ?? "127.0.0.1";
    this.#prefix = options.prefix ?? "/v1";
  }

  /** Starts listening. */
  async open(port = 0): Promise<this> {
    this.#http = await openFakeHttp((request, answer) => this.#handle(request, answer), this.#host, port);
    return this;
  }

  get port(): number {
    return this.#http.port;
  }

  /** `http://127.0.0.1:PORT` */
  get origin(): string {
    return `http://${this.#host.includes(":") ? `[${this.#host}]` : this.#host}:${this.port}`;
  }

  /** Base URL, as users enter it. */
  get url(): string {
    return `${this.origin}${this.#prefix}`;
  }

  /** All requests so far. */
  get requests(): RecordedRequest[] {
    return this.#http.requests;
  }

  /** Chat requests so far. */
  get chats(): RecordedRequest[] {
    return this.requests.filter((request) => request.path.endsWith("/chat/completions"));
  }

  /** Chat requests whose client disconnected early. */
  get abandoned(): RecordedRequest[] {
    return this.chats.filter((request) => request.closedEarly);
  }

  /** Accepted connections so far. */
  get connectionCount(): number {
    return this.#http.connectionCount();
  }

  /** Returns the next response that waits for the test (switch `manual=on`). */
  nextCall(): Promise<ManualAnswer> {
    const ready = this.#manual.shift();
    if (ready !== undefined) return Promise.resolve(ready);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #handle(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { personality } = this;
    const path = request.path.split("?")[0]!;
    if (this.isLoading && personality.loading !== undefined) return await personality.loading(answer);
    const open = personality.openPaths?.includes(path) ?? false;
    if (!open && !this.#isAuthorized(request)) return await personality.unauthorized(request, answer);
    const isChat = request.method === "POST" && personality.isChatPath(path, this.#prefix);
    if (isChat) {
      this.running++;
      try {
        return await this.#chat(request, answer);
      } finally {
        if (!answer.isGone || this.load?.ignoresCancel !== true) this.running--;
      }
    }
    if (request.method === "POST" && path === `${this.#prefix}/embeddings` && this.embeddings !== undefined) {
      return await answer.json(200, this.#embed(request.json ?? {}));
    }
    if (personality.keepsStreams && await this.streams.answer(request, answer, personality.headers)) return;
    const extra = await personality.extra?.(request, answer, this);
    if (extra) return;
    if (request.method === "GET" && personality.isModelsPath(path, this.#prefix)) {
      return await answer.json(200, personality.models(this.models), personality.headers);
    }
    await personality.unknown(request, answer);
  }

  #embed({ model, input, encoding_format: format }: Record<string, unknown>): unknown {
    const { vector, ignoresFormat } = this.embeddings!;
    const isBase64 = format === "base64" && !ignoresFormat;
    const bytes = new Uint8Array(Float32Array.from(vector).buffer);
    const embedding = isBase64 ? btoa(String.fromCharCode(...bytes)) : vector;
    const inputs = Array.isArray(input) ? input : [input];
    const data = inputs.map((_, index) => ({ object: "embedding", index, embedding }));
    return { object: "list", data, model, usage: { prompt_tokens: 3, total_tokens: 3 } };
  }

  #isAuthorized(request: RecordedRequest): boolean {
    if (this.apiKey === undefined) return true;
    const isAuthorized = this.personality.isAuthorized?.(request, this.apiKey);
    return isAuthorized ?? request.headers.get("authorization") === `Bearer ${this.apiKey}`;
  }

  async #chat(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const model = String(request.json?.model ?? "");
    const named = model.startsWith("fake:") ? parseSwitches(model.slice("fake:".length)) : {};
    const headed = parseSwitches(request.headers.get("x-fake-llm") ?? "");
    const switches: FakeSwitches = { ...this.switches, ...named, ...headed };
    await pause(switches.delay_headers, answer);
    if (this.isBusy && this.personality.busy !== undefined) return await this.personality.busy(answer);
    if (await this.personality.refuse?.(request, answer, this)) return;
    if (switches.no_stream_options === "on" && request.json?.stream_options !== undefined) {
      return await answer.json(400, {
        error: { message: "Unrecognized request argument: stream_options", type: "invalid_request_error" },
      });
    }
    if (switches.no_tools === "on" && request.json?.tools !== undefined) {
      const message = "this model does not support tools";
      return await answer.json(400, { error: { message, type: "invalid_request_error" } });
    }
    if (switches.no_response_format === "on" && request.json?.response_format !== undefined) {
      const message = "response_format unknown";
      return await answer.json(400, { error: { message, type: "invalid_request_error" } });
    }
    if (await answerFailure(request, answer, switches, this.personality.headers)) return;
    const written = switches.words > 0 ? seededWords(switches.words, switches.seed) : this.pieces;
    const pieces = [...this.#repeat(request), ...stopAt(switches.no_stop === "on" ? [] : request.json?.stop, written)];
    const isStream = request.json?.stream === true && switches.ignore_stream === "off";
    if (!isStream && switches.manual === "off") {
      const value = fakeCompletion(model, pieces.join(""), this.reasoning.join(""), switches);
      return await answer.json(200, value, this.personality.headers);
    }
    const stream = new FakeStream(answer, switches, model);
    await stream.open(this.personality.headers);
    const id = request.headers.get("x-conversation-id");
    if (this.personality.keepsStreams && id !== null) this.streams.begin(id, answer);
    if (switches.manual === "on") return this.#offer(new ManualAnswer(request, answer, stream));
    await this.#speak(request, answer, stream, pieces);
  }

  /** Returns the start of the reply, if it's repeated. */
  #repeat({ json }: RecordedRequest): string[] {
    const last = (json?.messages as { role: string; content: unknown }[] | undefined)?.at(-1);
    const isExact = json?.continue_final_message === true && json.add_generation_prompt === false &&
      json.stream === true;
    const isRepeated = this.personality.repeatsPrefill === true && last?.role === "assistant" && !isExact;
    return isRepeated && typeof last.content === "string" ? [last.content] : [];
  }

  /** Returns the chunk in which llama.cpp says how much of the prompt it has read. */
  progress(progress: { total: number; cache: number; processed: number }): string {
    const choices = [{ index: 0, finish_reason: null, delta: { role: "assistant", content: null } }];
    const chunk = { choices, object: "chat.completion.chunk", prompt_progress: { ...progress, time_ms: 5 } };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }

  async #speak(request: RecordedRequest, answer: FakeAnswer, stream: FakeStream, pieces: string[]): Promise<void> {
    const { switches } = stream;
    await pause(switches.delay_first, answer);
    if (this.personality.preamble) await stream.write(this.personality.preamble);
    if (this.personality.hasProgress && request.json?.return_progress === true) {
      for (const processed of [0, 11]) await stream.write(this.progress({ total: 11, cache: 0, processed }));
    }
    const options = request.json?.stream_options as { include_usage?: boolean } | undefined;
    let whole = "";
    const put = async (frames: string) => {
      if (switches.chunk === -1) whole += frames;
      else await stream.write(frames);
      await pause(switches.delay_between, answer);
    };
    const steps: [kind: "text" | "reasoning", text: string][] = [
      ...this.reasoning.map((text): ["reasoning", string] => ["reasoning", text]),
      ...pieces.map((text): ["text", string] => ["text", text]),
    ];
    for (const [index, [kind, text]] of steps.entries()) {
      if (answer.keeper === undefined ? answer.isGone : answer.keeper.isDropped) return;
      if (switches.fail !== "none" && index === switches.after) break;
      const isLast = index === steps.length - 1 && switches.finish === "last";
      await put(stream.deltas(kind, text, isLast ? switches.reason : null));
    }
    if (switches.fail !== "none") {
      await stream.write(whole);
      return await failInStream(answer, stream, switches);
    }
    for (const delta of this.tools) await put(stream.tools(delta));
    await put(stream.ending(options?.include_usage === true));
    await stream.write(whole);
    await answer.end();
  }

  #offer(call: ManualAnswer): void {
    const taker = this.#waiting.shift();
    if (taker !== undefined) taker(call);
    else this.#manual.push(call);
  }
}

/** Starts the fake server. */
export function openFakeLlm(options: FakeLlmOptions = {}): Promise<FakeLlm> {
  return new FakeLlm(options).open(options.port);
}

/** A delay that ends when the client disconnects. */
function pause(delayMs: number, answer: FakeAnswer): Promise<void> {
  if (delayMs <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, delayMs);
    answer.gone.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
