/**
 * Calls Anthropic's Messages API, at Anthropic or a local server with this API, and converts its stream events and
 * complete messages to ChatEvents (docs/protocols/llm.md, "Anthropic Messages").
 */
import { EndpointSearch, toHeaderKey } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { isNonEmptyString, readField } from "../../json/type_guards.ts";
import type { ChatCall, ChatEvent, Usage } from "../chat_event.ts";
import {
  type AcceptedResponse,
  acceptResponse,
  isEndMark,
  parseEventData,
  parseModelList,
  readModelList,
  type ReplyTranslator,
} from "../streaming/response_body.ts";
import { isReportedError, type ModelCall, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import type { ListedModel, ModelList, Provider, SentFacts, UpstreamTarget } from "../provider.ts";
import { type ModelRequestBody, sendLearning, UnsavedRefusals } from "../refused_fields.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { parseFinishReason } from "../streaming/finish_reason.ts";
import { readReply } from "../streaming/reply_reader.ts";
import { createAnthropicBody, THINKING_REASON, toThinking } from "./anthropic_request.ts";
import { readCitation } from "../sources.ts";
import { ANTHROPIC_FORMAT, type ReasoningDetail } from "../reasoning.ts";

const API_VERSION = "2023-06-01";
const PAGE_SIZE = 1000;
const MAX_PAGES = 20;
const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_ADAPTIVE_MODELS = 200;

/** The error of a model without budgets names the field and the type to use instead. */
const BUDGET_REFUSAL = /budget_tokens.*(not supported|no longer)|thinking\.type.*(not supported|adaptive)|adaptive/i;
/** The caller's names of fields that have another name here. */
const CALLER_NAMES = new Map([["thinking", "reasoning_effort"], ["output_config", "reasoning_effort"], [
  "stop_sequences",
  "stop",
]]);
/**
 * Errors with which Anthropic rejects one of two samplers ("`temperature` and `top_p` cannot both be specified") or
 * thinking.
 */
const REFUSAL_TEXTS = { top_p: /temperature.*top_p.*cannot both/i, thinking: /does not support (extended )?thinking/i };
/** Anthropic has no default for the limit of a reply. */
const REQUIRED = ["max_tokens"];

/** Creates the provider for Anthropic's protocol. */
export function createAnthropicProvider(http: HttpClient): Provider {
  const endpoints = new EndpointSearch();
  const unsaved = new UnsavedRefusals();
  /** Models that rejected a thinking budget, because they choose it themselves. */
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
    const request = {
      fields: body,
      callerNames: CALLER_NAMES,
      refusalTexts: REFUSAL_TEXTS,
      requiredFields: REQUIRED,
    } satisfies ModelRequestBody;
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

    // Anthropic's counting endpoint has a rate limit. Estimates from past usage are good enough.
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

interface Counts {
  input_tokens?: number;
  output_tokens?: number;
  cache_creation_input_tokens?: number | null;
  cache_read_input_tokens?: number | null;
}

interface ContentBlock {
  type?: string;
  id?: string;
  name?: string;
  text?: string;
  thinking?: string;
  signature?: string;
  /** Reasoning that only Anthropic can read. */
  data?: string;
  input?: unknown;
  citations?: unknown;
}

interface Delta {
  type?: string;
  text?: string;
  thinking?: string;
  partial_json?: string;
  signature?: string;
  citation?: unknown;
  stop_reason?: string | null;
}

interface Frame {
  type?: string;
  index?: number;
  message?: { usage?: Counts };
  content_block?: ContentBlock;
  delta?: Delta;
  usage?: Counts;
  error?: unknown;
  content?: ContentBlock[];
  stop_reason?: string | null;
}

/** A tool call of a reply. `input` is what its block started with, until its first fragment. */
interface StartedTool {
  index: number;
  input?: unknown;
}

/** Creates the translator of one Anthropic reply. */
export function createAnthropicTranslator(call: ModelCall): ReplyTranslator {
  // Running totals: a later count replaces an earlier one.
  let counts: Counts = {};
  // By block index
  const tools = new Map<number, StartedTool>();
  let toolCount = 0;
  // Incomplete reasoning blocks by index
  const reasoningTexts = new Map<number, { text: string; signature: string }>();

  function startBlock(index: number, block: ContentBlock, out: ChatEvent[]): void {
    addCitations(block.citations, out);
    if (block.type === "tool_use") {
      const tool: StartedTool = { index: toolCount++, input: block.input };
      tools.set(index, tool);
      out.push(createToolFragment(tool.index, { id: block.id, type: "function", name: block.name, arguments: "" }));
    } else if (block.type === "text" && isNonEmptyString(block.text)) out.push({ type: "text", text: block.text });
    else if (block.type === "thinking") {
      const { thinking: text = "", signature = "" } = block;
      reasoningTexts.set(index, { text, signature });
      if (text !== "") out.push({ type: "reasoning", text });
    } else if (block.type === "redacted_thinking" && isNonEmptyString(block.data)) {
      out.push(createDetail(index, { type: "reasoning.encrypted", data: block.data }));
    }
  }

  /** Adds the input of a tool call that arrived with its start. Some servers send it whole. */
  function endTool(index: number, out: ChatEvent[]): void {
    const tool = tools.get(index);
    if (tool?.input === undefined) return;
    const input = typeof tool.input === "string" ? tool.input : JSON.stringify(tool.input ?? {});
    tool.input = undefined;
    out.push(createToolFragment(tool.index, { arguments: input }));
  }

  function endBlock(index: number, out: ChatEvent[]): void {
    endTool(index, out);
    const reasoningText = reasoningTexts.get(index);
    if (reasoningText === undefined) return;
    reasoningTexts.delete(index);
    if (reasoningText.signature !== "") out.push(createDetail(index, { type: "reasoning.text", ...reasoningText }));
  }

  function addCitations(citations: unknown, out: ChatEvent[]): void {
    const sources = [citations].flat().map(readCitation).filter((source) => source !== undefined);
    if (sources.length > 0) out.push({ type: "sources", sources });
  }

  function addDelta(index: number, delta: Delta, out: ChatEvent[]): void {
    if (delta.type === "citations_delta") addCitations(delta.citation, out);
    if (delta.type === "text_delta" && isNonEmptyString(delta.text)) out.push({ type: "text", text: delta.text });
    else if (delta.type === "thinking_delta" && isNonEmptyString(delta.thinking)) {
      const reasoningText = reasoningTexts.get(index);
      if (reasoningText !== undefined) reasoningText.text += delta.thinking;
      out.push({ type: "reasoning", text: delta.thinking });
    } else if (delta.type === "signature_delta" && isNonEmptyString(delta.signature)) {
      const reasoningText = reasoningTexts.get(index);
      if (reasoningText !== undefined) reasoningText.signature += delta.signature;
    } else if (delta.type === "input_json_delta" && isNonEmptyString(delta.partial_json)) {
      const tool = tools.get(index);
      if (tool === undefined) return;
      tool.input = undefined;
      out.push(createToolFragment(tool.index, { arguments: delta.partial_json }));
    }
  }

  function finish(reason: unknown, out: ChatEvent[]): void {
    // Some servers omit the end of blocks.
    for (const index of tools.keys()) endTool(index, out);
    const known = parseFinishReason(reason);
    if (known !== undefined) out.push({ type: "finish", reason: known });
    if (Object.keys(counts).length > 0) out.push({ type: "usage", usage: toUsage(counts) });
  }

  function addFrame(frame: Frame, out: ChatEvent[]): boolean {
    switch (frame.type) {
      case "message_start":
        counts = { ...counts, ...frame.message?.usage };
        return false;
      case "content_block_start":
        startBlock(frame.index ?? 0, frame.content_block ?? {}, out);
        return false;
      case "content_block_delta":
        addDelta(frame.index ?? 0, frame.delta ?? {}, out);
        return false;
      case "content_block_stop":
        endBlock(frame.index ?? 0, out);
        return false;
      case "message_delta":
        counts = { ...counts, ...frame.usage };
        finish(frame.delta?.stop_reason, out);
        return false;
      case "message_stop":
        return true;
      default:
        return false; // ping, and future event types
    }
  }

  return {
    translateEvent(name, data, out) {
      // Local servers may send OpenAI's end mark.
      if (isEndMark(data)) return true;
      if (data === "") return false;
      const frame = parseEventData(call, data) as Frame | null;
      if (typeof frame !== "object" || frame === null) return false;
      if (name === "error" || isReportedError(frame)) throw call.createReportedError(frame);
      return addFrame(frame, out);
    },
    translateResponse(value, out) {
      const message = value as Frame | null;
      if (isReportedError(message)) throw call.createReportedError(message);
      if (!Array.isArray(message?.content)) {
        throw call.createError("bad_answer", "returned JSON that isn't a chat response");
      }
      for (const [index, block] of message.content.entries()) {
        if (typeof block !== "object" || block === null) continue;
        startBlock(index, block, out);
        endBlock(index, out);
      }
      counts = message.usage ?? {};
      finish(message.stop_reason ?? "end_turn", out);
    },
  };
}

function createDetail(index: number, detail: ReasoningDetail): ChatEvent {
  return { type: "reasoning_details", details: [{ ...detail, format: ANTHROPIC_FORMAT, index }] };
}

function createToolFragment(
  index: number,
  fragment: { id?: string; type?: string; name?: string; arguments: string },
): ChatEvent {
  const { name, arguments: text, ...rest } = fragment;
  const named = name === undefined ? {} : { name };
  return { type: "tool_calls", delta: [{ index, ...rest, function: { ...named, arguments: text } }] };
}

function toUsage(counts: Counts): Usage {
  const count = (name: keyof Counts) => typeof counts[name] === "number" ? counts[name] : 0;
  const cached = count("cache_read_input_tokens");
  const prompt = count("input_tokens") + count("cache_creation_input_tokens") + cached;
  const completion = count("output_tokens");
  const usage: Usage = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  if (cached > 0) usage.prompt_tokens_details = { cached_tokens: cached };
  return usage;
}
