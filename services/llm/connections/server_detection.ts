/**
 * Detects model servers on their default ports, without credentials and in under two seconds. A server is identified by
 * the structure of its responses, never just by a status: LM Studio returns 200 for every path, and several servers
 * share a port.
 *
 * @see docs/protocols/llm.md, "Discovery"
 */
import { type Probe, probeAll, type ProbeOptions, type ProbeResponse } from "../../http/http_client.ts";
import { isJsonObject, isNonEmptyString, readField } from "../../json/type_guards.ts";
import type { ListedModel } from "../provider.ts";
import { parseModelList } from "../streaming/response_body.ts";

/** A detected server. */
export interface DetectedServer {
  baseUrl: string;
  kind: "openai";
  /** Product name: `"llama.cpp"`, `"Ollama"`. */
  software: string;
  models: string[];
  /** True if it rejected the request without a key. */
  needsKey?: boolean;
  /** True if it's still loading its model. */
  isStarting?: boolean;
}

/** A port, and the default port whose servers are expected there. */
interface DetectionPort {
  as: number;
}

/**
 * What to probe. Tests use other ports. Each port gets at most two requests; a server of unknown software that asks for a
 * key is also asked for what only one product has.
 */
export type DetectionOptions =
  & Omit<ProbeOptions<DetectionPort>, "ports" | "otherPort">
  & Partial<Pick<ProbeOptions<DetectionPort>, "ports">>;

/** A response that shows which server it's from. */
export type IdentifyingResponse = Pick<ProbeResponse, "status" | "headers" | "text" | "json">;

/**
 * Identifies the server at a known address, on any port: by its model list, or else by the endpoints that only one
 * product has.
 *
 * @param models The response to the request for the model list.
 * @param request Requests a path below the server's root; `undefined` if there is no response.
 * @returns Product name: `"llama.cpp"`; `undefined` if it can't be determined.
 */
export async function identifyServer(
  models: IdentifyingResponse,
  request: (path: string) => Promise<IdentifyingResponse | undefined>,
): Promise<string | undefined> {
  const listed = detectByModels(models)?.software;
  if (listed !== undefined && listed !== UNKNOWN) return listed;
  const found = await identifyByEndpoints(request);
  if (found !== undefined) return found;
  const isPython = /^BaseHTTP\//i.test(models.headers.get("server") ?? "");
  return isPython && isOkObject(await request("/health")) ? "mlx_lm" : undefined;
}

/** Endpoints that identify a product. Those that others imitate are last. */
const OWN_ENDPOINTS: { path: string; software: string; isOwn(json: unknown): boolean }[] = [
  {
    path: "/api/extra/version",
    software: "KoboldCpp",
    isOwn: (json) => readText(json, "result") === "KoboldCpp",
  },
  {
    path: "/.well-known/serviceinfo",
    software: "TabbyAPI",
    isOwn: (json) => readText(readField(json, "software"), "name") === "TabbyAPI",
  },
  { path: "/.well-known/localai.json", software: "LocalAI", isOwn: (json) => isJsonObject(json) && !("error" in json) },
  {
    path: "/api/v0/models",
    software: "LM Studio",
    isOwn: (json) => {
      const data = readField(json, "data");
      return Array.isArray(data) && data.some((entry) => readText(entry, "state") !== undefined);
    },
  },
  { path: "/api/version", software: "Ollama", isOwn: (json) => readText(json, "version") !== undefined },
  { path: "/version", software: "vLLM", isOwn: (json) => readText(json, "version") !== undefined },
];

/** Probes all hosts and ports at once. */
export async function detectServers(options: DetectionOptions): Promise<DetectedServer[]> {
  const ports = options.ports ?? Object.keys(PROBE_PLANS).map((port) => ({ port: Number(port), as: Number(port) }));
  const servers = await probeAll({ ...options, ports, otherPort: { as: BY_MODELS } }, async (origin, { as }, probe) => {
    const found = await runPlan(as, probe);
    if (found === undefined) return undefined;
    return {
      baseUrl: `${origin}/v1`,
      kind: "openai" as const,
      software: found.software,
      models: found.models ?? [],
      ...(found.needsKey && { needsKey: true }),
      ...(found.isStarting && { isStarting: true }),
    };
  });
  // What may be something else comes last.
  return servers.toSorted((a, b) => Number(a.software === UNKNOWN) - Number(b.software === UNKNOWN));
}

