/** Asks a server for its context size (docs/protocols/llm.md#context-size). */
import { readText } from "../../http/read_body.ts";
import { headerKey } from "../auth_key.ts";
import { endpointPrefixes, serverRoot } from "../../http/base_url.ts";
import type { UpstreamTarget } from "../provider.ts";
import { UpstreamCall, type UpstreamHttp } from "../model_call.ts";
import { readField } from "../../json/type_guards.ts";

const MAX_BYTES = 4 * 1024 * 1024;

type Ask = (method: "GET" | "POST", url: string, body?: unknown) => Promise<unknown>;

/**
 * Gives the context size of a model in tokens, the allocated one where a server tells it apart from the trained one.
 *
 * @returns `undefined` when no known question got an answer.
 * @throws The reason of `signal`, when that fired.
 */
export async function findContextSize(
  http: UpstreamHttp,
  target: UpstreamTarget,
  model: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const key = headerKey(target.apiKey);
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const ask: Ask = async (method, url, body) => {
    const call = new UpstreamCall(target, signal);
    try {
      const json: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
      const response = await http.send(call, {
        method,
        url,
        headers: { ...headers, ...json },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      return response.ok ? JSON.parse(await readText(response, MAX_BYTES)) : undefined;
    } catch {
      signal.throwIfAborted();
      return undefined;
    } finally {
      call.watch.end();
    }
  };

  const root = serverRoot(target.baseUrl);
  const listed = await listedModel(ask, target.baseUrl, model);
  const declared = size(listed, "max_model_len") ?? size(listed, "context_length") ?? size(listed, "max_input_tokens");
  if (declared !== undefined) return declared;
  // In order of how exactly they tell what is allocated; a server that knows none of them answers each quickly.
  return size(await ask("GET", `${root}/props`), "default_generation_settings", "n_ctx") ??
    await lmStudioSize(ask, root, model) ??
    await ollamaSize(ask, root, model) ??
    size(await ask("GET", `${root}/api/extra/true_max_context_length`), "value") ??
    size(await ask("GET", `${root}/v1/model`), "parameters", "max_seq_len") ??
    size(listed, "meta", "n_ctx") ??
    size(listed, "meta", "n_ctx_train");
}

async function listedModel(ask: Ask, baseUrl: string, model: string): Promise<unknown> {
  for (const prefix of endpointPrefixes(baseUrl)) {
    const data = readField(await ask("GET", `${prefix}/models`), "data");
    if (Array.isArray(data)) return data.find((entry) => readField(entry, "id") === model) ?? data[0];
  }
  return undefined;
}

/** LM Studio, newer and older API: the loaded instance's size, else the largest possible. */
async function lmStudioSize(ask: Ask, root: string, model: string): Promise<number | undefined> {
  const models = readField(await ask("GET", `${root}/api/v1/models`), "models");
  if (Array.isArray(models)) {
    const entry = models.find((candidate) => readField(candidate, "key") === model);
    const instances = readField(entry, "loaded_instances");
    const loaded = Array.isArray(instances) ? size(instances[0], "config", "context_length") : undefined;
    return loaded ?? size(entry, "max_context_length");
  }
  const data = readField(await ask("GET", `${root}/api/v0/models`), "data");
  if (!Array.isArray(data)) return undefined;
  return size(data.find((candidate) => readField(candidate, "id") === model), "max_context_length");
}

/** Ollama: what the running model was given, else what it was trained for. */
async function ollamaSize(ask: Ask, root: string, model: string): Promise<number | undefined> {
  const running = readField(await ask("GET", `${root}/api/ps`), "models");
  if (!Array.isArray(running)) return undefined;
  const loaded = running.find((candidate) =>
    readField(candidate, "name") === model || readField(candidate, "model") === model
  );
  const allocated = size(loaded, "context_length");
  if (allocated !== undefined) return allocated;
  const info = readField(await ask("POST", `${root}/api/show`, { model }), "model_info");
  if (typeof info !== "object" || info === null) return undefined;
  const name = Object.keys(info).find((key) => key.endsWith(".context_length"));
  return name === undefined ? undefined : size(info, name);
}

function size(value: unknown, ...path: string[]): number | undefined {
  const found = path.reduce(readField, value);
  return typeof found === "number" && Number.isInteger(found) && found > 0 ? found : undefined;
}
