/** Builds requests to OpenAI-compatible servers in the dialect of the server (docs/protocols/llm.md, "Dialects"). */
import { isJsonObject } from "../../json/type_guards.ts";
import type { ChatCall, ChatMessage } from "../chat_event.ts";
import { type Dialect, REASONING_EFFORTS, REASONING_FIELDS, type ReasoningEffort } from "../dialects/dialect.ts";
import { getDefaultMaxTokens, getTargetDialect, type LeftOutField, type UpstreamTarget } from "../provider.ts";
import { fitMessages } from "../dialects/portable_messages.ts";
import { fitToolDefinitions } from "../dialects/tool_definitions.ts";
import { isLimitName, type ModelRequestBody } from "../refused_fields.ts";

/** Fields that the provider fills itself. */
const RESERVED_FIELDS = new Set(["model", "messages", "stream"]);

/**
 * Builds the body of a chat request.
 *
 * Samplers and the limit of the reply get the server's names. For an unknown dialect, the caller's fields are sent
 * unchanged. Without a limit in the call none is sent, unless the server needs one.
 */
export function createOpenAiBody(
  target: UpstreamTarget,
  call: ChatCall,
  options: { stream: boolean },
): ModelRequestBody {
  const dialect = getTargetDialect(target);
  const callerNames = new Map<string, string>();
  const leftOut: LeftOutField[] = [];
  let fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(call.params)) {
    if (value === undefined || value === null || RESERVED_FIELDS.has(name) || isLimitName(name)) continue;
    if (name === "stream_options" && !options.stream) continue;
    if (name === "logit_bias" && Array.isArray(value) && value.every(isTextBias)) {
      const { sent, reason } = fitLogitBias(dialect, value);
      if (sent !== undefined) fields = mergeFields({ logit_bias: sent }, fields);
      if (reason !== undefined) leftOut.push({ field: name, status: 400, reason });
      continue;
    }
    const effort = name === "reasoning_effort" ? REASONING_EFFORTS.find((one) => one === value) : undefined;
    const translated = effort === undefined
      ? { [toServerName(dialect, name, call.params)]: value }
      : dialect.thinking.toFields(effort as ReasoningEffort);
    for (const field of Object.keys(translated)) if (field !== name) callerNames.set(field, name);
    // Fields that the caller sent under the server's own name take precedence.
    fields = mergeFields(translated, fields);
  }
  if (fields.tools !== undefined) fields.tools = fitToolDefinitions(dialect.name, fields.tools);
  Object.assign(fields, toLimit(target, dialect, call.params));
  const last = call.messages.at(-1);
  if (last?.role === "assistant" && last.tool_calls === undefined) {
    fields = mergeFields(dialect.continuationFields, fields);
  }
  if (options.stream) fields = mergeFields(dialect.progressFields, fields);
  if (options.stream && dialect.asksForUsage) fields.stream_options ??= { include_usage: true };
  const body = mergeFields(mergeFields(target.extraBody, call.extraBody), fields);
  for (const field of RESERVED_FIELDS) delete body[field];
  const fitted = fitMessages(dialect, call.messages, { model: call.model, connectionId: target.connection?.id });
  const messages = chooseReasoning(dialect, fitted);
  return { fields: { model: call.model, messages, ...body, stream: options.stream }, callerNames, leftOut };
}

/** One text of a preset's logit bias. */
interface TextBias {
  /** Text, or a JSON array of token IDs. */
  text: string;
  value: number;
}

function isTextBias(entry: unknown): entry is TextBias {
  return isJsonObject(entry) && typeof entry.text === "string" && typeof entry.value === "number";
}

/**
 * Converts texts to what a server accepts. Only llama.cpp turns texts into tokens itself; elsewhere, only token IDs are
 * sent.
 *
 * @see https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
 */