async function runPlan(as: number, probe: Probe): Promise<Detection | undefined> {
  const plan = PROBE_PLANS[as];
  if (plan === undefined) throw new Error(`No probe plan for port ${as}`);
  const first = await probe(plan.path);
  const next = first === undefined ? undefined : plan.detect(first);
  const found = next === undefined || "software" in next ? next : next.detect(await probe(next.path));
  if (!found?.needsKey || found.software !== UNKNOWN) return found;
  return { ...found, software: await identifyByEndpoints(probe) ?? UNKNOWN };
}

/** Identifies a server by the endpoints that only one product has. Most of them need no key. */
async function identifyByEndpoints(
  request: (path: string) => Promise<IdentifyingResponse | undefined>,
): Promise<string | undefined> {
  const found = await Promise.all(OWN_ENDPOINTS.map(async ({ path, software, isOwn }) => {
    const response = await request(path);
    return response?.status === 200 && isOwn(response.json) ? software : undefined;
  }));
  return found.find((software) => software !== undefined);
}

/** What the responses reveal. */
interface Detection {
  software: string;
  models?: string[];
  needsKey?: boolean;
  isStarting?: boolean;
}

/** The requests to one port. */
interface ProbePlan {
  path: string;
  detect(response: ProbeResponse): Detection | SecondProbe | undefined;
}

/** A second and last request. Its response is `undefined` if there was none in time. */
interface SecondProbe {
  path: string;
  detect(response: ProbeResponse | undefined): Detection | undefined;
}

const UNKNOWN = "OpenAI-compatible";
/** The default port whose servers are identified by their model list, as those on other ports are. */
const BY_MODELS = 8080;
const MODELS = "/v1/models";
const SOFTWARE_BY_OWNER: Record<string, string> = {
  llamacpp: "llama.cpp",
  llamafile: "llamafile",
  vllm: "vLLM",
  koboldcpp: "KoboldCpp",
  tabbyAPI: "TabbyAPI",
  library: "Ollama",
};
// Speech servers list their models in the same format.
const SPEECH_OWNERS = new Set(["system", "kokoro"]);
const SPEECH_MODEL =
  /(^|[\/_.-])(x?tts|speecht5|kokoro|whisper|piper|espeak|parakeet|chatterbox|orpheus|bark|vits|zonos)(\d*)([\/_.-]|$)/i;
/** Speaches names what each model is for. */
const SPEECH_TASKS = new Set(["automatic-speech-recognition", "text-to-speech"]);

/** For servers that are recognized by their model list. */
const BY_MODELS_PLAN: ProbePlan = {
  path: MODELS,
  detect: (response) => {
    const found = detectByModels(response);
    if (found === undefined || found.software !== UNKNOWN) return found;
    const isPython = /^BaseHTTP\//i.test(response.headers.get("server") ?? "");
    const path = isPython ? "/health" : "/.well-known/localai.json";
    const software = isPython ? "mlx_lm" : "LocalAI";
    return { path, detect: (second) => (isOkObject(second) ? { ...found, software } : found) };
  },
};

