/**
 * Fake Ollama server with its own API: a model is loaded with the context that a call asks for, and loaded again when that
 * changes; a prompt that is longer loses its oldest messages, or is refused where the call forbids that.
 *
 * Written from https://docs.ollama.com/api and https://github.com/ollama/ollama/blob/v0.17.4/server/routes.go (ChatHandler,
 * PsHandler), server/prompt.go (which messages are dropped) and server/sched.go (needsReload). A word is one token here.
 */
import { type FakeAnswer, type FakeHttp, openFakeHttp, type RecordedRequest } from "./fake_llm_http.ts";
import { stopAt } from "./fake_llm_stream.ts";

/** One installed model. */
export interface FakeOllamaModel {
  /** The most its context can be; 131,072 by default. */
  maxContextSize?: number;
  capabilities?: string[];
  family?: string;
}

/** Switches of the fake. They can be changed while it runs. */
export interface FakeOllamaOptions {
  models?: Record<string, FakeOllamaModel>;
  /** What it says, one line each. */
  pieces?: string[];
  /** What it thinks before, where thinking isn't switched off. */
  thinking?: string[];
  toolCalls?: { id?: string; name: string; arguments: Record<string, unknown> }[];
  doneReason?: string;
  /** The context of a call that names none. */
  defaultContextSize?: number;
  /** Share of a loaded model that is in the memory of the GPU. */
  vramShare?: number;
  /** Like versions before 0.12, it knows neither `truncate` nor `shift`. */
  alwaysTruncates?: boolean;
  /** What ends a stream after its first piece. */
  fail?: "none" | "error" | "cut";
  /** Bytes of one write; 0 writes each line as a whole. */
  chunkBytes?: number;
  /** A load ends only when this does. */
  loading?: Promise<void>;
  apiKey?: string;
  /** Models that can be downloaded, with the bytes of their files. */
  library?: Record<string, number[]>;
  /** A download goes beyond half of its first file only when this ends. */
  pulling?: Promise<void>;
  /** What ends a download at that point. */
  failPull?: "error" | "cut";
}

const CONTEXT_TOO_SHORT = "the input length exceeds the context length";

/** A running fake server. */
export class FakeOllama {
  options: FakeOllamaOptions;
  /** Contexts that models were loaded with, in order: `"llama:8192"`. */
  readonly loads: string[] = [];
  /** The messages of each answered call that the model got to see. */
  readonly seen: Record<string, unknown>[][] = [];
  readonly #loaded = new Map<string, number>();
  #http!: FakeHttp;

  constructor(options: FakeOllamaOptions = {}) {
    this.options = options;
  }

  async open(): Promise<this> {
    this.#http = await openFakeHttp((request, answer) => this.#handle(request, answer));
    return this;
  }

  /** Base URL without a path. */
  get url(): string {
    return `http://127.0.0.1:${this.#http.port}`;
  }

  get requests(): RecordedRequest[] {
    return this.#http.requests;
  }

  /** Bodies of the chat requests so far. */
  get chats(): Record<string, unknown>[] {
    return this.requests.filter(({ path }) => path === "/api/chat").map(({ json }) => json!);
  }

  /** Contexts that were asked for, in order. */
  get askedSizes(): unknown[] {
    return this.chats.map((body) => (body.options as Record<string, unknown> | undefined)?.num_ctx);
  }

  /** Loads a model as another client would. */
  load(model: string, contextSize: number): void {
    this.#loaded.set(model, contextSize);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#http.close();
  }

