/** Builds requests to Ollama's own chat API from OpenAI-style calls (docs/protocols/llm.md, "Ollama"). */
import { AppError } from "../../errors.ts";
import { getOwn, isJsonObject } from "../../json/type_guards.ts";
import type { ChatCall, ChatMessage, ContentPart } from "../chat_event.ts";
import { getDialect } from "../dialects/dialects.ts";
import { fitMessages } from "../dialects/portable_messages.ts";
import { fitToolDefinitions } from "../dialects/tool_definitions.ts";
import { mergeFields } from "../openai/openai_request.ts";
import type { UpstreamTarget } from "../provider.ts";
import type { OllamaModelFacts } from "./ollama_models.ts";

/**
 * Names of supported `options`. Ollama ignores others.
 *
 * @see https://docs.ollama.com/modelfile#valid-parameters-and-values
 */
const OPTION_NAMES = new Set([
  ...["temperature", "top_k", "top_p", "min_p", "typical_p", "seed", "repeat_last_n", "repeat_penalty"],
  ...["presence_penalty", "frequency_penalty", "num_predict", "num_ctx", "num_keep", "num_batch", "num_gpu"],
  ...["main_gpu", "num_thread", "use_mmap", "mirostat", "mirostat_tau", "mirostat_eta", "tfs_z"],
]);

/** Samplers that have another name elsewhere. */
const OPTION_ALIASES: Record<string, string> = { repetition_penalty: "repeat_penalty", typical: "typical_p" };

/** Top-level fields of the request that are passed through. */
const PASSED_FIELDS = ["format", "keep_alive", "truncate", "shift", "logprobs", "top_logprobs"];

/** Value of `think`: on, off, or a level of gpt-oss. */
export type Think = boolean | "low" | "medium" | "high";

/** The body of `POST /api/chat`. */
export interface OllamaChatBody {
  model: string;
  messages: OllamaMessage[];
  stream: boolean;
  options: Record<string, unknown>;
  [more: string]: unknown;
}

/** One message of a request. */
interface OllamaMessage {
  role: string;
  content: string;
  /** Base64, without the prefix of a data URL. */
  images?: string[];
  thinking?: string;
  tool_calls?: { id?: unknown; function: { index: number; name: unknown; arguments: Record<string, unknown> } }[];
  tool_name?: string;
  tool_call_id?: string;
}

/**
 * Builds the request body.
 *
 * `truncate` and `shift` are off: otherwise Ollama drops the oldest messages that don't fit, without an error.
 *
 * @param call From `withExtraBody`.
 * @param contextSize Sent as `num_ctx`, unless the caller sets one.
 * @throws {AppError} `invalid_request` for content that Ollama can't receive.
 */
export function createOllamaBody(
  call: ChatCall,
  { stream, contextSize, think }: { stream: boolean; contextSize?: number; think?: Think },
): OllamaChatBody {
  const { params, extraBody } = call;
  const body: OllamaChatBody = {
    ...extraBody,
    model: call.model,
    messages: toOllamaMessages(call.messages),
    stream,
    truncate: false,
    shift: false,
    options: { ...(contextSize !== undefined && { num_ctx: contextSize }), ...toOllamaOptions(call) },
  };
  if (think !== undefined) body.think = think;
  const format = toFormat(params.response_format);
  if (format !== undefined) body.format = format;
  for (const name of PASSED_FIELDS) if (isSet(params[name])) body[name] = params[name];
  if (Array.isArray(params.tools) && params.tools.length > 0 && params.tool_choice !== "none") {
    body.tools = fitToolDefinitions("ollama", params.tools);
  }
  return body;
}

/**
 * Converts `reasoning_effort` to `think`. If the request has `think`, that is used.
 *
 * gpt-oss has levels and always thinks; all other models only have a switch.
 *
 * @see https://docs.ollama.com/capabilities/thinking
 */
export function toThink(params: Record<string, unknown>, facts: OllamaModelFacts | undefined): Think | undefined {
  const { think, reasoning_effort: effort } = params;
  if (typeof think === "boolean" || think === "low" || think === "medium" || think === "high") return think;
  if (typeof effort !== "string" || effort === "") return undefined;
  if (facts?.hasThinkingLevels) return effort === "medium" || effort === "high" ? effort : "low";
  // A model that can't think only rejects a request to think.
  return effort !== "none";
}

/** Returns a call that includes the connection's additional fields. */
export function withExtraBody(target: UpstreamTarget, call: ChatCall): ChatCall {
  return { ...call, extraBody: mergeFields(target.extraBody, call.extraBody) };
}

