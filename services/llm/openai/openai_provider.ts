/** OpenAI-compatible servers: llama.cpp, Ollama, LM Studio, vLLM, OpenRouter and others (docs/protocols/llm.md). */
import type { HttpClient } from "../../http/http_client.ts";
import type { ChatCall, CompletionChoice, OpenAiCompletion } from "../chat_event.ts";
import { createAuthHeaders } from "../auth_headers.ts";
import { findContextSize } from "../connections/context_size.ts";
import { findDeployment } from "../dialects/dialects.ts";
import { EndpointSearch } from "../connections/endpoint_search.ts";
import { readModelList } from "../connections/model_list.ts";
import { type ModelCall, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import { type Provider, type SentFacts } from "../provider.ts";
import { sendLearning, UnsavedRefusals } from "../refusals/send_learning.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { type AcceptedResponse, acceptResponse } from "../streaming/response_body.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { TokenCounts } from "../token_count.ts";
import { checkUsage, createOpenAiTranslator, withReasoningContent } from "./openai_events.ts";
import { createOpenAiBody } from "./openai_request.ts";

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
    const accept: Record<string, string> = stream ? { accept: "text/event-stream, application/json" } : {};
    const headers = { ...createAuthHeaders(target), ...accept };
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