  get #models(): Record<string, FakeOllamaModel> {
    return this.options.models ?? { "fake-model": {} };
  }

  async #handle(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { apiKey } = this.options;
    if (apiKey !== undefined && request.headers.get("authorization") !== `Bearer ${apiKey}`) {
      return await answer.json(401, { error: "unauthorized" });
    }
    switch (`${request.method} ${request.path}`) {
      case "GET /api/version":
        return await answer.json(200, { version: "0.17.4" });
      case "GET /api/tags":
        return await answer.json(200, { models: Object.keys(this.#models).map(describe) });
      case "GET /v1/models": {
        const data = Object.keys(this.#models).map((id) => ({ id: withTag(id), object: "model", owned_by: "library" }));
        return await answer.json(200, { object: "list", data });
      }
      case "GET /api/ps":
        return await answer.json(200, { models: [...this.#loaded].map(([name, size]) => this.#running(name, size)) });
      case "POST /api/show":
        return await this.#show(request, answer);
      case "POST /api/pull":
        return await this.#pull(request, answer);
      case "POST /api/chat":
        return await this.#chat(request, answer);
      default:
        await answer.send(404, "text/plain", "404 page not found");
    }
  }

  #running(name: string, contextSize: number): unknown {
    const size = 1_000_000;
    return { ...describe(name), size, size_vram: size * (this.options.vramShare ?? 1), context_length: contextSize };
  }

  async #show({ json }: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const name = this.#find(json?.model);
    if (name === undefined) return await answer.json(404, { error: `model '${json?.model}' not found` });
    const { maxContextSize = 131_072, capabilities = ["completion"], family = "llama" } = this.#models[name]!;
    await answer.json(200, {
      details: { family },
      model_info: { "general.architecture": family, [`${family}.context_length`]: maxContextSize },
      capabilities,
    });
  }

  /** server/images.go (PullModel) and server/download.go: statuses, one line for each change, an error in a body of status 200. */
  async #pull({ json }: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { library = {}, pulling, failPull } = this.options;
    const model = String(json?.model);
    await answer.head(200, { "content-type": "application/x-ndjson" }, "chunked");
    const write = (line: unknown) => answer.write(`${JSON.stringify(line)}\n`);
    await write({ status: "pulling manifest" });
    const name = Object.keys(library).find((one) => withTag(one) === withTag(model));
    if (name === undefined) {
      await write({ error: "pull model manifest: file does not exist" });
      return await answer.end();
    }
    for (const [index, total] of library[name]!.entries()) {
      const file = { status: `pulling ${index}`, digest: `sha256:${index}`, total };
      await write(file);
      await write({ ...file, completed: total / 2 });
      await pulling;
      if (answer.isGone) return;
      if (failPull === "cut") return answer.cut();
      if (failPull === "error") {
        await write({ error: "max retries exceeded: unexpected EOF" });
        return await answer.end();
      }
      await write({ ...file, completed: total });
    }
    for (const status of ["verifying sha256 digest", "writing manifest"]) await write({ status });
    this.options.models = { ...this.#models, [name]: { capabilities: ["completion", "thinking"] } };
    await write({ status: "success" });
    await answer.end();
  }

  /** Finds a model by its name with or without the tag `latest`. */
  #find(model: unknown): string | undefined {
    return Object.keys(this.#models).find((name) => typeof model === "string" && withTag(name) === withTag(model));
  }

  async #chat({ json }: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const body = json!;
    const name = this.#find(body.model);
    if (name === undefined) return await answer.json(404, { error: `model '${body.model}' not found` });
    const refusal = this.#findRefusal(name, body);
    if (refusal !== undefined) return await answer.json(400, { error: refusal });
    const size = await this.#load(name, body);
    const messages = fit(body.messages as Record<string, unknown>[], size);
    const mayTruncate = this.options.alwaysTruncates === true || body.truncate !== false;
    if (messages.length < (body.messages as unknown[]).length && !mayTruncate) {
      return await answer.json(400, { error: CONTEXT_TOO_SHORT });
    }
    this.seen.push(messages);
    const lines = this.#lines(String(body.model), body, countWords(messages));
    if (body.stream === false) return await answer.json(200, joinLines(lines));
    await answer.head(200, { "content-type": "application/x-ndjson" }, "chunked");
    await this.#write(answer, lines);
  }

  #findRefusal(name: string, { think, tools, messages }: Record<string, unknown>): string | undefined {
    const { capabilities = ["completion"], family } = this.#models[name]!;
    const canThink = capabilities.includes("thinking");
    if (think !== undefined && think !== false && !canThink) return `"${name}" does not support thinking`;
    if (typeof think === "string" && family !== "gptoss") {
      return `think value "${think}" is not supported for this model`;
    }
    if (Array.isArray(tools) && tools.length > 0 && !capabilities.includes("tools")) {
      return `registry.ollama.ai/library/${withTag(name)} does not support tools`;
    }
    const hasImages = (messages as Record<string, unknown>[]).some(({ images }) => Array.isArray(images));
    return hasImages && !capabilities.includes("vision")
      ? "this model is missing data required for image input"
      : undefined;
  }

  async #load(name: string, { options }: Record<string, unknown>): Promise<number> {
    const { maxContextSize = 131_072 } = this.#models[name]!;
    const asked = (options as Record<string, unknown> | undefined)?.num_ctx;
    const size = Math.min(typeof asked === "number" ? asked : this.options.defaultContextSize ?? 4096, maxContextSize);
    if (this.#loaded.get(name) !== size) {
      this.loads.push(`${name}:${size}`);
      await this.options.loading;
      this.#loaded.set(name, size);
    }
    return size;
  }

  #lines(
    model: string,
    { think, tools, options }: Record<string, unknown>,
    promptTokens: number,
  ): Record<string, unknown>[] {
    const { thinking = [], toolCalls = [], doneReason = "stop" } = this.options;
    const pieces = stopAt((options as { stop?: unknown } | undefined)?.stop, this.options.pieces ?? ["Hel", "lo"]);
    const frame = (message: Record<string, unknown>) => ({
      model,
      created_at: "2026-11-01T00:00:00Z",
      message: { role: "assistant", content: "", ...message },
      done: false,
    });
    const calls = toolCalls.map(({ id, ...named }, index) => ({ ...(id && { id }), function: { index, ...named } }));
    const thoughts = think === false ? [] : thinking;
    return [
      ...thoughts.map((text) => frame({ thinking: text })),
      ...pieces.map((text) => frame({ content: text })),
      ...(Array.isArray(tools) && calls.length > 0 ? [frame({ tool_calls: calls })] : []),
      {
        ...frame({}),
        done: true,
        done_reason: doneReason,
        total_duration: 5_000_000_000,
        load_duration: 1_000_000_000,
        prompt_eval_count: promptTokens,
        prompt_eval_duration: 2_000_000_000,
        eval_count: pieces.length + thoughts.length,
        eval_duration: 500_000_000,
      },
    ];
  }

  async #write(answer: FakeAnswer, lines: unknown[]): Promise<void> {
    const { fail = "none", chunkBytes = 0 } = this.options;
    for (const [index, line] of lines.entries()) {
      if (fail === "error" && index === 1) {
        await answer.write('{"error":"an error was encountered while running the model"}\n');
        return await answer.end();
      }
      if (fail === "cut" && index === 1) return answer.cut();
      const bytes = new TextEncoder().encode(`${JSON.stringify(line)}\n`);
      const step = chunkBytes || bytes.length;
      for (let start = 0; start < bytes.length; start += step) await answer.write(bytes.subarray(start, start + step));
    }
    await answer.end();
  }
}