function fitLogitBias({ name, samplers }: Dialect, biases: readonly TextBias[]): { sent?: unknown; reason?: string } {
  if (!Object.hasOwn(samplers, "logit_bias")) return { reason: "the server has no logit bias" };
  const ids: [number, number][] = [];
  const texts: [string, number][] = [];
  for (const { text, value } of biases) {
    const tokens = parseTokenIds(text);
    if (tokens === undefined) texts.push([text, value]);
    else ids.push(...tokens.map((id): [number, number] => [id, value]));
  }
  if (name === "llama.cpp") return { sent: [...ids, ...texts] };
  return {
    ...(ids.length > 0 && { sent: Object.fromEntries(ids) }),
    ...(texts.length > 0 && { reason: "only llama.cpp accepts texts; other servers need token IDs: [1, 2]" }),
  };
}

function parseTokenIds(text: string): number[] | undefined {
  if (!/^\s*\[[\s\d,]*\]\s*$/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Removes the reasoning of earlier replies, except what the server requires back in a reply with tool calls, up to the
 * next user message.
 */
function chooseReasoning(dialect: Dialect, messages: ChatMessage[]): ChatMessage[] {
  if (!messages.some(hasReasoning) && !isReasoningRequired(dialect)) return messages;
  let start = 0;
  const chosen: ChatMessage[] = [];
  for (let end = 1; end <= messages.length; end++) {
    if (end < messages.length && messages[end]!.role !== "user") continue;
    const turn = messages.slice(start, end);
    const callsTools = turn.some((message) => message.tool_calls !== undefined);
    chosen.push(...turn.map((message) => withReasoning(dialect, message, callsTools)));
    start = end;
  }
  return chosen;
}

function withReasoning(dialect: Dialect, message: ChatMessage, callsTools: boolean): ChatMessage {
  if (message.role !== "assistant") return message;
  const [wanted, ...others] = callsTools ? dialect.returnsReasoningWithTools : [];
  const rest = { ...message };
  for (const field of REASONING_FIELDS) delete rest[field];
  if (wanted === undefined) return rest;
  if (isSet(message[wanted])) return { ...rest, [wanted]: message[wanted] };
  // Parlor's own API and most others name the text `reasoning_content`.
  const text = message.reasoning_content ?? message.reasoning;
  if (others.includes("reasoning") && isSet(text)) return { ...rest, reasoning: text };
  if (wanted !== "reasoning_content") return rest;
  if (isSet(text)) return { ...rest, reasoning_content: text };
  return isReasoningRequired(dialect) ? { ...rest, reasoning_content: "" } : rest;
}

function hasReasoning(message: ChatMessage): boolean {
  return REASONING_FIELDS.some((field) => message[field] !== undefined);
}

/**
 * Returns whether reasoning is required. DeepSeek rejects replies of turns with tool calls without the field, even if the
 * model didn't think.
 *
 * @see https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
 */
function isReasoningRequired({ name }: Dialect): boolean {
  return name === "deepseek";
}

/** Merges two sets of fields. Those of the second take precedence; objects are merged. */
export function mergeFields(
  low: Record<string, unknown> | undefined,
  high: Record<string, unknown> | undefined,
): Record<string, unknown> {
  const merged = { ...low };
  for (const [name, value] of Object.entries(high ?? {})) {
    const before = merged[name];
    merged[name] = isJsonObject(before) && isJsonObject(value) ? mergeFields(before, value) : value;
  }
  return merged;
}

/** Returns the server's name of a field, or the caller's name if that one is taken. */
function toServerName({ samplers }: Dialect, name: string, params: Record<string, unknown>): string {
  const serverName = Object.hasOwn(samplers, name) ? samplers[name]! : name;
  return serverName !== name && isSet(params[serverName]) ? name : serverName;
}

/** Returns the limit of the reply under a single name. */
function toLimit(target: UpstreamTarget, dialect: Dialect, params: Record<string, unknown>): Record<string, unknown> {
  const name = Object.keys(params).find((one) => isLimitName(one) && isSet(params[one]));
  if (name === undefined) {
    const isGivenElsewhere = Object.keys(target.extraBody ?? {}).some(isLimitName);
    return dialect.needsOutputLimit && !isGivenElsewhere ? { [dialect.outputLimit]: getDefaultMaxTokens(target) } : {};
  }
  return { [dialect.name === "generic" ? name : dialect.outputLimit]: params[name] };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
