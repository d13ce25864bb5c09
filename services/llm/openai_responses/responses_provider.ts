/** Servers with OpenAI's Responses API. Model lists and sizes are those of the OpenAI-compatible API. */
import { EndpointSearch, listEndpointPrefixes } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { asObject, isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";
import type { ChatCall, ChatEvent, Usage } from "../chat_event.ts";
import { type ModelCall, openKeptStream, openStream, runCall, sendRequest, withQuickTimeouts } from "../model_call.ts";
import { createAuthHeaders, type Provider, type SentFacts } from "../provider.ts";
import { type ModelRequestBody, sendLearning, UnsavedRefusals } from "../refused_fields.ts";
import { collectCompletion } from "../streaming/completion.ts";
import { readReply } from "../streaming/reply_reader.ts";
import {
  type AcceptedResponse,
  acceptResponse,
  parseEventData,
  type ReplyTranslator,
} from "../streaming/response_body.ts";
import { createResponsesBody, RESPONSES_FORMAT } from "./responses_request.ts";

/** Creates the provider. @param openai The provider for the server's other endpoints. */
export function createResponsesProvider(http: HttpClient, openai: Provider): Provider {
  const endpoints = new EndpointSearch();
  const unsaved = new UnsavedRefusals();

  async function sendChat(
    call: ModelCall,
    chat: ChatCall,
    stream: boolean,
  ): Promise<{ accepted: AcceptedResponse; sent: SentFacts }> {
    const { target } = call;
    const { body, leftOut } = createResponsesBody(target, chat, stream);
    const accept: Record<string, string> = stream ? { accept: STREAM_TYPES } : {};
    const headers = { ...createAuthHeaders(target), ...accept };
    const request: ModelRequestBody = { fields: body, callerNames: new Map() };
    return await endpoints.find(target.baseUrl, async (prefix) => {
      const url = `${prefix}/responses`;
      const send = (fields: Record<string, unknown>) => sendRequest(http, call, { url, headers, body: fields });
      const { response, sent } = await sendLearning(call, chat.model, request, unsaved, send);
      const accepted = await acceptResponse(call, response, stream, createResponsesTranslator(call));
      return { accepted, sent: { ...sent, leftOut: [...leftOut, ...sent.leftOut] } };
    });
  }

  return {
    ...openai,
    openChatStream: (target, chat, signal) =>
      openStream(target, signal, async (call) => {
        const { accepted, sent } = await sendChat(call, chat, true);
        const isKept = chat.streamId !== undefined && target.background === true;
        return { ...readReply(accepted, call, createResponsesTranslator(call, { isKept })), sent };
      }),

    reopenChatStream: (target, { streamId, after }, signal) =>
      openKeptStream(target, signal, (call) =>
        endpoints.find(target.baseUrl, async (prefix) => {
          const position = after === undefined ? "" : `&starting_after=${after}`;
          const url = `${toResponseUrl(prefix, streamId)}?stream=true${position}`;
          const response = await sendRequest(http, call, {
            url,
            headers: { ...createAuthHeaders(target), accept: STREAM_TYPES },
          });
          if (!response.ok) throw await call.readError(response);
          const translator = createResponsesTranslator(call, {
            isKept: true,
            responseId: streamId,
            isResumed: after !== undefined,
          });
          return readReply(await acceptResponse(call, response, true, translator), call, translator);
        })),

    releaseChatStream: (target, streamId, signal) =>
      runCall(withQuickTimeouts(target), signal, async (call) => {
        const headers = createAuthHeaders(target);
        for (const prefix of listEndpointPrefixes(target.baseUrl)) {
          const url = toResponseUrl(prefix, streamId);
          // One that is still being written can't be deleted; one that has ended can't be canceled.
          const cancelled = await sendRequest(http, call, { url: `${url}/cancel`, headers, body: {} });
          await cancelled.body?.cancel();
          const deleted = await sendRequest(http, call, { url, headers, method: "DELETE" });
          await deleted.body?.cancel();
          if (deleted.ok) return;
        }
      }),
    completeChat: (target, chat, signal) =>
      runCall(target, signal, async (call) => {
        const { accepted } = await sendChat(call, chat, false);
        return await collectCompletion(readReply(accepted, call, createResponsesTranslator(call)), chat.model);
      }),
  };
}

const STREAM_TYPES = "text/event-stream, application/json";

/** @see https://platform.openai.com/docs/guides/background */
function toResponseUrl(prefix: string, id: string): string {
  return `${prefix}/responses/${encodeURIComponent(id)}`;
}

/**
 * Creates the translator of one reply.
 *
 * @param options.isKept Reports under which ID the server keeps the reply, and where it is.
 * @param options.responseId The ID, if it's known.
 * @param options.isResumed The stream begins within a reply. What an item contains in whole was streamed, maybe before.
 */
function createResponsesTranslator(
  call: ModelCall,
  { isKept = false, responseId, isResumed = false }: {
    isKept?: boolean;
    responseId?: string;
    isResumed?: boolean;
  } = {},
): ReplyTranslator {
  /** Number of each tool call in the reply, by its position in the output. */
  const callNumbers = new Map<unknown, number>();
  /** Positions in the output whose text or arguments were streamed. */
  const streamed = new Set<unknown>();
  let isRefusal = false;

  function addItem(position: unknown, item: Record<string, unknown>, out: ChatEvent[]): void {
    if (item.type === "reasoning") {
      if (!isResumed && !streamed.has(position)) addText("reasoning", joinTexts(item.summary), out);
      if (isNonEmptyString(item.encrypted_content)) {
        const detail = {
          type: "reasoning.encrypted",
          format: RESPONSES_FORMAT,
          id: item.id,
          data: item.encrypted_content,
        };
        out.push({ type: "reasoning_details", details: [detail] });
      }
    } else if (item.type === "message") {
      if (!isResumed && !streamed.has(position)) addText("text", joinTexts(item.content), out);
    } else if (item.type === "function_call") {
      startCall(position, item, out);
      if (!streamed.has(position) && isNonEmptyString(item.arguments)) addArguments(position, item.arguments, out);
    }
  }

  function startCall(position: unknown, item: Record<string, unknown>, out: ChatEvent[]): void {
    if (callNumbers.has(position)) return;
    const index = callNumbers.size;
    callNumbers.set(position, index);
    const fragment = { index, id: item.call_id, type: "function", function: { name: item.name, arguments: "" } };
    out.push({ type: "tool_calls", delta: [fragment] });
  }

  function addArguments(position: unknown, text: string, out: ChatEvent[]): void {
    const index = callNumbers.get(position);
    if (index !== undefined) out.push({ type: "tool_calls", delta: [{ index, function: { arguments: text } }] });
  }

  function finish(response: Record<string, unknown>, out: ChatEvent[]): void {
    const { status, error } = response;
    if (status === "failed" || isJsonObject(error)) {
      throw call.createReportedError({ error: error ?? "the server ended the reply with an error" });
    }
    const { reason } = asObject(response.incomplete_details);
    const cut = reason === "content_filter" ? "content_filter" : "length";
    const whole = isRefusal ? "content_filter" : callNumbers.size > 0 ? "tool_calls" : "stop";
    out.push({ type: "finish", reason: status === "incomplete" ? cut : whole });
    if (isJsonObject(response.usage)) out.push({ type: "usage", usage: toUsage(response.usage) });
  }

  /** Reports where the stream is: once per read, after its last event. */
  function notePosition(event: Record<string, unknown>, out: ChatEvent[]): void {
    const { id } = asObject(event.response);
    if (isNonEmptyString(id)) responseId = id;
    const after = event.sequence_number;
    if (!isKept || responseId === undefined || typeof after !== "number") return;
    const earlier = out.findIndex(({ type }) => type === "kept");
    if (earlier >= 0) out.splice(earlier, 1);
    out.push({ type: "kept", id: responseId, after });
  }

  return {
    isResumed,
    translateEvent(name, data, out) {
      if (data === "" || data === "[DONE]") return data !== "";
      const event = asObject(parseEventData(call, data));
      notePosition(event, out);
      const { delta, output_index: position } = event;
      const text = typeof delta === "string" ? delta : "";
      switch (event.type ?? name) {
        case "error":
          throw call.createReportedError(isJsonObject(event.error) ? event : { error: event });
        case "response.refusal.delta":
          isRefusal = true;
          addText("text", text, out);
          streamed.add(position);
          break;
        case "response.output_text.delta":
          addText("text", text, out);
          streamed.add(position);
          break;
        case "response.reasoning_summary_part.added":
          if (Number(event.summary_index) > 0) addText("reasoning", "\n\n", out);
          break;
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          addText("reasoning", text, out);
          streamed.add(position);
          break;
        case "response.output_item.added":
          if (asObject(event.item).type === "function_call") startCall(position, asObject(event.item), out);
          break;
        case "response.function_call_arguments.delta":
          addArguments(position, text, out);
          streamed.add(position);
          break;
        case "response.output_item.done":
          addItem(position, asObject(event.item), out);
          break;
        case "response.completed":
        case "response.incomplete":
        case "response.failed":
          finish(asObject(event.response), out);
          return true;
      }
      return false;
    },
    translateResponse(value, out) {
      const response = asObject(value);
      if (!Array.isArray(response.output)) {
        if (response.error) throw call.createReportedError(value);
        throw call.createError("bad_answer", "returned JSON that isn't a response");
      }
      for (const [position, item] of response.output.entries()) addItem(position, asObject(item), out);
      finish(response, out);
    },
  };
}

function addText(type: "text" | "reasoning", text: string, out: ChatEvent[]): void {
  if (text !== "") out.push({ type, text });
}

function joinTexts(parts: unknown): string {
  return (Array.isArray(parts) ? parts : []).map((part) => {
    const { text, refusal } = asObject(part);
    return isNonEmptyString(text) ? text : isNonEmptyString(refusal) ? refusal : "";
  }).join("");
}

function toUsage(usage: Record<string, unknown>): Usage {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage;
  const count = (value: unknown) => typeof value === "number" ? value : 0;
  return {
    prompt_tokens: count(input),
    completion_tokens: count(output),
    total_tokens: count(total ?? count(input) + count(output)),
    ...(isJsonObject(usage.input_tokens_details) && { prompt_tokens_details: usage.input_tokens_details }),
    ...(isJsonObject(usage.output_tokens_details) && { completion_tokens_details: usage.output_tokens_details }),
  };
}
