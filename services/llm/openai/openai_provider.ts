/**
 * OpenAI-compatible servers: llama.cpp, Ollama, LM Studio, vLLM, OpenRouter and others, and their embeddings
 * (docs/protocols/llm.md).
 */
import type { HttpClient } from "../../http/http_client.ts";
import type { ChatCall, CompletionChoice, OpenAiCompletion } from "../chat_event.ts";
import {
  createAuthHeaders,
  getTargetDialect,
  keepsStreams,
  type Provider,
  type ProviderKind,
  type SentFacts,
  type UpstreamTarget,
} from "../provider.ts";
import { findDeployment, isHosted } from "../dialects/dialects.ts";
import { EndpointSearch, getServerRoot, listEndpointPrefixes } from "../../http/base_url.ts";
import { type AcceptedResponse, acceptResponse, readModelList } from "../streaming/response_body.ts";
import { type ModelCall, openKeptStream, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import { sendLearning, UnsavedRefusals } from "../refused_fields.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { parseFinishReason } from "../streaming/finish_reason.ts";
import { TokenCounts } from "../token_count.ts";
import { readBytes, readText } from "../../http/read_body.ts";
import { isJsonObject, readField } from "../../json/type_guards.ts";
import { checkUsage, createOpenAiTranslator, withReasoningContent, withToolCalls } from "./openai_events.ts";
import { createOpenAiBody } from "./openai_request.ts";
import { Buffer } from "node:buffer";
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import { parseJsonIncrementally } from "../../json/incremental_parse.ts";

/** Creates the provider for OpenAI-compatible servers. */
export function createOpenAiProvider(http: HttpClient): Provider {
  const endpoints = new EndpointSearch();
  const tokenCounts = new TokenCounts(http);
  const unsaved = new UnsavedRefusals();
  /** Sends a chat request and returns the response of status 200: a stream or one JSON value. */
  async function sendChat(
    call: ModelCall,
    chat: ChatCall,
    stream: boolean,
  ): Promise<{ accepted: AcceptedResponse; sent: SentFacts }> {
    const { target } = call;
    const accept: Record<string, string> = stream ? { accept: STREAM_TYPES } : {};
    // Only for streams: a whole reply would take the ID, and still end with its caller.
    const id = stream && chat.streamId !== undefined && keepsStreams(target)
      ? { "x-conversation-id": chat.streamId }
      : undefined;
    const headers = { ...createAuthHeaders(target), ...accept, ...id };
    const request = createOpenAiBody(target, chat, { stream });
    return await endpoints.find(target.baseUrl, async (prefix) => {
      const url = `${prefix}/chat/completions`;
      const { response, sent } = await sendLearning(
        call,
        chat.model,
        request,
        unsaved,
        (body) => sendRequest(http, call, { url, headers, body }),
      );
      return { accepted: await acceptResponse(call, response, stream, createOpenAiTranslator(call)), sent };
    });
  }

  return {
    openChatStream: (target, chat, signal) =>
      openStream(target, signal, async (call) => {
        const { accepted, sent } = await sendChat(call, chat, true);
        return { ...readReply(accepted, call, createOpenAiTranslator(call)), sent };
      }),

    reopenChatStream: (target, { streamId }, signal) =>
      openKeptStream(target, signal, (call) =>
        endpoints.find(target.baseUrl, async (prefix) => {
          const url = toStreamUrl(prefix, streamId);
          const headers = { ...createAuthHeaders(target), accept: STREAM_TYPES };
          const response = await sendRequest(http, call, { url: `${url}&from=0`, headers });
          if (!response.ok) throw await call.readError(response);
          const translator = createOpenAiTranslator(call);
          return readReply(await acceptResponse(call, response, true, translator), call, translator);
        })),

    releaseChatStream: (target, streamId, signal) =>
      runCall(withQuickTimeouts(target), signal, async (call) => {
        // The paths that chat requests use: an unknown path is 404 like an unknown ID.
        for (const prefix of listEndpointPrefixes(target.baseUrl)) {
          const url = toStreamUrl(prefix, streamId);
          const response = await sendRequest(http, call, { url, headers: createAuthHeaders(target), method: "DELETE" });
          await response.body?.cancel();
          if (response.ok) return;
        }
      }),

    completeChat: (target, chat, signal) =>
      runCall(target, signal, async (call) => {
        const { accepted } = await sendChat(call, chat, false);
        if ("value" in accepted) return toCompletion(call, accepted.value, chat.model);
        return await collectCompletion(readReply(accepted, call, createOpenAiTranslator(call)), chat.model);
      }),

    listModels: (target, signal) =>
      runCall(withQuickTimeouts(target), signal, (call) =>
        endpoints.find(target.baseUrl, async (prefix) => {
          const headers = createAuthHeaders(target);
          const response = await sendRequest(http, call, { url: `${prefix}/models`, headers });
          const deployment = response.status === 404 ? findDeployment(target.baseUrl) : undefined;
          if (deployment === undefined) return (await readModelList(call, response)).list;
          await response.body?.cancel();
          return { object: "list" as const, data: [{ id: deployment }] };
        })),

    readContextSize: (target, model, signal) => findContextSize(http, withQuickTimeouts(target), model, signal),
    countTokens: (target, model, texts, signal) => tokenCounts.count(withQuickTimeouts(target), model, texts, signal),
  };
}

const STREAM_TYPES = "text/event-stream, application/json";

/** Returns the address of a kept stream. @see https://github.com/ggml-org/llama.cpp/pull/23226 */
function toStreamUrl(prefix: string, streamId: string): string {
  return `${prefix}/stream?conv_id=${encodeURIComponent(streamId)}`;
}

/** Adds the fields that a server omitted. */
function toCompletion(call: ModelCall, value: unknown, model: string): OpenAiCompletion {
  // `acceptResponse` has checked that `choices` is an array.
  const completion = value as Partial<OpenAiCompletion> & { choices: Partial<CompletionChoice>[] };
  const choices = completion.choices.map((choice, index): CompletionChoice => {
    const message = Object.assign({ role: "assistant", content: null }, choice?.message);
    return withToolCalls(withReasoningContent({
      ...choice,
      index: choice?.index ?? index,
      message,
      finish_reason: parseFinishReason(choice?.finish_reason) ?? null,
    }));
  });
  if (choices.length === 0) throw call.createError("empty", "returned an empty reply");
  return {
    ...completion,
    id: completion.id ?? `chatcmpl-${crypto.randomUUID()}`,
    object: "chat.completion",
    created: completion.created ?? Math.floor(Date.now() / 1000),
    model: completion.model ?? model,
    choices,
    usage: completion.usage ? checkUsage(completion.usage) : undefined,
  };
}

const MAX_BYTES = 4 * 1024 * 1024;

/** Requests JSON from a URL, with POST if there is a body. Returns `undefined` for any failure. */
type RequestJson = (url: string, body?: unknown) => Promise<unknown>;

/**
 * Returns the context size of a model in tokens: the allocated one if the server distinguishes it from the trained one.
 *
 * @returns `undefined` if the server doesn't report it
 * @throws The caller's abort reason.
 */
async function findContextSize(
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
  // The most precise source first. Servers respond quickly to unknown paths.
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

/** Finds the size for LM Studio, newer and older API: that of the loaded instance, or else the maximum. */
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

/** Finds the size for Ollama: the one allocated for the loaded model. Before it's loaded, the size is unknown. */
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

/** A request for embeddings; other fields pass through to the server. */
export interface EmbeddingsRequest {
  model: string;
  input: unknown;
  /** OpenAI's own clients request `base64`: little-endian 32-bit floats. */
  encoding_format?: unknown;
  [more: string]: unknown;
}

/** Requests embeddings and returns the response as JSON. */
export type CreateEmbeddings = (
  target: UpstreamTarget,
  request: EmbeddingsRequest,
  signal: AbortSignal,
) => Promise<Uint8Array<ArrayBuffer>>;

/** Kinds of servers without this endpoint. */
const WITHOUT: readonly ProviderKind[] = ["anthropic", "demo"];
/** Maximum size of a response: two thousand embeddings of a thousand numbers each. */
const MAX_EMBEDDINGS_BYTES = 32 * 1024 * 1024;
const MAX_DEPTH = 50;
/** Maximum offset of the first embedding, if the server doesn't send anything else that is long before it. */
const HEAD_BYTES = 4 * 1024;

/** Creates the function that requests embeddings. */
export function createEmbeddingsClient(http: HttpClient): CreateEmbeddings {
  const endpoints = new EndpointSearch();
  return async (target, request, signal) => {
    if (WITHOUT.includes(target.kind)) {
      const message = "the server of this connection doesn't support embeddings";
      throw new AppError("invalid_request", `Can't create embeddings: ${message}`, {
        issues: [{ path: "model", message }],
      });
    }
    return await runCall(target, signal, (call) =>
      endpoints.find(target.baseUrl, async (prefix) => {
        const headers = createAuthHeaders(target);
        const response = await sendRequest(http, call, { url: `${prefix}/embeddings`, headers, body: request });
        if (!response.ok) throw await call.readError(response);
        return await readEmbeddings(call, response, request.encoding_format === "base64");
      }));
  };
}

async function readEmbeddings(
  call: ModelCall,
  response: Response,
  isBase64: boolean,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readBytes(response, MAX_EMBEDDINGS_BYTES);
  if (bytes === undefined) {
    throw call.createError("bad_answer", `returned more than ${MAX_EMBEDDINGS_BYTES} bytes of embeddings`);
  }
  const head = new TextDecoder().decode(bytes.subarray(0, HEAD_BYTES)).trimStart();
  if (head.startsWith("<")) throw call.createError("web_page", "returned a web page. Is the address correct?");
  // Passed on without parsing, because numbers take long to parse.
  if (/"embedding"\s*:\s*("|\[)/.exec(head)?.[1] === (isBase64 ? '"' : "[")) return bytes;
  const value = await parseJsonIncrementally(bytes, MAX_DEPTH).catch(() => undefined);
  if (!isJsonObject(value)) throw call.createError("bad_answer", "returned a response that isn't JSON");
  if (!Array.isArray(value.data)) {
    if ("error" in value) throw call.createReportedError(value);
    throw call.createError("bad_answer", "returned JSON without embeddings");
  }
  if (isBase64) await encodeEmbeddings(value.data);
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Encodes embeddings of a server that ignores `encoding_format`. */
async function encodeEmbeddings(data: unknown[]): Promise<void> {
  for (const item of data) {
    if (!isJsonObject(item) || !Array.isArray(item.embedding)) continue;
    item.embedding = Buffer.from(Float32Array.from(item.embedding, Number).buffer).toString("base64");
    await yieldIfTickUsedUp();
  }
}
