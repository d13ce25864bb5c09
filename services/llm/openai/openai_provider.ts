/** OpenAI-compatible servers: llama.cpp, Ollama, LM Studio, vLLM, OpenRouter and others (docs/protocols/llm.md). */
import { toBearerHeader } from "../../http/api_key.ts";
import type { HttpClient } from "../../http/http_client.ts";
import type { ChatCall, CompletionChoice, OpenAiCompletion } from "../chat_event.ts";
import { findContextSize } from "../connections/context_size.ts";
import { EndpointSearch } from "../connections/endpoint_search.ts";
import { readModelList } from "../connections/model_list.ts";
import { type ModelCall, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import { getDefaultMaxTokens, type Provider, type UpstreamTarget } from "../provider.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { type AcceptedResponse, acceptResponse } from "../streaming/response_body.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { TokenCounts } from "../token_count.ts";
import { checkUsage, createOpenAiTranslator, withReasoningContent } from "./openai_events.ts";

/** Creates the provider for OpenAI-compatible servers. */
export function createOpenAiProvider(http: HttpClient): Provider {
  const endpoints = new EndpointSearch();
  const tokenCounts = new TokenCounts(http);
  // Servers that refused `stream_options`. Sending it again would cost a failed request each time.
  const withoutUsage = new Set<string>();

  /** Sends a chat request and returns the response of status 200: a stream or one JSON value. */
  async function sendChat(call: ModelCall, chat: ChatCall, stream: boolean): Promise<AcceptedResponse> {
    const { target } = call;
    return await endpoints.find(target.baseUrl, async (prefix) => {
      for (;;) {
        const includeUsage = !withoutUsage.has(prefix);
        const accept: Record<string, string> = stream ? { accept: "text/event-stream, application/json" } : {};
        const response = await sendRequest(http, call, {
          url: `${prefix}/chat/completions`,
          headers: { ...toBearerHeader(target.apiKey), ...accept },
          body: createOpenAiBody(target, chat, { stream, includeUsage }),
        });
        if (response.ok) return await acceptResponse(call, response, stream, createOpenAiTranslator(call));
        const error = await call.readError(response);
        if (error.status !== 400 || !stream || !includeUsage || !/stream_options/.test(error.message)) throw error;
        withoutUsage.add(prefix);
      }
    });
  }

  return {
    openChatStream: (target, chat, signal) =>
      openStream(
        target,
        signal,
        async (call) => readReply(await sendChat(call, chat, true), call, createOpenAiTranslator(call)),
      ),

    completeChat: (target, chat, signal) =>
      runCall(target, signal, async (call) => {
        const accepted = await sendChat(call, chat, false);
        if ("value" in accepted) return toCompletion(call, accepted.value, chat.model);
        return await collectCompletion(readReply(accepted, call, createOpenAiTranslator(call)), chat.model);
      }),

    listModels: (target, signal) =>
      runCall(withQuickTimeouts(target), signal, (call) =>
        endpoints.find(target.baseUrl, async (prefix) => {
          const headers = toBearerHeader(target.apiKey);
          return (await readModelList(call, await sendRequest(http, call, { url: `${prefix}/models`, headers }))).list;
        })),

    readContextSize: (target, model, signal) => findContextSize(http, withQuickTimeouts(target), model, signal),
    countTokens: (target, model, texts, signal) => tokenCounts.count(withQuickTimeouts(target), model, texts, signal),
  };
}

/**
 * Builds the body of a chat request.
 *
 * The token limit is sent under one name: OpenAI's reasoning models accept only `max_completion_tokens`, Ollama knows only
 * `max_tokens`, the others accept both.
 */
export function createOpenAiBody(
  target: UpstreamTarget,
  call: ChatCall,
  options: { stream: boolean; includeUsage: boolean },
): Record<string, unknown> {
  const params = copySetParams(call.params, "model", "messages", "stream", "max_tokens", "max_completion_tokens");
  const limit = call.params.max_tokens ?? call.params.max_completion_tokens ?? getDefaultMaxTokens(target);
  if (!options.stream || !options.includeUsage) delete params.stream_options;
  else params.stream_options ??= { include_usage: true };
  return {
    model: call.model,
    messages: call.messages,
    ...params,
    [isOpenAi(target.baseUrl) ? "max_completion_tokens" : "max_tokens"]: limit,
    stream: options.stream,
  };
}

/** Copies the sampler fields that are set, except those the provider fills itself. */
function copySetParams(params: Record<string, unknown>, ...reserved: string[]): Record<string, unknown> {
  const entries = Object.entries(params);
  return Object.fromEntries(
    entries.filter(([name, value]) => value !== undefined && value !== null && !reserved.includes(name)),
  );
}

function isOpenAi(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname;
  return host === "api.openai.com" || host.endsWith(".openai.azure.com");
}

/** Fills the fields a server left out. */
function toCompletion(call: ModelCall, value: unknown, model: string): OpenAiCompletion {
  // `acceptResponse` has checked that `choices` is an array.
  const completion = value as Partial<OpenAiCompletion> & { choices: Partial<CompletionChoice>[] };
  const choices = completion.choices.map((choice, index): CompletionChoice => {
    const message = Object.assign({ role: "assistant", content: null }, choice?.message);
    return withReasoningContent({
      ...choice,
      index: choice?.index ?? index,
      message,
      finish_reason: choice?.finish_reason ?? null,
    });
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
