/**
 * Identifies a server by the shape of its responses, never by the status alone: LM Studio answers everything with 200, and
 * several servers share a port (docs/protocols/llm.md#discovery).
 */
import type { ProbeAnswer } from "../../http/probe.ts";
import { parseModelList } from "./model_list.ts";
import type { ListedModel } from "../provider.ts";
import { readField } from "../../json/type_guards.ts";

/** What an answer tells. */
export interface ServerFind {
  software: string;
  models?: string[];
  needsKey?: boolean;
  isStarting?: boolean;
}

/** A second and last question. Its answer is `undefined` when none came. */
export interface SecondProbe {
  path: string;
  judge(answer: ProbeAnswer | undefined): ServerFind | undefined;
}

/** The questions for one port. */
export interface ProbePlan {
  first: string;
  judge(answer: ProbeAnswer): ServerFind | SecondProbe | undefined;
}

const UNKNOWN = "OpenAI-compatible";
const MODELS = "/v1/models";
const BY_OWNER: Record<string, string> = {
  llamacpp: "llama.cpp",
  llamafile: "llamafile",
  vllm: "vLLM",
  koboldcpp: "KoboldCpp",
  tabbyAPI: "TabbyAPI",
  library: "Ollama",
};
// Speech servers list their voices' models the same way.
const SPEECH_OWNERS = new Set(["system", "kokoro"]);
const SPEECH_MODEL = /^(tts-|gpt-4o-mini-tts|kokoro|whisper|piper|espeak)/i;

/** The documented ports and what to ask there. */
export const PROBE_PLANS: Record<number, ProbePlan> = {
  11434: {
    first: "/api/version",
    judge: (answer) => {
      if (textField(answer.json, "version") !== undefined) return thenModels("Ollama");
      // Bound to loopback it refuses a Host name it does not know, with an empty body.
      return answer.status === 403 && answer.text === "" ? { software: "Ollama", models: [] } : undefined;
    },
  },
  1234: {
    first: "/api/v1/models",
    judge: (answer) => {
      const models = readField(answer.json, "models");
      if (Array.isArray(models)) return { software: "LM Studio", models: namesOf(models, "key") };
      if (isOddEndpoint(answer)) {
        const judge = (older: ProbeAnswer | undefined): ServerFind => {
          const data = readField(older?.json, "data");
          return { software: "LM Studio", models: Array.isArray(data) ? namesOf(data, "id") : [] };
        };
        return { path: "/api/v0/models", judge };
      }
      const needsKey = isRefusal(answer) && isErrorObject(answer.json);
      return needsKey ? { software: "LM Studio", needsKey } : thenModels(undefined);
    },
  },
  8080: {
    first: MODELS,
    judge: (answer) => {
      const find = judgeModels(answer);
      if (find === undefined || find.software !== UNKNOWN) return find;
      const isPython = /^BaseHTTP\//i.test(answer.headers.get("server") ?? "");
      const path = isPython ? "/health" : "/.well-known/localai.json";
      const software = isPython ? "mlx_lm" : "LocalAI";
      return { path, judge: (second) => (isOkObject(second) ? { ...find, software } : find) };
    },
  },
  8000: {
    first: MODELS,
    judge: (answer) => {
      const find = judgeModels(answer);
      if (find === undefined || find.software !== UNKNOWN) return find;
      const isVllm = (second: ProbeAnswer | undefined) => textField(second?.json, "version") !== undefined;
      return { path: "/version", judge: (second) => (isVllm(second) ? { ...find, software: "vLLM" } : find) };
    },
  },
  5001: {
    first: "/api/extra/version",
    judge: (answer) => thenModels(textField(answer.json, "result") === "KoboldCpp" ? "KoboldCpp" : undefined),
  },
  5000: {
    first: "/.well-known/serviceinfo",
    judge: (answer) => {
      if (textField(readField(answer.json, "software"), "name") === "TabbyAPI") return thenModels("TabbyAPI");
      const judge = (info: ProbeAnswer | undefined): ServerFind | undefined => {
        if (info === undefined) return undefined;
        const model = textField(info.json, "model_name");
        if (info.status === 200 && model !== undefined) {
          return { software: "text-generation-webui", models: model === "None" ? [] : [model] };
        }
        // AirPlay answers 403 here too, but not with this JSON.
        const isKeyless = isRefusal(info) && textField(info.json, "detail") !== undefined;
        return isKeyless ? { software: UNKNOWN, needsKey: true } : undefined;
      };
      return { path: "/v1/internal/model/info", judge };
    },
  },
  1337: {
    first: MODELS,
    judge: (answer) => {
      if (isRefusal(answer) && /missing authorization header/i.test(answer.text)) {
        return { software: "Jan", needsKey: true };
      }
      const find = judgeModels(answer);
      return find?.software === UNKNOWN ? { ...find, software: "Jan" } : find;
    },
  },
};

/** Asks for the models of a server that is known, or for any sign of one that is not. */
function thenModels(software: string | undefined): SecondProbe {
  const judge = (answer: ProbeAnswer | undefined): ServerFind | undefined => {
    const find = answer === undefined ? undefined : judgeModels(answer);
    if (software === undefined) return find;
    return { ...find, software };
  };
  return { path: MODELS, judge };
}

/** Judges an answer to `/v1/models`: a list, a server that still loads, one that wants a key, or none. */
function judgeModels(answer: ProbeAnswer): ServerFind | undefined {
  const isLlamaCpp = (answer.headers.get("server") ?? "").startsWith("llama.cpp");
  const software = isLlamaCpp ? "llama.cpp" : UNKNOWN;
  if (answer.status === 503 && isLoading(answer)) return { software, isStarting: true };
  if (isRefusal(answer) && isErrorObject(answer.json)) return { software, needsKey: true };
  if (answer.status !== 200) return undefined;
  const list = parseModelList(answer.json);
  if (list === undefined || isSpeech(list.data)) return undefined;
  const owner = list.data.map((model) => model.owned_by).find((name) => typeof name === "string" && name in BY_OWNER);
  const named = typeof owner === "string" ? BY_OWNER[owner] : undefined;
  return { software: named ?? software, models: list.data.map((model) => model.id) };
}

function isSpeech(models: ListedModel[]): boolean {
  return models.length > 0 &&
    models.every((model) => SPEECH_OWNERS.has(String(model.owned_by)) || SPEECH_MODEL.test(model.id));
}

function isLoading(answer: ProbeAnswer): boolean {
  return /loading model/i.test(answer.text) || textField(answer.json, "status") === "starting";
}

function isRefusal(answer: ProbeAnswer): boolean {
  return answer.status === 401 || answer.status === 403;
}

function isErrorObject(json: unknown): boolean {
  return readField(json, "error") !== undefined || readField(json, "detail") !== undefined;
}

function isOddEndpoint(answer: ProbeAnswer): boolean {
  return /^unexpected endpoint or method/i.test(textField(answer.json, "error") ?? "");
}

function isOkObject(answer: ProbeAnswer | undefined): boolean {
  return answer?.status === 200 && typeof answer.json === "object" && answer.json !== null;
}

function namesOf(entries: unknown[], name: string): string[] {
  return entries.map((entry) => textField(entry, name)).filter((text) => text !== undefined);
}

function textField(value: unknown, name: string): string | undefined {
  const found = readField(value, name);
  return typeof found === "string" && found !== "" ? found : undefined;
}
