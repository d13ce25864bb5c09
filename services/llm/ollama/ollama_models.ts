/**
 * Lists the models of an Ollama server (installed and loaded), describes them, and downloads models in background jobs.
 */
import { getServerRoot, toBearerHeader } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { isJsonObject, isNonEmptyString, readField } from "../../json/type_guards.ts";
import { type ModelCall, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import type { ServerIdentity } from "../connections/connection_test.ts";
import type { ListedModel, ModelList, UpstreamTarget } from "../provider.ts";
import { parseResponse } from "../streaming/response_body.ts";
import { AppError } from "../../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import type { Connections } from "../connections/connections.ts";
import type { UpstreamClient } from "../upstream_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import { LineParser } from "../streaming/event_stream_parser.ts";

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** How long a model's facts are cached. A pull can replace the model. */
const FACTS_TTL_MS = 60_000;
const MAX_FACTS = 200;
/** Number of models to ask about at the same time. */
const PARALLEL = 4;

/** A model in the server's memory. */
export interface LoadedModel {
  /** Context size in tokens. Versions before 0.9.2 don't report it. */
  contextSize?: number;
  sizeBytes: number;
  /** Size of the part in GPU memory. */
  vramBytes: number;
}

/** Capabilities of a model. */
export interface OllamaModelFacts {
  /** Maximum context size in tokens. */
  maxContextSize?: number;
  /** `"completion"`, `"tools"`, `"vision"`, `"thinking"`. Absent if the server doesn't report them. */
  capabilities?: string[];
  /** True for gpt-oss, which has thinking levels and always thinks. */
  hasThinkingLevels: boolean;
}

/** Asks Ollama servers about their models. */
export class OllamaModels {
  readonly #http: HttpClient;
  readonly #facts = new Map<string, { facts: OllamaModelFacts; untilMs: number }>();

  constructor(http: HttpClient) {
    this.#http = http;
  }

  /** Lists the installed models in the format of OpenAI's API. @throws {AppError} Like `Provider.listModels` */
  async list(target: UpstreamTarget, signal: AbortSignal): Promise<ModelList> {
    const models = await this.#request(target, "/api/tags", undefined, signal);
    return { object: "list", data: readEntries(models).flatMap(toListedModel) };
  }

  /**
   * Lists the models with the server's facts about each. Facts that don't arrive before `signal` fires are missing.
   *
   * @throws {AppError} Like `Provider.listModels`
   */
  async identify(target: UpstreamTarget, signal: AbortSignal): Promise<ServerIdentity> {
    const { data } = await this.list(target, signal);
    const models: ServerIdentity["models"] = data.map(({ id }) => ({ id }));
    const rest = models.values().take(MAX_FACTS);
    // One iterator for all: each takes the next model.
    await Promise.all(Array.from({ length: PARALLEL }, async () => {
      for (const model of rest) {
        const facts = await this.describe(target, model.id, signal).catch(() => undefined);
        if (facts?.capabilities !== undefined) model.thinking = canThink(facts);
        if (signal.aborted) return;
      }
    }));
    return { dialect: "ollama", models };
  }

  /** Finds a model in the server's memory. @throws {AppError} Like `Provider.listModels` */
  async findLoaded(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<LoadedModel | undefined> {
    const running = readEntries(await this.#request(target, "/api/ps", undefined, signal));
    const found = running.find((entry) => {
      const name = readField(entry, "model") ?? readField(entry, "name");
      return typeof name === "string" && isSameOllamaModel(name, model);
    });
    if (found === undefined) return undefined;
    return {
      contextSize: readSize(readField(found, "context_length")),
      sizeBytes: readSize(readField(found, "size")) ?? 0,
      vramBytes: readSize(readField(found, "size_vram")) ?? 0,
    };
  }

  /** Describes a model. @throws {AppError} Like `Provider.listModels`; kind `not_found` if it isn't installed */
  async describe(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<OllamaModelFacts> {
    const key = `${target.baseUrl}\n${model}`;
    const known = this.#facts.get(key);
    if (known !== undefined && known.untilMs > performance.now()) return known.facts;
    const facts = parseFacts(await this.#request(target, "/api/show", { model }, signal));
    if (this.#facts.size >= MAX_FACTS) this.#facts.clear();
    this.#facts.set(key, { facts, untilMs: performance.now() + FACTS_TTL_MS });
    return facts;
  }

  #request(target: UpstreamTarget, path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    return runCall(withQuickTimeouts(target), signal, async (call) => {
      const url = `${getServerRoot(target.baseUrl)}${path}`;
      const response = await sendRequest(this.#http, call, { url, headers: toBearerHeader(target.apiKey), body });
      if (!response.ok) throw await call.readError(response);
      return readResponse(call, await readText(response, MAX_RESPONSE_BYTES));
    });
  }
}

function readResponse(call: ModelCall, text: string): unknown {
  const value = parseResponse(call, text);
  if (!isJsonObject(value)) throw call.createError("bad_answer", "returned JSON that isn't a response of Ollama");
  if (value.error) throw call.createReportedError(value);
  return value;
}

function readEntries(value: unknown): unknown[] {
  const models = readField(value, "models");
  return Array.isArray(models) ? models : [];
}

function toListedModel(entry: unknown): ListedModel[] {
  if (!isJsonObject(entry)) return [];
  const { name, model, modified_at: modifiedAt, ...more } = entry;
  const id = typeof name === "string" && name !== "" ? name : model;
  if (typeof id !== "string" || id === "") return [];
  const created = Math.floor(Date.parse(String(modifiedAt)) / 1000);
  return [{ id, object: "model", owned_by: "library", ...(created > 0 && { created }), ...more }];
}

function parseFacts(value: unknown): OllamaModelFacts {
  const info = readField(value, "model_info");
  const name = isJsonObject(info) ? Object.keys(info).find((key) => key.endsWith(".context_length")) : undefined;
  const capabilities = readField(value, "capabilities");
  const family = readField(readField(value, "details"), "family");
  return {
    maxContextSize: name === undefined ? undefined : readSize(readField(info, name)),
    ...(Array.isArray(capabilities) && { capabilities: capabilities.filter((entry) => typeof entry === "string") }),
    hasThinkingLevels: family === "gptoss" || family === "gpt-oss" || readField(value, "parser") === "harmony",
  };
}

/** Reports whether a model thinks. */
export function canThink({ capabilities = [], hasThinkingLevels }: OllamaModelFacts): boolean {
  return hasThinkingLevels || capabilities.includes("thinking");
}

function readSize(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** Returns a name with its tag: `"llama3.2:latest"`, `"hf.co/me/model:Q4_K_M"`. */
function addTag(name: string): string {
  return /:[^/]*$/.test(name) ? name : `${name}:latest`;
}

/** Reports whether two names refer to the same model. */
export function isSameOllamaModel(one: string, other: string): boolean {
  return addTag(one) === addTag(other);
}

/** Progress of a download, in bytes. The total grows as the server discovers files. */
export interface PullProgress {
  done: number;
  /** `null` until the first file is known. */
  total: number | null;
}

/**
 * Minimum idle timeout. Ollama sends nothing while it computes the checksum of a file, which can have a hundred
 * gigabytes.
 */
const LEAST_IDLE_MS = 15 * 60 * 1000;

/**
 * Makes the server download a model. Complete and partial files stay, so that a later call continues.
 *
 * @param onProgress Called for each change.
 * @throws {UpstreamError} Kind `not_found` if the model doesn't exist; otherwise like `Provider.listModels`
 * @throws The reason of `signal`.
 */
export function pullModel(
  http: HttpClient,
  target: UpstreamTarget,
  model: string,
  onProgress: (progress: PullProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const timeouts = { ...target.timeouts, idleMs: Math.max(target.timeouts.idleMs, LEAST_IDLE_MS) };
  return runCall({ ...target, timeouts }, signal, async (call) => {
    const response = await sendRequest(http, call, {
      url: `${getServerRoot(target.baseUrl)}/api/pull`,
      headers: { ...toBearerHeader(target.apiKey), accept: "application/x-ndjson, application/json" },
      body: { model, stream: true },
    });
    if (!response.ok) throw explainError(call, await call.readError(response), model);
    const files = new Map<string, { done: number; total: number }>();
    let isDone = false;
    const parser = new LineParser((line) => {
      const value = parseResponse(call, line);
      if (!isJsonObject(value)) {
        throw call.createError("bad_answer", "returned JSON that isn't the state of a download");
      }
      if (value.error) throw explainError(call, call.createReportedError(value), model);
      if (value.status === "success") isDone = true;
      const { digest, total, completed } = value;
      if (!isNonEmptyString(digest) || typeof total !== "number") return;
      files.set(digest, { total, done: typeof completed === "number" ? Math.min(completed, total) : 0 });
      onProgress(addUp([...files.values()]));
    });
    await readBody(call, response, parser);
    if (!isDone) throw call.createError("interrupted", `ended the download of "${model}" before it was complete`);
  });
}

async function readBody(call: ModelCall, response: Response, parser: LineParser): Promise<void> {
  const body = response.body?.getReader();
  while (body !== undefined) {
    call.timer.startReading();
    const { done, value } = await body.read();
    if (done) break;
    call.timer.markActive();
    try {
      parser.push(value);
    } catch (error) {
      if (error instanceof RangeError) throw call.createError("bad_answer", `returned ${error.message}`);
      throw error;
    }
  }
  parser.end();
}

function addUp(files: { done: number; total: number }[]): PullProgress {
  const sum = (name: "done" | "total") => files.reduce((all, file) => all + file[name], 0);
  return { done: sum("done"), total: sum("total") };
}

/** Explains the error if the library doesn't have the model. */
function explainError(call: ModelCall, error: UpstreamError, model: string): UpstreamError {
  if (!/file does not exist|not found|invalid model name/i.test(error.message)) return error;
  const message = `Ollama at "${call.target.baseUrl}" can't download "${model}": its library doesn't have this model`;
  return new UpstreamError("not_found", message, { status: error.status, cause: error });
}

/** Dependencies of `ModelPulls`. */
export interface ModelPullsDeps {
  jobs: JobRunner;
  connections: Pick<Connections, "find" | "getTarget">;
  upstream: Pick<UpstreamClient, "pullModel" | "identify">;
}

/** Parameters of a job. */
interface PullParams {
  connectionId: string;
  model: string;
}

const KIND = "model_pull";
/**
 * Number of concurrent downloads. The server downloads one model after the other anyway, as fast as its connection
 * allows.
 */
const PARALLEL_PULLS = 2;

/** Downloads of models by Ollama servers. */
export class ModelPulls {
  readonly #deps: ModelPullsDeps;
  #isClosing = false;

  /** Continues downloads of an earlier process: the server has the partial files. */
  constructor(deps: ModelPullsDeps) {
    this.#deps = deps;
    deps.jobs.register(KIND, { parallel: PARALLEL_PULLS, resumable: true, run: (context) => this.#run(context) });
  }

  /**
   * Starts a download, or returns the running one for the same model and server.
   *
   * @throws {AppError} `not_found`; `invalid_request` if the connection isn't of the kind ollama.
   */
  async start(connectionId: string, model: string): Promise<JobSnapshot> {
    const target = this.#getTarget(connectionId);
    const params: PullParams = { connectionId, model };
    return await this.#deps.jobs.start(KIND, {
      title: model,
      params,
      key: `${getServerRoot(target.baseUrl)}\n${addTag(model)}`,
      progress: { done: 0, total: null, unit: "bytes" },
      detail: { connection_id: connectionId, model },
    });
  }

  /** Makes running downloads continue at the next start, although the connections to servers close now. */
  close(): void {
    this.#isClosing = true;
  }

  #getTarget(connectionId: string): UpstreamTarget {
    const { connections } = this.#deps;
    const connection = connections.find(connectionId);
    if (connection === undefined) throw new AppError("not_found", `Connection "${connectionId}" not found`);
    if (connection.kind !== "ollama") {
      throw new AppError("invalid_request", `"${connection.name}" can't download models: its kind isn't ollama`);
    }
    return connections.getTarget(connectionId);
  }

  async #run({ params, signal, progress }: JobContext): Promise<void> {
    const { connectionId, model } = params as PullParams;
    const target = this.#getTarget(connectionId);
    const { upstream } = this.#deps;
    try {
      await upstream.pullModel(target, model, (at) => progress({ ...at, unit: "bytes" }), signal);
    } catch (error) {
      if (this.#isClosing) await waitForAbort(signal);
      throw error;
    }
    // Updates lists and capabilities. The model is installed even if this request fails.
    const identity = await upstream.identify(target, signal).catch(() => undefined);
    if (identity !== undefined) target.connection?.memory?.reportModels(identity.models);
  }
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
