/**
 * Calls Ollama's own API, which can set the context size, unlike its OpenAI-compatible API, and converts its stream of
 * one JSON value per line to ChatEvents (docs/protocols/llm.md, "Ollama").
 */
import { getServerRoot, toBearerHeader } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ChatCall, ChatEvent, Usage } from "../chat_event.ts";
import { isReportedError, type ModelCall, type ModelRequest, openStream, runCall, sendRequest } from "../model_call.ts";
import type { ListenToNotices, Provider, SentFacts, ServerNotice, UpstreamTarget } from "../provider.ts";
import { type ModelRequestBody, sendLearning, UnsavedRefusals } from "../refused_fields.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { parseFinishReason } from "../streaming/finish_reason.ts";
import {
  type AcceptedResponse,
  acceptResponse,
  parseEventData,
  type ReplyTranslator,
} from "../streaming/response_body.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { estimateCallTokens } from "../token_count.ts";
import { canThink, type LoadedModel, type OllamaModelFacts, OllamaModels } from "./ollama_models.ts";
import { createOllamaBody, getOwnContextSize, getReplyLimit, toThink, withExtraBody } from "./ollama_request.ts";
import { isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";

/** Number of tokens reserved for a reply without a limit. */
const REPLY_TOKENS = 2_048;
/** Estimates are wrong by at most this factor. */
const ESTIMATE_ERROR = 1.35;
const SPILL_CHECK_MS = 5_000;
/** Maximum number of retries with a larger context, if the prompt is too long for the estimated one. */
const MAX_ENLARGEMENTS = 4;

/** The caller's names of fields that have another name here. */
const CALLER_NAMES = new Map([["think", "reasoning_effort"]]);
/** Ollama's error for `think`. It names the model. */
const REFUSAL_TEXTS = { think: /does not support thinking|think value|invalid think/i };

/** The state of the server when a call is made. */
interface Situation {
  loaded?: LoadedModel;
  facts?: OllamaModelFacts;
  /** Maximum value of `num_ctx`. */
  most?: number;
}

/** Creates the provider for Ollama's own API. */
export function createOllamaProvider(http: HttpClient, models = new OllamaModels(http)): Provider {
  const unsaved = new UnsavedRefusals();

  async function inspect(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<Situation> {
    const [loaded, facts] = await Promise.all([
      ignoreUnreachable(models.findLoaded(target, model, signal), signal),
      ignoreUnreachable(models.describe(target, model, signal), signal),
    ]);
    return { loaded, facts, most: readMinimum(facts?.maxContextSize, target.contextSize) };
  }

  /** Sends a chat request, with a larger context if the prompt turns out to be longer than estimated. */
  async function sendChat(
    call: ModelCall,
    requested: ChatCall,
    stream: boolean,
    onNotice: ListenToNotices = () => {},
  ): Promise<{ accepted: AcceptedResponse; sent: SentFacts }> {
    const { target, timer: { signal } } = call;
    const { loaded, facts, most } = await inspect(target, requested.model, signal);
    if (facts?.capabilities !== undefined) {
      target.connection?.memory?.reportThinking(requested.model, canThink(facts));
    }
    const chat = withExtraBody(target, requested);
    const own = getOwnContextSize(chat);
    const needed = chat.neededTokens ?? estimateNeeded(chat);
    const request = {
      url: `${getServerRoot(target.baseUrl)}/api/chat`,
      headers: {
        ...toBearerHeader(target.apiKey),
        ...(stream && { accept: "application/x-ndjson, application/json" }),
      },
    } satisfies Partial<ModelRequest>;
    let loadedSize = loaded?.contextSize;
    let contextSize = own ?? chooseContextSize(needed, loadedSize, most);
    for (let enlargements = 0;; enlargements++) {
      if (loadedSize !== undefined && loadedSize !== contextSize) onNotice(createReloadNotice(contextSize));
      const body = {
        fields: createOllamaBody(chat, { stream, contextSize, think: toThink(chat.params, facts) }),
        callerNames: CALLER_NAMES,
        refusalTexts: REFUSAL_TEXTS,
      } satisfies ModelRequestBody;
      try {
        const { response, sent } = await sendLearning(
          call,
          chat.model,
          body,
          unsaved,
          (fields) => sendRequest(http, call, { ...request, body: fields }),
        );
        const accepted = await acceptResponse(call, response, stream, createOllamaTranslator(call));
        return { accepted, sent: { ...sent, outputLimit: getReplyLimit(chat) } };
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        const larger = chooseContextSize(contextSize + 1, undefined, most);
        const canGrow = own === undefined && larger > contextSize && enlargements < MAX_ENLARGEMENTS;
        if (error.kind !== "overflow" || !canGrow) throw explainError(call, error, chat.model);
        [loadedSize, contextSize] = [contextSize, larger];
      }
    }
  }

  /** Reports whether the loaded model fits in GPU memory. */
  async function reportSpill(target: UpstreamTarget, model: string): Promise<void> {
    const memory = target.connection?.memory;
    if (memory === undefined) return;
    try {
      const loaded = await models.findLoaded(target, model, AbortSignal.timeout(SPILL_CHECK_MS));
      if (loaded !== undefined) memory.reportNotice(createSpillNotice(model, loaded));
    } catch {
      // The reply shows whether the server works.
    }
  }

  return {
    openChatStream: (target, chat, signal, onNotice) =>
      openStream(target, signal, async (call) => {
        const { accepted, sent } = await sendChat(call, chat, true, onNotice);
        void reportSpill(target, chat.model);
        return { ...readReply(accepted, call, createOllamaTranslator(call)), sent };
      }),

    completeChat: (target, chat, signal) =>
      runCall(target, signal, async (call) => {
        const { accepted } = await sendChat(call, chat, false);
        return await collectCompletion(readReply(accepted, call, createOllamaTranslator(call)), chat.model);
      }),

    listModels: (target, signal) => models.list(target, signal),

    async readContextSize(target, model, signal) {
      const facts = await ignoreUnreachable(models.describe(target, model, signal), signal).catch(() => undefined);
      signal.throwIfAborted();
      return readMinimum(facts?.maxContextSize, target.contextSize);
    },

    async chooseContextSize(target, model, needed, signal) {
      try {
        const { loaded, most } = await inspect(target, model, signal);
        return chooseContextSize(needed, loaded?.contextSize, most);
      } catch {
        signal.throwIfAborted();
        return undefined;
      }
    },

    // Ollama has no tokenizer endpoint.
    countTokens: () => Promise.resolve(undefined),
  };
}

/**
 * Returns `undefined` if the server responded without the facts, for example a proxy that only forwards chats.
 *
 * @throws Other failures.
 */
async function ignoreUnreachable<T>(response: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UpstreamError && error.status !== undefined) return undefined;
    throw error;
  }
}

