/** Builds requests to Anthropic's Messages API from OpenAI-style calls (docs/protocols/llm.md, "Anthropic Messages"). */
import type { ChatCall, ChatMessage, ContentPart } from "../chat_event.ts";
import { getOwn, isJsonObject } from "../../json/type_guards.ts";
import { ANTHROPIC_BUDGETS } from "../dialects/known_dialects.ts";
import { fitMessages } from "../dialects/portable_messages.ts";
import { fitParameters } from "../dialects/tool_definitions.ts";
import { mergeFields } from "../openai/openai_request.ts";
import { getDefaultMaxTokens, getTargetDialect, type UpstreamTarget } from "../provider.ts";
import { ANTHROPIC_FORMAT } from "../reasoning.ts";

/** Sampler fields. Newer models reject them, so they're only sent if set. */
const SAMPLING_FIELDS = ["temperature", "top_p", "top_k"] as const;

/** Fields passed through. Anthropic rejects unknown fields, so all others are dropped. */
const PASSED_FIELDS = ["thinking", "metadata", "service_tier", "output_config"] as const;

const BUDGETS: Record<string, number> = ANTHROPIC_BUDGETS;
/** Minimum `top_p` together with thinking. */
const LEAST_TOP_P = 0.95;

/** Why a sampler isn't sent. */
export const THINKING_REASON = "not accepted while the model thinks";

// Added if the conversation doesn't start with a user message, which Anthropic requires.
const OPENING: Block = { type: "text", text: "(The conversation begins.)" };

const CACHE_MARK = { type: "ephemeral" };

/** One content block of a message. */
interface Block {
  type: string;
  [more: string]: unknown;
}

interface AnthropicMessage {
  role: "user" | "assistant";
  content: Block[];
}

/** A request, and the samplers that it can't include. */
export interface AnthropicRequest {
  body: Record<string, unknown>;
  leftOut: string[];
}

/**
 * Builds the request body.
 *
 * @param options.isAdaptive True if the model chooses how much it thinks, and rejects a budget.
 */
export function createAnthropicBody(
  target: UpstreamTarget,
  call: ChatCall,
  { stream, isAdaptive = false }: { stream: boolean; isAdaptive?: boolean },
): AnthropicRequest {
  const { params } = call;
  const fitted = fitMessages(getTargetDialect(target), call.messages);
  const { system, messages } = toAnthropicMessages(fitted, call.stableMessages);
  const limit = params.max_tokens ?? params.max_completion_tokens ?? getDefaultMaxTokens(target);
  const body: Record<string, unknown> = {
    ...mergeFields(target.extraBody, call.extraBody),
    model: call.model,
    max_tokens: limit,
    messages,
    stream,
  };
  if (system !== "") body.system = system;
  for (const name of SAMPLING_FIELDS) if (isSet(params[name])) body[name] = params[name];
  // OpenAI's scale ends at 2.
  if (typeof params.temperature === "number") body.temperature = Math.min(1, params.temperature);
  // The model can't think in a reply that has already started.
  const canThink = messages.at(-1)?.role !== "assistant" && !hasUnsignedCalls(messages);
  if (canThink) Object.assign(body, toThinking(params.reasoning_effort, isAdaptive));
  for (const name of PASSED_FIELDS) if (isSet(params[name])) body[name] = params[name];
  const leftOut = fitThinking(body);
  const stops = [params.stop ?? params.stop_sequences ?? []].flat()
    .filter((stop) => typeof stop === "string" && stop.trim() !== "");
  if (stops.length > 0) body.stop_sequences = stops;
  const tools = toToolDefinitions(params.tools);
  if (tools.length > 0) {
    body.tools = tools;
    const choice = toToolChoice(params.tool_choice);
    if (choice !== undefined) body.tool_choice = choice;
  }
  return { body, leftOut };
}

/**
 * Returns the fields that request thinking: a budget, or an effort for models that choose their own budget.
 *
 * @see https://docs.claude.com/en/docs/build-with-claude/extended-thinking
 * @see https://docs.claude.com/en/docs/build-with-claude/adaptive-thinking
 */
