/** Anthropic's Messages API, from Anthropic or a local server that offers it (docs/protocols/llm.md, "Anthropic Messages"). */
import { EndpointSearch, toHeaderKey } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { readField } from "../../json/type_guards.ts";
import type { ChatCall } from "../chat_event.ts";
import { parseModelList, readModelList } from "../connections/model_list.ts";
import { type ModelCall, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import type { ListedModel, ModelList, Provider, SentFacts, UpstreamTarget } from "../provider.ts";
import { sendLearning, UnsavedRefusals } from "../refusals/send_learning.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { type AcceptedResponse, acceptResponse } from "../streaming/response_body.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { createAnthropicTranslator } from "./anthropic_events.ts";
import { createAnthropicBody, THINKING_REASON, toThinking } from "./anthropic_request.ts";

const API_VERSION = "2023-06-01";
const PAGE_SIZE = 1000;
const MAX_PAGES = 20;
const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_ADAPTIVE_MODELS = 200;

/** A model without budgets names the field, and the type to use instead. */
const BUDGET_REFUSAL = /budget_tokens.*(not supported|no longer)|thinking\.type.*(not supported|adaptive)|adaptive/i;
/** The caller's names of fields that have another name here. */
const CALLER_NAMES = new Map([["thinking", "reasoning_effort"], ["output_config", "reasoning_effort"], [
  "stop_sequences",
  "stop",
]]);
/** How Anthropic refuses one of two samplers, "`temperature` and `top_p` cannot both be specified", and thinking. */
const REFUSAL_TEXTS = { top_p: /temperature.*top_p.*cannot both/i, thinking: /does not support (extended )?thinking/i };
/** Anthropic has no default for the limit of a reply. */
const REQUIRED = ["max_tokens"];

/** Creates the provider for Anthropic's protocol. */
export function createAnthropicProvider(http: HttpClient): Provider {
  const endpoints = new EndpointSearch();
  const unsaved = new UnsavedRefusals();
  /** Models that refused a budget for thinking, because they choose it themselves. */
  const adaptiveModels = new Set<string>();

  async function sendChat(
    call: ModelCall,
    chat: ChatCall,
    stream: boolean,
  ): Promise<{ accepted: AcceptedResponse; sent: SentFacts }> {
    const { target } = call;
    const key = `${target.baseUrl}\n${chat.model}`;
    const isAdaptive = adaptiveModels.has(key);
    const { body, leftOut } = createAnthropicBody(target, chat, { stream, isAdaptive });
    const request = { fields: body, callerNames: CALLER_NAMES, refusalTexts: REFUSAL_TEXTS, requiredFields: REQUIRED };
    return await endpoints.find(target.baseUrl, async (prefix) => {
      const send = (fields: Record<string, unknown>) =>
        sendRequest(http, call, { url: `${prefix}/messages`, headers: createHeaders(target), body: fields });
      const { response, sent } = await sendLearning(call, chat.model, request, unsaved, async (fields) => {
        const first = await send(fields);
        if (first.status !== 400 || isAdaptive || !hasBudget(fields)) return first;
        const text = await readText(first, MAX_REFUSAL_BYTES);
        if (!BUDGET_REFUSAL.test(text)) return new Response(text, { status: 400, headers: first.headers });
        if (adaptiveModels.size >= MAX_ADAPTIVE_MODELS) adaptiveModels.clear();
        adaptiveModels.add(key);
        target.connection?.memory?.reportThinking(chat.model, "adaptive");
        return await send({ ...fields, ...toThinking(chat.params.reasoning_effort ?? "medium", true) });
      });
      const accepted = await acceptResponse(call, response, stream, createAnthropicTranslator(call));
      const unfit = leftOut.map((field) => ({ field, status: 400, reason: THINKING_REASON }));
      return { accepted, sent: { ...sent, leftOut: [...unfit, ...sent.leftOut] } };
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
      openStream(target, signal, async (call) => {
        const { accepted, sent } = await sendChat(call, chat, true);
        return { ...readReply(accepted, call, createAnthropicTranslator(call)), sent };
      }),

    completeChat: (target, chat, signal) =>
      runCall(target, signal, async (call) => {
        const { accepted } = await sendChat(call, chat, false);
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

function hasBudget({ thinking }: Record<string, unknown>): boolean {
  return readField(thinking, "type") === "enabled";
}

function createHeaders(target: UpstreamTarget): Record<string, string> {
  const key = toHeaderKey(target.apiKey);
  return { "anthropic-version": API_VERSION, ...(key !== undefined && { "x-api-key": key }) };
}
