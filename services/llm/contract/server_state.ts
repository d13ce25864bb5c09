/** What servers report about themselves without inference: version, slots, what they're doing, what is loaded. */
import { createHash } from "node:crypto";
import { getServerRoot } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { isJsonObject, isNonEmptyString, readField } from "../../json/type_guards.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { isHosted } from "../dialects/dialects.ts";
import { runCall, sendRequest } from "../model_call.ts";
import { isSameOllamaModel } from "../ollama/ollama_models.ts";
import { createAuthHeaders, getTargetDialect, type UpstreamTarget } from "../provider.ts";

/** What a server does at the moment. */
export interface ServerLoad {
  isBusy: boolean;
  /** Whether a call would replace nothing that the server keeps of earlier prompts. */
  isEmpty: boolean;
  /** A slot that is neither busy nor keeps a prompt. */
  emptySlot?: number;
}

/** What a server reports. */
export interface ServerState {
  version?: string;
  /** What changes with a restart with other options, besides the version and the context. */
  options: string;
  slots?: number;
  /** Whether a call would load no model. `undefined` if the server doesn't tell. */
  isLoaded?: boolean;
  /** Context of the loaded model in tokens, where each call could set another (Ollama). */
  loadedContextSize?: number;
  images?: boolean;
  tools?: boolean;
  systemMessage?: boolean;
  resumable?: boolean;
  /** Asks again. Returns `undefined` if the server doesn't tell. */
  readLoad(): Promise<ServerLoad | undefined>;
}

const MAX_BYTES = 8 * 1024 * 1024;

/** Requests a path below the server's root. Returns `undefined` for any failure. */
type Request = (path: string, body?: unknown) => Promise<{ json: unknown; text: string } | undefined>;