/** Drops the oldest messages until the rest fits: system messages and the last one stay (server/prompt.go). */
function fit(messages: Record<string, unknown>[], size: number): Record<string, unknown>[] {
  for (let first = 0;; first++) {
    const left = messages.filter(({ role }, index) => index >= first || role === "system");
    if (countWords(left) <= size || first >= messages.length - 1) return left;
  }
}

function countWords(messages: Record<string, unknown>[]): number {
  return messages.reduce((sum, { content }) => sum + String(content).split(/\s+/).filter(Boolean).length, 0);
}

/** Creates the one object of a call without a stream. */
function joinLines(lines: Record<string, unknown>[]): Record<string, unknown> {
  const messages = lines.map(({ message }) => message as Record<string, unknown>);
  const join = (name: string) => messages.map((message) => message[name] ?? "").join("");
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  const message = {
    role: "assistant",
    content: join("content"),
    ...(join("thinking") !== "" && { thinking: join("thinking") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return { ...lines.at(-1), message };
}

function describe(name: string): Record<string, unknown> {
  return {
    name: withTag(name),
    model: withTag(name),
    modified_at: "2026-11-01T00:00:00Z",
    size: 1_000_000,
    digest: "d",
  };
}

function withTag(name: string): string {
  return name.includes(":") ? name : `${name}:latest`;
}

/** Starts the fake server. */
export function openFakeOllama(options: FakeOllamaOptions = {}): Promise<FakeOllama> {
  return new FakeOllama(options).open();
}