/** Returns the token limit of the reply in a call. */
export function getReplyLimit(call: ChatCall): number | undefined {
  return readSize(toOllamaOptions(call).num_predict);
}

/** Returns the context size in a call. */
export function getOwnContextSize(call: ChatCall): number | undefined {
  return readSize(toOllamaOptions(call).num_ctx);
}

function readSize(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 ? value : undefined;
}

function toOllamaOptions({ params, extraBody = {} }: ChatCall): Record<string, unknown> {
  const options: Record<string, unknown> = isJsonObject(extraBody.options) ? { ...extraBody.options } : {};
  const limit = params.max_tokens ?? params.max_completion_tokens;
  if (isSet(limit)) options.num_predict = limit;
  for (const [name, value] of Object.entries(params)) {
    const option = getOwn(OPTION_ALIASES, name) ?? name;
    // Ollama's own name takes precedence over an alias.
    if (isSet(value) && OPTION_NAMES.has(option) && (option === name || !isSet(params[option]))) {
      options[option] = value;
    }
  }
  const stops = [params.stop ?? []].flat().filter((stop) => typeof stop === "string" && stop !== "");
  if (stops.length > 0) options.stop = stops;
  return { ...options, ...(isJsonObject(params.options) && params.options) };
}

/** Converts `response_format`. @see https://docs.ollama.com/capabilities/structured-outputs */
function toFormat(format: unknown): unknown {
  if (!isJsonObject(format)) return undefined;
  if (format.type === "json_object") return "json";
  const schema = format.type === "json_schema" && isJsonObject(format.json_schema)
    ? format.json_schema.schema
    : undefined;
  return isJsonObject(schema) ? schema : undefined;
}

function toOllamaMessages(messages: readonly ChatMessage[]): OllamaMessage[] {
  const toolNames = new Map<unknown, string>();
  return fitMessages(getDialect("ollama"), messages).map((message) => {
    const { text, images } = splitContent(message.content);
    const role = message.role === "developer" ? "system" : message.role;
    const converted: OllamaMessage = { role, content: text, ...(images.length > 0 && { images }) };
    const calls = toToolCalls(message.tool_calls);
    for (const { id, function: { name } } of calls) toolNames.set(id, String(name));
    if (calls.length > 0) {
      converted.tool_calls = calls;
      // Within a reply, a model continues with the thoughts that led to its calls.
      if (typeof message.reasoning_content === "string") converted.thinking = message.reasoning_content;
    }
    if (role === "tool") {
      const name = message.name ?? toolNames.get(message.tool_call_id);
      if (typeof name === "string") converted.tool_name = name;
      if (typeof message.tool_call_id === "string") converted.tool_call_id = message.tool_call_id;
    }
    return converted;
  });
}

/** Converts tool calls. Arguments are an object in Ollama's API, and text in OpenAI's. */
function toToolCalls(calls: unknown): NonNullable<OllamaMessage["tool_calls"]> {
  if (!Array.isArray(calls)) return [];
  return calls.filter(isJsonObject).map((call, index) => {
    const named = isJsonObject(call.function) ? call.function : {};
    return {
      ...(isSet(call.id) && { id: call.id }),
      function: { index, name: named.name, arguments: parseArguments(named.arguments) },
    };
  });
}

/** Parses arguments. Text that isn't a JSON object, for example from a truncated reply, becomes one field. */
function parseArguments(value: unknown): Record<string, unknown> {
  if (isJsonObject(value)) return value;
  if (typeof value !== "string" || value.trim() === "") return {};
  try {
    const parsed = JSON.parse(value);
    if (isJsonObject(parsed)) return parsed;
  } catch {
    // Not JSON
  }
  return { arguments: value };
}

function splitContent(content: unknown): { text: string; images: string[] } {
  if (!Array.isArray(content)) return { text: typeof content === "string" ? content : "", images: [] };
  const texts: string[] = [];
  const images: string[] = [];
  for (const part of content as ContentPart[]) {
    if (part.type === "image_url") images.push(toBase64(part));
    else if (typeof part.text === "string") texts.push(part.text);
    else throw new AppError("invalid_request", `Ollama doesn't support content of type "${part.type}"`);
  }
  return { text: texts.join("\n"), images };
}

function toBase64(part: ContentPart): string {
  const image = part.image_url as string | { url?: unknown } | undefined;
  const url = String((typeof image === "string" ? image : image?.url) ?? "");
  const match = /^data:[^,]*;base64,/.exec(url);
  if (match !== null) return url.slice(match[0].length);
  throw new AppError("invalid_request", "Ollama doesn't support image URLs. Attach the image instead");
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