/** Reads what a server reports. @throws The caller's abort reason. */
export async function readServerState(
  http: HttpClient,
  target: UpstreamTarget,
  model: string,
  signal: AbortSignal,
): Promise<ServerState> {
  const root = getServerRoot(target.baseUrl);
  const request: Request = async (path, body) => {
    try {
      return await runCall(target, signal, async (call) => {
        const response = await sendRequest(http, call, {
          url: root + path,
          headers: createAuthHeaders(target),
          body,
        });
        const text = await readText(response, MAX_BYTES);
        return response.ok ? { text, json: parseJson(text) } : undefined;
      });
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  };
  const dialect = getTargetDialect(target);
  const unknown: ServerState = { options: "", readLoad: () => Promise.resolve(undefined) };
  if (isHosted(dialect)) return { ...unknown, isLoaded: true };
  return await READERS[dialect.name]?.(request, model) ?? unknown;
}

const READERS: Partial<Record<DialectName, (request: Request, model: string) => Promise<ServerState>>> = {
  "llama.cpp": async (request, model) => {
    const [props, listed, lookup] = await Promise.all([
      request("/props"),
      request("/models"),
      // Without an ID it finds nothing, where the server keeps streams.
      request("/v1/streams/lookup", { conversation_ids: [] }),
    ]);
    const vision = readField(readField(props?.json, "modalities"), "vision");
    const slots = readField(props?.json, "total_slots");
    // A server that was started without a model loads the one that a call names.
    const status = readField(readField(findEntry(listed?.json, "data", "id", model), "status"), "value");
    const isAsleep = readField(props?.json, "is_sleeping") === true;
    const system = readField(readField(props?.json, "chat_template_caps"), "supports_system_role");
    return {
      version: readString(props?.json, "build_info"),
      options: `${slots} ${vision} ${hashText(readString(props?.json, "chat_template") ?? "")}`,
      ...(typeof slots === "number" && { slots }),
      isLoaded: props !== undefined && !isAsleep && (status === undefined || status === "loaded"),
      ...(typeof vision === "boolean" && { images: vision }),
      ...(typeof system === "boolean" && { systemMessage: system }),
      ...(props !== undefined && { resumable: Array.isArray(lookup?.json) }),
      readLoad: async () => toSlotLoad((await request("/slots"))?.json),
    };
  },
  koboldcpp: async (request) => {
    const version = (await request("/api/extra/version"))?.json;
    const vision = readField(version, "vision");
    return {
      version: readString(version, "version"),
      options: `${vision}`,
      slots: 1,
      isLoaded: true,
      ...(typeof vision === "boolean" && { images: vision }),
      readLoad: async () => {
        const perf = (await request("/api/extra/perf"))?.json;
        const [idle, queue, total] = ["idle", "queue", "total_gens"].map((name) => readField(perf, name));
        if (typeof idle !== "number") return undefined;
        return { isBusy: idle === 0 || Number(queue) > 0, isEmpty: total === 0 };
      },
    };
  },
  vllm: async (request) => ({
    version: readString((await request("/version"))?.json, "version"),
    options: "",
    isLoaded: true,
    readLoad: async () => {
      const metrics = (await request("/metrics"))?.text ?? "";
      const counts = [...metrics.matchAll(/^vllm:num_requests_(?:running|waiting)(?:\{[^}]*\})? ([\d.e+]+)$/gm)];
      // Its cache has pages, and the oldest of them are replaced: a few tokens take nothing from a chat.
      return counts.length === 0 ? undefined : { isBusy: counts.some(([, count]) => Number(count) > 0), isEmpty: true };
    },
  }),
  lmstudio: async (request, model) => {
    const newer = findEntry((await request("/api/v1/models"))?.json, "models", "key", model);
    const older = newer === undefined
      ? findEntry((await request("/api/v0/models"))?.json, "data", "id", model)
      : undefined;
    const instances = readField(newer, "loaded_instances");
    const vision = readField(readField(newer, "capabilities"), "vision");
    const type = readField(older, "type");
    return {
      options: "",
      isLoaded: Array.isArray(instances) ? instances.length > 0 : readField(older, "state") === "loaded",
      ...(typeof vision === "boolean" ? { images: vision } : typeof type === "string" && { images: type === "vlm" }),
      readLoad: () => Promise.resolve(undefined),
    };
  },
  ollama: async (request, model) => {
    const [version, running, shown] = await Promise.all([
      request("/api/version"),
      request("/api/ps"),
      request("/api/show", { model }),
    ]);
    const models = readField(running?.json, "models");
    const loaded = (Array.isArray(models) ? models : []).find((entry) => {
      const name = readField(entry, "model") ?? readField(entry, "name");
      return typeof name === "string" && isSameOllamaModel(name, model);
    });
    const size = readField(loaded, "context_length");
    const capabilities = readField(shown?.json, "capabilities");
    const known = Array.isArray(capabilities) ? capabilities : undefined;
    return {
      version: readString(version?.json, "version"),
      options: "",
      // Without its context, a call could load it again with another.
      isLoaded: typeof size === "number",
      ...(typeof size === "number" && { loadedContextSize: size }),
      ...(known && { images: known.includes("vision"), tools: known.includes("tools") }),
      readLoad: () => Promise.resolve(undefined),
    };
  },
  tabbyapi: async (request, model) => ({
    options: "",
    isLoaded: readField((await request("/v1/model"))?.json, "id") === model || undefined,
    readLoad: () => Promise.resolve(undefined),
  }),
  // Loads what a call names.
  mlx: () => Promise.resolve({ options: "", readLoad: () => Promise.resolve(undefined) }),
  generic: async (request) => {
    const localAi = (await request("/.well-known/localai.json"))?.json;
    const isLocalAi = isJsonObject(localAi) && !("error" in localAi);
    return {
      options: "",
      // Most programs have loaded what they list. LocalAI loads what a call names.
      isLoaded: isLocalAi ? undefined : true,
      readLoad: () => Promise.resolve(undefined),
    };
  },
};

/** Returns what llama.cpp does, by its slots. A slot that was used keeps its prompt, so that the next one is read faster. */
function toSlotLoad(slots: unknown): ServerLoad | undefined {
  if (!Array.isArray(slots) || slots.length === 0) return undefined;
  const empty = slots.find((slot) => readField(slot, "is_processing") === false && !keepsPrompt(slot));
  const id = readField(empty, "id");
  return {
    isBusy: slots.some((slot) => readField(slot, "is_processing") === true),
    isEmpty: empty !== undefined,
    ...(typeof id === "number" && { emptySlot: id }),
  };
}

/** Versions name it differently: the number of tokens, the last task (-1 for none), or the prompt itself. */
function keepsPrompt(slot: unknown): boolean {
  const [tokens, task, prompt] = ["n_prompt_tokens", "id_task", "prompt"].map((name) => readField(slot, name));
  return (typeof tokens === "number" && tokens > 0) || (typeof task === "number" && task >= 0) ||
    isNonEmptyString(prompt);
}

function findEntry(json: unknown, listName: string, idName: string, id: string): unknown {
  const list = readField(json, listName);
  return Array.isArray(list) ? list.find((entry) => readField(entry, idName) === id) : undefined;
}

function readString(value: unknown, name: string): string | undefined {
  const found = readField(value, name);
  return isNonEmptyString(found) ? found : undefined;
}

function hashText(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 12);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
