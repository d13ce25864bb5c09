/** Asks a server for the context size of a model (docs/protocols/llm.md, "Context size"). */
import { getServerRoot, listEndpointPrefixes } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { readField } from "../../json/type_guards.ts";
import { createAuthHeaders } from "../auth_headers.ts";
import { runCall, sendRequest } from "../model_call.ts";
import { isHosted } from "../dialects/dialects.ts";
import { getTargetDialect, type UpstreamTarget } from "../provider.ts";

const MAX_BYTES = 4 * 1024 * 1024;

/** Requests JSON from a URL, with POST if there is a body. Returns undefined for any failure. */
type RequestJson = (url: string, body?: unknown) => Promise<unknown>;

/**
 * Returns the context size of a model in tokens: the allocated one if the server distinguishes it from the trained one.
 *
 * @returns undefined if the server doesn't say
 * @throws The caller's abort reason.
 */
export async function findContextSize(
  http: HttpClient,
  target: UpstreamTarget,
  model: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const headers = createAuthHeaders(target);
  const request: RequestJson = async (url, body) => {
    try {
      return await runCall(target, signal, async (call) => {
        const response = await sendRequest(http, call, { url, headers, body });
        return response.ok ? JSON.parse(await readText(response, MAX_BYTES)) : undefined;
      });
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  };

  const root = getServerRoot(target.baseUrl);
  const listed = await findListedModel(request, target.baseUrl, model);
  const declared = readSize(listed, "max_model_len") ?? readSize(listed, "context_length") ??
    readSize(listed, "max_input_tokens");
  if (declared !== undefined || isHosted(getTargetDialect(target))) return declared;
  // The most precise source first. A server responds quickly to a path it doesn't know.
  return readSize(await request(`${root}/props`), "default_generation_settings", "n_ctx") ??
    await findLmStudioSize(request, root, model) ??
    await findOllamaSize(request, root, model) ??
    readSize(await request(`${root}/api/extra/true_max_context_length`), "value") ??
    readSize(await request(`${root}/v1/model`), "parameters", "max_seq_len") ??
    readSize(listed, "meta", "n_ctx") ??
    readSize(listed, "meta", "n_ctx_train");
}

async function findListedModel(request: RequestJson, baseUrl: string, model: string): Promise<unknown> {
  for (const prefix of listEndpointPrefixes(baseUrl)) {
    const data = readField(await request(`${prefix}/models`), "data");
    if (Array.isArray(data)) return data.find((entry) => readField(entry, "id") === model) ?? data[0];
  }
  return undefined;
}

/** LM Studio, newer and older API: the size of the loaded instance, otherwise the maximum. */
async function findLmStudioSize(request: RequestJson, root: string, model: string): Promise<number | undefined> {
  const models = readField(await request(`${root}/api/v1/models`), "models");
  if (Array.isArray(models)) {
    const entry = models.find((candidate) => readField(candidate, "key") === model);
    const instances = readField(entry, "loaded_instances");
    const loaded = Array.isArray(instances) ? readSize(instances[0], "config", "context_length") : undefined;
    return loaded ?? readSize(entry, "max_context_length");
  }
  const data = readField(await request(`${root}/api/v0/models`), "data");
  if (!Array.isArray(data)) return undefined;
  return readSize(data.find((candidate) => readField(candidate, "id") === model), "max_context_length");
}

/** Ollama: the size that the running model has allocated. Before it is loaded, nobody knows which one it will be. */
async function findOllamaSize(request: RequestJson, root: string, model: string): Promise<number | undefined> {
  const running = readField(await request(`${root}/api/ps`), "models");
  if (!Array.isArray(running)) return undefined;
  const loaded = running.find((candidate) =>
    readField(candidate, "name") === model || readField(candidate, "model") === model
  );
  return readSize(loaded, "context_length");
}

function readSize(value: unknown, ...path: string[]): number | undefined {
  const found = path.reduce(readField, value);
  return typeof found === "number" && Number.isInteger(found) && found > 0 ? found : undefined;
}