export function toThinking(effort: unknown, isAdaptive: boolean): Record<string, unknown> {
  if (effort === "none") return { thinking: { type: "disabled" } };
  const budget = typeof effort === "string" ? getOwn(BUDGETS, effort) : undefined;
  if (budget === undefined) return {};
  if (!isAdaptive) return { thinking: { type: "enabled", budget_tokens: budget } };
  return { thinking: { type: "adaptive" }, output_config: { effort: effort === "minimal" ? "low" : effort } };
}

/**
 * Adjusts a body for thinking: the limit must be above the budget, and most samplers aren't accepted.
 *
 * @returns The samplers that were removed.
 */
function fitThinking(body: Record<string, unknown>): string[] {
  const thinking = isJsonObject(body.thinking) ? body.thinking : {};
  if (thinking.type !== "enabled" && thinking.type !== "adaptive") return [];
  const { budget_tokens: budget } = thinking;
  const limit = body.max_tokens;
  if (typeof budget === "number" && typeof limit === "number" && limit <= budget) body.max_tokens = budget + limit;
  const isRefused = (name: string) =>
    name === "temperature" ? body.temperature !== 1 : name === "top_p" ? Number(body.top_p) < LEAST_TOP_P : true;
  const removed = SAMPLING_FIELDS.filter((name) => isSet(body[name]) && isRefused(name));
  for (const name of removed) delete body[name];
  return removed;
}

/**
 * Returns whether the current reply has tool calls without signed reasoning, because another server or model made them.
 * Anthropic refuses to think after these.
 *
 * @see https://docs.claude.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks
 */
function hasUnsignedCalls(messages: readonly AnthropicMessage[]): boolean {
  const isQuestion = ({ role, content }: AnthropicMessage) =>
    role === "user" && content.every(({ type }) => type !== "tool_result");
  const reply = messages.slice(messages.findLastIndex(isQuestion) + 1);
  const withCalls = reply.filter(({ content }) => content.some(({ type }) => type === "tool_use"));
  return withCalls.some(({ content }) => !/thinking$/.test(content[0]!.type));
}

/**
 * Converts OpenAI messages.
 *
 * System messages at the start become the system text; later ones become part of a user message in the same place.
 * Adjacent messages of the same role are merged. Empty text is dropped, because Anthropic rejects it. The last of the
 * stable messages is marked for the cache, unless messages are already marked.
 *
 * @param stableCount Number of messages at the start that will be the same in the next call. Default: all.
 * @see https://docs.claude.com/en/docs/build-with-claude/prompt-caching
 */
