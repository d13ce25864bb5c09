/** What an Ollama server says about its models: those it has, those it has loaded, and what each can do. */
import { getServerRoot, toBearerHeader } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { isJsonObject, readField } from "../../json/type_guards.ts";
import { type ModelCall, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import type { ServerIdentity } from "../connections/dialect_detection.ts";
import type { ListedModel, ModelList, UpstreamTarget } from "../provider.ts";
import { parseResponse } from "../streaming/response_body.ts";

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** How long a model's facts are used without asking again. A pull can replace the model. */
const FACTS_TTL_MS = 60_000;
const MAX_FACTS = 200;
/** Models that are asked about at the same time. */
const PARALLEL = 4;

/** A model in the server's memory. */
export interface LoadedModel {
  /** Tokens of its context. Versions before 0.9.2 don't say. */
  contextSize?: number;
  sizeBytes: number;
  /** The part of it in the memory of the GPU. */
  vramBytes: number;
}

/** What a model can do. */
export interface OllamaModelFacts {
  /** The most its context can be, in tokens. */
  maxContextSize?: number;
  /** `"completion"`, `"tools"`, `"vision"`, `"thinking"`. Absent if the server doesn't say. */
  capabilities?: string[];
  /** True for gpt-oss, which takes levels of thinking and always thinks. */
  hasThinkingLevels: boolean;
}

/** Asks Ollama servers about their models. */
export class OllamaModels {
  readonly #http: HttpClient;
  readonly #facts = new Map<string, { facts: OllamaModelFacts; untilMs: number }>();

  constructor(http: HttpClient) {
    this.#http = http;
  }

  /** Lists the models that the server has, as OpenAI's API does. @throws {AppError} as `Provider.listModels` */
  async list(target: UpstreamTarget, signal: AbortSignal): Promise<ModelList> {
    const models = await this.#request(target, "/api/tags", undefined, signal);
    return { object: "list", data: readEntries(models).flatMap(toListedModel) };
  }

  /**
   * Lists the models with what the server says of each. Facts that don't arrive before `signal` ends are missing.
   *
   * @throws {AppError} as `Provider.listModels`
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

  /** Finds a model in the server's memory. @throws {AppError} as `Provider.listModels` */
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

  /** Describes a model. @throws {AppError} as `Provider.listModels`; `not_found` kind if it isn't pulled */
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
export function addTag(name: string): string {
  return /:[^/]*$/.test(name) ? name : `${name}:latest`;
}

/** Reports whether two names mean the same model. */
export function isSameOllamaModel(one: string, other: string): boolean {
  return addTag(one) === addTag(other);
}
