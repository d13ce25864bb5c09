/** Anthropic's Messages API, from Anthropic or a local server that offers it (docs/protocols/llm.md, "Anthropic Messages"). */
import { toHeaderKey } from "../../http/api_key.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readField } from "../../json/type_guards.ts";
import type { ChatCall } from "../chat_event.ts";
import { EndpointSearch } from "../connections/endpoint_search.ts";
import { parseModelList, readModelList } from "../connections/model_list.ts";
import { type ModelCall, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import type { ListedModel, ModelList, Provider, UpstreamTarget } from "../provider.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { type AcceptedResponse, acceptResponse } from "../streaming/response_body.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { createAnthropicTranslator } from "./anthropic_events.ts";
import { createAnthropicBody, SAMPLING_FIELDS } from "./anthropic_request.ts";

const API_VERSION = "2023-06-01";
const PAGE_SIZE = 1000;
const MAX_PAGES = 20;

/** Creates the provider for Anthropic's protocol. */
export function createAnthropicProvider(http: HttpClient): Provider {
  const endpoints = new EndpointSearch();

  async function sendChat(call: ModelCall, chat: ChatCall, stream: boolean): Promise<AcceptedResponse> {
    const { target } = call;
    const hasSampling = SAMPLING_FIELDS.some((name) => chat.params[name] !== undefined && chat.params[name] !== null);
    return await endpoints.find(target.baseUrl, async (prefix) => {
      for (let withSampling = true;; withSampling = false) {
        const response = await sendRequest(http, call, {
          url: `${prefix}/messages`,
          headers: createHeaders(target),
          body: createAnthropicBody(target, chat, { stream, withSampling }),
        });
        if (response.ok) return await acceptResponse(call, response, stream, createAnthropicTranslator(call));
        const error = await call.readError(response);
        const isAboutSampling = error.status === 400 && /temperature|top_p|top_k|sampling/.test(error.message);
        if (!isAboutSampling || !withSampling || !hasSampling) throw error;
      }
    });
  }

  async function readPages(call: ModelCall, prefix: string): Promise<ModelList> {
    const models: ListedModel[] = [];
    let after = "";
    for (let page = 0; page < MAX_PAGES; page++) {
      const url = `${prefix}/models?limit=${PAGE_SIZE}${after && `&after_id=${encodeURIComponent(after)}`}`;
      const response = await sendRequest(http, call, { url, headers: createHeaders(call.target) });
      const { list, value } = await readModelList(call, response);
      models.push(...list.data);
      const lastId = readField(value, "last_id");
      if (readField(value, "has_more") !== true || typeof lastId !== "string" || lastId === after) break;
      after = lastId;
    }
    return parseModelList(models) ?? { object: "list", data: [] };
  }

  const listModels = (target: UpstreamTarget, signal: AbortSignal): Promise<ModelList> =>
    runCall(
      withQuickTimeouts(target),
      signal,
      (call) => endpoints.find(target.baseUrl, (prefix) => readPages(call, prefix)),
    );

  return {
    listModels,

    openChatStream: (target, chat, signal) =>
      openStream(
        target,
        signal,
        async (call) => readReply(await sendChat(call, chat, true), call, createAnthropicTranslator(call)),
      ),

    completeChat: (target, chat, signal) =>
      runCall(target, signal, async (call) => {
        const accepted = await sendChat(call, chat, false);
        return await collectCompletion(readReply(accepted, call, createAnthropicTranslator(call)), chat.model);
      }),

    // Anthropic's counting endpoint has a rate limit. Estimates from past usage serve as well.
    countTokens: () => Promise.resolve(undefined),

    async readContextSize(target, model, signal): Promise<number | undefined> {
      try {
        const { data } = await listModels(target, signal);
        const size = data.find((entry) => entry.id === model)?.max_input_tokens;
        return typeof size === "number" && size > 0 ? size : undefined;
      } catch {
        signal.throwIfAborted();
        return undefined;
      }
    },
  };
}

function createHeaders(target: UpstreamTarget): Record<string, string> {
  const key = toHeaderKey(target.apiKey);
  return { "anthropic-version": API_VERSION, ...(key !== undefined && { "x-api-key": key }) };
}
