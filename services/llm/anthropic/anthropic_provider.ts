/** Anthropic's Messages endpoint, at Anthropic itself or at a local server that offers it. */
import { readText } from "../../http/read_body.ts";
import { acceptAnswer, type Accepted, badAnswer, parseAnswer } from "../streaming/response_body.ts";
import { anthropicTranslator } from "./anthropic_events.ts";
import { anthropicBody, SAMPLING_FIELDS } from "./anthropic_request.ts";
import { headerKey } from "../auth_key.ts";
import { gathered, openCall, withCall } from "../call.ts";
import type { ChatCall } from "../chat_event.ts";
import { EndpointSearch } from "../connections/endpoint_search.ts";
import { parseModelList } from "../connections/model_list.ts";
import { withShortWait } from "../openai/openai_provider.ts";
import type { ListedModel, ModelList, Provider, UpstreamTarget } from "../provider.ts";
import { readReply } from "../streaming/reply_reader.ts";
import type { UpstreamCall, UpstreamHttp } from "../model_call.ts";

const API_VERSION = "2023-06-01";
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const PAGE_SIZE = 1000;
const MAX_PAGES = 20;

/** Makes the provider for Anthropic's protocol. */
export function createAnthropicProvider(http: UpstreamHttp): Provider {
  const endpoints = new EndpointSearch();

  async function post(call: UpstreamCall, chat: ChatCall, stream: boolean): Promise<Accepted> {
    const { target } = call;
    const hasSampling = SAMPLING_FIELDS.some((name) => chat.params[name] !== undefined && chat.params[name] !== null);
    return await endpoints.find(target.baseUrl, async (prefix) => {
      for (let withSampling = true;; withSampling = false) {
        const response = await http.send(call, {
          method: "POST",
          url: `${prefix}/messages`,
          headers: { ...headersFor(target), "content-type": "application/json" },
          body: JSON.stringify(anthropicBody(target, chat, { stream, withSampling })),
        });
        if (response.ok) return await acceptAnswer(call, response, stream, anthropicTranslator(call));
        const error = await call.failed(response);
        const isAboutSampling = error.status === 400 && /temperature|top_p|top_k|sampling/.test(error.message);
        if (!isAboutSampling || !withSampling || !hasSampling) throw error;
      }
    });
  }

  async function readModels(call: UpstreamCall, prefix: string): Promise<ModelList> {
    const data: ListedModel[] = [];
    let after = "";
    for (let page = 0; page < MAX_PAGES; page++) {
      const url = `${prefix}/models?limit=${PAGE_SIZE}${after && `&after_id=${encodeURIComponent(after)}`}`;
      const response = await http.send(call, { method: "GET", url, headers: headersFor(call.target) });
      if (!response.ok) throw await call.failed(response);
      const value = parseAnswer(call, await readText(response, MAX_LIST_BYTES));
      const list = parseModelList(value);
      if (list === undefined) {
        if (typeof value === "object" && value !== null && "error" in value) throw call.reported(value);
        throw badAnswer(call, "gave JSON that is no list of models");
      }
      data.push(...list.data);
      const { has_more: hasMore, last_id: lastId } = value as { has_more?: unknown; last_id?: unknown };
      if (hasMore !== true || typeof lastId !== "string" || lastId === after) break;
      after = lastId;
    }
    return parseModelList(data) ?? { object: "list", data: [] };
  }

  const listModels = (target: UpstreamTarget, signal: AbortSignal): Promise<ModelList> =>
    withCall(
      withShortWait(target),
      signal,
      (call) => endpoints.find(target.baseUrl, (prefix) => readModels(call, prefix)),
    );

  return {
    listModels,

    openChatStream: (target, chat, signal) =>
      openCall(
        target,
        signal,
        async (call) => readReply(await post(call, chat, true), call, anthropicTranslator(call)),
      ),

    completeChat: (target, chat, signal) =>
      withCall(target, signal, async (call) => {
        const answer = await post(call, chat, false);
        return await gathered(readReply(answer, call, anthropicTranslator(call)), chat.model);
      }),

    // Its own counting endpoint is of the paid service and limited by rate; the learned ratio serves as well.
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

function headersFor(target: UpstreamTarget): Record<string, string> {
  const key = headerKey(target.apiKey);
  return { "anthropic-version": API_VERSION, ...(key !== undefined && { "x-api-key": key }) };
}