/** The requests to each default port. */
const PROBE_PLANS: Record<number, ProbePlan> = {
  11434: {
    path: "/api/version",
    detect: (response) => {
      if (readText(response.json, "version") !== undefined) return probeModels("Ollama");
      // Ollama on loopback rejects an unknown Host header with an empty body.
      return response.status === 403 && response.text === "" ? { software: "Ollama", models: [] } : undefined;
    },
  },
  1234: {
    path: "/api/v1/models",
    detect: (response) => {
      const models = readField(response.json, "models");
      if (Array.isArray(models)) return { software: "LM Studio", models: readTexts(models, "key") };
      if (isUnexpectedEndpoint(response)) {
        const detect = (older: ProbeResponse | undefined): Detection => {
          const data = readField(older?.json, "data");
          return { software: "LM Studio", models: Array.isArray(data) ? readTexts(data, "id") : [] };
        };
        return { path: "/api/v0/models", detect };
      }
      const needsKey = isRefusal(response) && isErrorObject(response.json);
      return needsKey ? { software: "LM Studio", needsKey } : probeModels(undefined);
    },
  },
  8080: BY_MODELS_PLAN,
  // The default port of coming versions of llama.cpp.
  9931: BY_MODELS_PLAN,
  8000: {
    path: MODELS,
    detect: (response) => {
      const found = detectByModels(response);
      if (found === undefined || found.software !== UNKNOWN) return found;
      const isVllm = (second: ProbeResponse | undefined) => readText(second?.json, "version") !== undefined;
      // A speech server without models looks like any other.
      const other = found.models?.length === 0 && !found.needsKey && !found.isStarting ? undefined : found;
      return { path: "/version", detect: (second) => (isVllm(second) ? { ...found, software: "vLLM" } : other) };
    },
  },
  5001: {
    path: "/api/extra/version",
    detect: (response) => probeModels(readText(response.json, "result") === "KoboldCpp" ? "KoboldCpp" : undefined),
  },
  5000: {
    path: "/.well-known/serviceinfo",
    detect: (response) => {
      if (readText(readField(response.json, "software"), "name") === "TabbyAPI") return probeModels("TabbyAPI");
      const detect = (info: ProbeResponse | undefined): Detection | undefined => {
        if (info === undefined) return undefined;
        const model = readText(info.json, "model_name");
        if (info.status === 200 && model !== undefined) {
          return { software: "text-generation-webui", models: model === "None" ? [] : [model] };
        }
        // AirPlay also uses this port and returns 403, but without JSON.
        const needsKey = isRefusal(info) && readText(info.json, "detail") !== undefined;
        return needsKey ? { software: UNKNOWN, needsKey } : undefined;
      };
      return { path: "/v1/internal/model/info", detect };
    },
  },
  1337: {
    path: MODELS,
    detect: (response) => {
      if (isRefusal(response) && /missing authorization header/i.test(response.text)) {
        return { software: "Jan", needsKey: true };
      }
      const found = detectByModels(response);
      return found?.software === UNKNOWN ? { ...found, software: "Jan" } : found;
    },
  },
};

/** Requests the model list of a known server, or to detect an unknown one. */
function probeModels(software: string | undefined): SecondProbe {
  const detect = (response: ProbeResponse | undefined): Detection | undefined => {
    const found = response === undefined ? undefined : detectByModels(response);
    return software === undefined ? found : { ...found, software };
  };
  return { path: MODELS, detect };
}

/** Detects a server by its response to `/v1/models`: a model list, an error while it loads, or one that asks for a key. */
function detectByModels(response: IdentifyingResponse): Detection | undefined {
  const isLlamaCpp = (response.headers.get("server") ?? "").startsWith("llama.cpp");
  const software = isLlamaCpp ? "llama.cpp" : UNKNOWN;
  if (response.status === 503 && isLoading(response)) return { software, isStarting: true };
  if (isRefusal(response) && isErrorObject(response.json)) return { software, needsKey: true };
  if (response.status !== 200) return undefined;
  const list = parseModelList(response.json);
  if (list === undefined || isSpeech(list.data)) return undefined;
  const owner = list.data.map((model) => model.owned_by)
    .find((name) => typeof name === "string" && Object.hasOwn(SOFTWARE_BY_OWNER, name));
  const named = typeof owner === "string" ? SOFTWARE_BY_OWNER[owner] : undefined;
  return { software: named ?? software, models: list.data.map((model) => model.id) };
}

/** Reports whether a server has models, and all of them speak or transcribe. */
export function isSpeech(models: ListedModel[]): boolean {
  return models.length > 0 &&
    models.every((model) =>
      SPEECH_OWNERS.has(String(model.owned_by)) || SPEECH_TASKS.has(String(model.task)) || SPEECH_MODEL.test(model.id)
    );
}

function isLoading(response: IdentifyingResponse): boolean {
  return /loading model/i.test(response.text) || readText(response.json, "status") === "starting";
}

function isRefusal(response: IdentifyingResponse): boolean {
  return response.status === 401 || response.status === 403;
}

function isErrorObject(json: unknown): boolean {
  return readField(json, "error") !== undefined || readField(json, "detail") !== undefined;
}

function isUnexpectedEndpoint(response: ProbeResponse): boolean {
  return /^unexpected endpoint or method/i.test(readText(response.json, "error") ?? "");
}

function isOkObject(response: IdentifyingResponse | undefined): boolean {
  return response?.status === 200 && typeof response.json === "object" && response.json !== null;
}

function readTexts(entries: unknown[], name: string): string[] {
  return entries.map((entry) => readText(entry, name)).filter((text) => text !== undefined);
}

function readText(value: unknown, name: string): string | undefined {
  const found = readField(value, name);
  return isNonEmptyString(found) ? found : undefined;
}