export function toAnthropicMessages(
  chat: ChatMessage[],
  stableCount = chat.length,
): { system: string | Block[]; messages: AnthropicMessage[] } {
  const system: string[] = [];
  const messages: AnthropicMessage[] = [];
  let stable: Block | undefined;
  for (const [index, message] of chat.entries()) {
    const isSystem = message.role === "system" || message.role === "developer";
    if (isSystem && messages.length === 0) {
      system.push(...toBlocks(message).map((block) => String(block.text ?? "")));
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = message.role === "tool" ? [toToolResult(message)] : toBlocks(message);
    if (role === "assistant") {
      const calls = toToolUseBlocks(message.tool_calls);
      if (calls.length > 0) content.unshift(...toThinkingBlocks(message.reasoning_details));
      content.push(...calls);
    }
    if (content.length === 0) continue;
    // In the next call, the start of the reply is part of a longer message.
    const isPrefill = role === "assistant" && index === chat.length - 1;
    if (index < stableCount && !isPrefill) stable = content.at(-1);
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  if (messages[0]?.role !== "user") messages.unshift({ role: "user", content: [OPENING] });
  trimPrefill(messages);
  const instructions = system.filter((text) => text !== "").join("\n\n");
  if (messages.some(({ content }) => content.some((block) => "cache_control" in block))) {
    return { system: instructions, messages };
  }
  if (stable !== undefined) stable.cache_control = CACHE_MARK;
  else if (instructions !== "") {
    return { system: [{ type: "text", text: instructions, cache_control: CACHE_MARK }], messages };
  }
  return { system: instructions, messages };
}

/**
 * Removes white space at the end of a trailing assistant message, the start of the reply, because Anthropic rejects it.
 */
function trimPrefill(messages: AnthropicMessage[]): void {
  const last = messages.at(-1);
  const block = last?.role === "assistant" ? last.content.at(-1) : undefined;
  if (block?.type === "text" && typeof block.text === "string") block.text = block.text.trimEnd();
}

function toBlocks(message: ChatMessage): Block[] {
  const { content } = message;
  if (typeof content === "string") return content.trim() === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap(toBlock);
}

function toBlock(part: ContentPart): Block[] {
  if (part.type === "text") {
    if (typeof part.text !== "string" || part.text.trim() === "") return [];
    return [{ type: "text", text: part.text, ...(isSet(part.cache_control) && { cache_control: part.cache_control }) }];
  }
  if (part.type === "image_url") return [toImageBlock(part)];
  if (part.type === "file") return [toDocumentBlock(part)];
  return [{ ...part }]; // Already in Anthropic's format, or of unknown type
}

function toToolResult(message: ChatMessage): Block {
  return { type: "tool_result", tool_use_id: message.tool_call_id, content: toBlocks(message) };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Converts an `image_url` part to an image block. A data URL becomes base64 data; other URLs stay URLs. */
function toImageBlock(part: ContentPart): Block {
  const image = part.image_url as string | { url?: unknown } | undefined;
  const url = String((typeof image === "string" ? image : image?.url) ?? "");
  const match = /^data:([^;,]+);base64,/.exec(url);
  if (match === null) return { type: "image", source: { type: "url", url } };
  return { type: "image", source: { type: "base64", media_type: match[1], data: url.slice(match[0].length) } };
}

/** Converts a `file` part with data to a document block. @see https://docs.claude.com/en/docs/build-with-claude/pdf-support */
function toDocumentBlock(part: ContentPart): Block {
  const file = isJsonObject(part.file) ? part.file : {};
  const match = /^data:([^;,]+);base64,/.exec(String(file.file_data ?? ""));
  if (match === null) return { ...part };
  const data = String(file.file_data).slice(match[0].length);
  const title = typeof file.filename === "string" ? { title: file.filename } : {};
  return { type: "document", source: { type: "base64", media_type: match[1], data }, ...title };
}

/** Returns the signed blocks of reasoning that precede tool calls. Anthropic rejects those of other providers. */
function toThinkingBlocks(details: unknown): Block[] {
  if (!Array.isArray(details)) return [];
  return details.filter(isJsonObject).filter(({ format }) => format === ANTHROPIC_FORMAT).flatMap((detail): Block[] => {
    if (detail.type === "reasoning.encrypted") return [{ type: "redacted_thinking", data: detail.data }];
    if (typeof detail.signature !== "string" || detail.signature === "") return [];
    return [{ type: "thinking", thinking: detail.text, signature: detail.signature }];
  });
}

/** Converts the tool calls of an assistant message to `tool_use` blocks. */
function toToolUseBlocks(toolCalls: unknown): Block[] {
  if (!Array.isArray(toolCalls)) return [];
  return toolCalls.map((call: { id?: unknown; function?: { name?: unknown; arguments?: unknown } }) => ({
    type: "tool_use",
    id: call?.id,
    name: call?.function?.name,
    input: parseArguments(call?.function?.arguments),
  }));
}

/**
 * Parses the arguments of a tool call, which OpenAI sends as text. Text that isn't a JSON object (from a truncated
 * reply) becomes one field.
 */
function parseArguments(text: unknown): Record<string, unknown> {
  if (typeof text !== "string" || text.trim() === "") return {};
  try {
    const value = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // Not JSON
  }
  return { arguments: text };
}

/** Converts `tools` to Anthropic's format. */
function toToolDefinitions(tools: unknown): Record<string, unknown>[] {
  if (!Array.isArray(tools)) return [];
  return tools.map((tool: Record<string, unknown> & { function?: Record<string, unknown> }) => {
    const definition = tool?.function;
    if (definition === undefined) return tool;
    return {
      name: definition.name,
      ...(definition.description !== undefined && { description: definition.description }),
      input_schema: fitParameters("anthropic", definition.parameters),
    };
  });
}

/** Converts `tool_choice` to Anthropic's format. */
function toToolChoice(choice: unknown): Record<string, unknown> | undefined {
  if (choice === "auto" || choice === "none") return { type: choice };
  if (choice === "required") return { type: "any" };
  if (typeof choice !== "object" || choice === null) return undefined;
  const named = (choice as { function?: { name?: unknown } }).function;
  return named === undefined ? { ...choice } : { type: "tool", name: named.name };
}
