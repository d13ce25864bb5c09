/** OpenAI-shaped servers: llama.cpp, Ollama, LM Studio, vLLM, OpenRouter and the rest. */
import { readText } from "../../http/read_body.ts";
import { acceptAnswer, type Accepted, badAnswer, parseAnswer } from "../streaming/response_body.ts";
import { headerKey } from "../auth_key.ts";
import { gathered, openCall, withCall } from "../call.ts";
import type { ChatCall, CompletionChoice, OpenAiCompletion } from "../chat_event.ts";
import { findContextSize } from "../connections/context_size.ts";
import { EndpointSearch } from "../connections/endpoint_search.ts";
import { parseModelList } from "../connections/model_list.ts";
import { knownUsage, openAiTranslator, withReasoningContent } from "./openai_events.ts";
import { openAiBody } from "./openai_request.ts";
import type { Provider, UpstreamTarget } from "../provider.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { TokenCounts } from "../token_count.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { UpstreamCall, UpstreamHttp } from "../model_call.ts";

// OpenRouter lists hundreds of models with their prices and descriptions.
const MAX_LIST_BYTES = 16 * 1024 * 1024;
/** A list needs no model to think; a server that is silent for longer is busy or broken. */
const LIST_FIRST_BYTE_MS = 15_000;

/** Makes the provider for OpenAI-shaped servers. */
export function createOpenAiProvider(http: UpstreamHttp): Provider {
  const endpoints = new EndpointSearch();
  const tokenCounts = new TokenCounts(http);
  // Servers that refused `stream_options`; asking again would cost a failed request each time.
  const withoutUsage = new Set<string>();

  /** Sends a chat request and gives what a server of status 200 sent: a stream, or one JSON value. */
  async function post(call: UpstreamCall, chat: ChatCall, stream: boolean): Promise<Accepted> {
    const { target } = call;
    return await endpoints.find(target.baseUrl, async (prefix) => {
      for (;;) {
        const includeUsage = !withoutUsage.has(prefix);
        const body = JSON.stringify(openAiBody(target, chat, { stream, includeUsage }));
        const response = await http.send(call, {
          method: "POST",
          url: `${prefix}/chat/completions`,
          headers: {
            ...keyHeader(target),
            "content-type": "application/json",
            ...(stream && { accept: "text/event-stream, application/json" }),
          },
          body,
        });
        if (response.ok) return await acceptAnswer(call, response, stream, openAiTranslator(call));
        const error = await call.failed(response);
        if (error.status !== 400 || !stream || !includeUsage || !/stream_options/.test(error.message)) throw error;
        withoutUsage.add(prefix);
      }
    });
  }

  return {
    openChatStream: (target, chat, signal) =>
      openCall(target, signal, async (call) => readReply(await post(call, chat, true), call, openAiTranslator(call))),

    completeChat: (target, chat, signal) =>
      withCall(target, signal, async (call) => {
        const accepted = await post(call, chat, false);
        if ("value" in accepted) return asCompletion(call, accepted.value, chat.model);
        return await gathered(readReply(accepted, call, openAiTranslator(call)), chat.model);
      }),

    listModels: (target, signal) =>
      withCall(withShortWait(target), signal, (call) =>
        endpoints.find(target.baseUrl, async (prefix) => {
          const response = await http.send(call, {
            method: "GET",
            url: `${prefix}/models`,
            headers: keyHeader(target),
          });
          if (!response.ok) throw await call.failed(response);
          const value = parseAnswer(call, await readText(response, MAX_LIST_BYTES));
          const list = parseModelList(value);
          if (list !== undefined) return list;
          if (typeof value === "object" && value !== null && "error" in value) throw call.reported(value);
          throw badAnswer(call, "gave JSON that is no list of models");
        })),

    readContextSize: (target, model, signal) => findContextSize(http, withShortWait(target), model, signal),
    countTokens: (target, model, texts, signal) => tokenCounts.count(withShortWait(target), model, texts, signal),
  };
}

function asCompletion(call: UpstreamCall, value: unknown, model: string): OpenAiCompletion {
  // `accept` has seen that `choices` is an array.
  const answer = value as Partial<OpenAiCompletion> & { choices: Partial<CompletionChoice>[] };
  const choices = answer.choices.map((choice, index): CompletionChoice => {
    const message = Object.assign({ role: "assistant", content: null }, choice?.message);
    return withReasoningContent({
      ...choice,
      index: choice?.index ?? index,
      message,
      finish_reason: choice?.finish_reason ?? null,
    });
  });
  if (choices.length === 0) {
    throw new UpstreamError("empty", `The model at "${call.target.baseUrl}" gave an empty answer`);
  }
  return {
    ...answer,
    id: answer.id ?? `chatcmpl-${crypto.randomUUID()}`,
    object: "chat.completion",
    created: answer.created ?? Math.floor(Date.now() / 1000),
    model: answer.model ?? model,
    choices,
    usage: answer.usage ? knownUsage(answer.usage) : undefined,
  };
}

function keyHeader(target: UpstreamTarget): Record<string, string> {
  const key = headerKey(target.apiKey);
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

/** Limits of a call that asks about a server, not its model. */
export function withShortWait(target: UpstreamTarget): UpstreamTarget {
  const firstByteMs = Math.min(target.timeouts.firstByteMs, LIST_FIRST_BYTE_MS);
  return { ...target, timeouts: { ...target.timeouts, firstByteMs } };
}