function readMinimum(...sizes: (number | undefined)[]): number | undefined {
  const known = sizes.filter((size) => size !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Estimates the number of tokens of a call if the caller didn't count them. */
function estimateNeeded(chat: ChatCall): number {
  return Math.ceil(estimateCallTokens(chat) * ESTIMATE_ERROR) + (getReplyLimit(chat) ?? REPLY_TOKENS);
}

function createSpillNotice(model: string, { sizeBytes, vramBytes }: LoadedModel): ServerNotice | undefined {
  if (vramBytes >= sizeBytes) return undefined;
  const share = Math.round((1 - vramBytes / sizeBytes) * 100);
  const message = vramBytes === 0
    ? `"${model}" runs in main memory, without a GPU. Replies are slow`
    : `${share}% of "${model}" is in main memory, because it doesn't fit in GPU memory. Replies are slow; a smaller context or model helps`;
  return { code: "model_spills", message };
}

function createReloadNotice(contextSize: number) {
  const message = `Reloading the model with ${formatContextSize(contextSize)}`;
  return { code: "model_reload" as const, message, contextSize };
}

/** Adds how to fix an error, if that is known. */
function explainError(call: ModelCall, error: UpstreamError, model: string): UpstreamError {
  const { status } = error;
  if (error.kind === "not_found" && /model .*not found/i.test(error.message)) {
    return new UpstreamError(
      "not_found",
      `The model at "${call.target.baseUrl}" can't answer: "${model}" isn't installed there. Run: ollama pull ${model}`,
      { status, cause: error },
    );
  }
  if (/does not support tools/i.test(error.message)) {
    return new UpstreamError("failed", `The model "${model}" does not support tools. Choose another model`, {
      status,
      cause: error,
    });
  }
  return error;
}

/** The smallest context size to request. */
const FIRST_SIZE = 4_096;

/**
 * Chooses a context size: 4,096 doubled until the call fits, up to a limit. If the loaded size is sufficient, it stays.
 *
 * @param needed Number of tokens of prompt and reply.
 * @param loaded The context size of the loaded model.
 * @param most The maximum: that of the model, or the owner's limit.
 */
function chooseContextSize(needed: number, loaded: number | undefined, most = Infinity): number {
  if (loaded !== undefined && loaded >= Math.min(needed, most) && loaded <= most) return loaded;
  let size = FIRST_SIZE;
  while (size < needed && size < most) size *= 2;
  return Math.min(size, most);
}

/**
 * Formats a size for messages, with its article: `"a 16k context"`, `"an 8k context"`, `"a context of 5,000 tokens"`.
 */
function formatContextSize(tokens: number): string {
  if (tokens % 1024 !== 0) return `a context of ${tokens.toLocaleString("en-US")} tokens`;
  const size = `${tokens / 1024}`;
  return `${size.startsWith("8") || size === "11" || size === "18" ? "an" : "a"} ${size}k context`;
}

const NANOSECONDS_PER_MS = 1_000_000;

/** One line of the stream, or the whole response. */
interface Frame {
  message?: { content?: unknown; thinking?: unknown; tool_calls?: unknown };
  done?: unknown;
  done_reason?: unknown;
  error?: unknown;
  [measurement: string]: unknown;
}

/** Creates the translator of one reply. */
export function createOllamaTranslator(call: ModelCall): ReplyTranslator {
  let toolCount = 0;

  function addToolCalls(calls: unknown[], out: ChatEvent[]): void {
    const delta = calls.filter(isJsonObject).map((toolCall) => {
      const named = isJsonObject(toolCall.function) ? toolCall.function : {};
      const { arguments: values = {} } = named;
      return {
        index: toolCount++,
        id: isNonEmptyString(toolCall.id) ? toolCall.id : `call_${crypto.randomUUID()}`,
        type: "function",
        function: { name: named.name, arguments: typeof values === "string" ? values : JSON.stringify(values) },
      };
    });
    if (delta.length > 0) out.push({ type: "tool_calls", delta });
  }

  /** Returns true for the last frame. */
  function addFrame(frame: Frame, out: ChatEvent[]): boolean {
    if (isReportedError(frame)) throw call.createReportedError(frame);
    const { content, thinking, tool_calls: toolCalls } = frame.message ?? {};
    if (isNonEmptyString(thinking)) out.push({ type: "reasoning", text: thinking });
    if (isNonEmptyString(content)) out.push({ type: "text", text: content });
    if (Array.isArray(toolCalls)) addToolCalls(toolCalls, out);
    if (frame.done !== true) return false;
    const reason = parseFinishReason(frame.done_reason) ?? "stop";
    out.push({ type: "finish", reason: toolCount > 0 && reason === "stop" ? "tool_calls" : reason });
    out.push({ type: "usage", usage: toUsage(frame), timings: toTimings(frame) });
    return true;
  }

  return {
    hasLines: true,
    translateEvent(_, data, out) {
      const frame = parseEventData(call, data);
      return isJsonObject(frame) && addFrame(frame, out);
    },
    translateResponse(value, out) {
      if (!isJsonObject(value) || (!isReportedError(value) && !isJsonObject(value.message))) {
        throw call.createError("bad_answer", "returned JSON that isn't a chat response");
      }
      addFrame(value, out);
    },
  };
}

function toUsage(frame: Frame): Usage {
  const [prompt, completion] = [readNumber(frame, "prompt_eval_count"), readNumber(frame, "eval_count")];
  // Older versions omit the count of a prompt that is in their cache.
  if (prompt === 0) return { completion_tokens: completion };
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Converts measurements to llama.cpp's names, which other providers pass on unchanged. */
function toTimings(frame: Frame): Record<string, number> {
  const toMilliseconds = (name: string) => readNumber(frame, name) / NANOSECONDS_PER_MS;
  const [promptMs, predictedMs] = [toMilliseconds("prompt_eval_duration"), toMilliseconds("eval_duration")];
  const [prompt, predicted] = [readNumber(frame, "prompt_eval_count"), readNumber(frame, "eval_count")];
  return {
    load_ms: toMilliseconds("load_duration"),
    prompt_n: prompt,
    prompt_ms: promptMs,
    ...(promptMs > 0 && { prompt_per_second: prompt / promptMs * 1000 }),
    predicted_n: predicted,
    predicted_ms: predictedMs,
    ...(predictedMs > 0 && { predicted_per_second: predicted / predictedMs * 1000 }),
  };
}

function readNumber(frame: Frame, name: string): number {
  const value = frame[name];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
