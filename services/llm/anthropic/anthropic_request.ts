/** Builds requests to Anthropic's Messages API from OpenAI-style calls (docs/protocols/llm.md, "Anthropic Messages"). */
import type { ChatCall, ChatMessage, ContentPart } from "../chat_event.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import { getDefaultMaxTokens, type UpstreamTarget } from "../provider.ts";

/** Sampler fields. Newer models refuse them, so they are sent only if set, and omitted on a second try. */
export const SAMPLING_FIELDS = ["temperature", "top_p", "top_k"] as const;

/** Fields passed through. Anthropic refuses fields it does not know, so all others are dropped. */
const PASSED_FIELDS = ["thinking", "metadata", "service_tier", "output_config"] as const;

// Sent if the conversation doesn't start with a user message, which Anthropic requires.
const OPENING: Block = { type: "text", text: "(The conversation begins.)" };

/** One content block of a message. */
interface Block {
  type: string;
  [more: string]: unknown;
}

interface AnthropicMessage {
  role: "user" | "assistant";
  content: Block[];
}

/** Builds the request body. `withSampling: false` omits the sampler fields. */
export function createAnthropicBody(
  target: UpstreamTarget,
  call: ChatCall,
  options: { stream: boolean; withSampling: boolean },
): Record<string, unknown> {
  const { params } = call;
  const { system, messages } = toAnthropicMessages(call.messages);
  const body: Record<string, unknown> = {
    model: call.model,
    max_tokens: params.max_tokens ?? params.max_completion_tokens ?? getDefaultMaxTokens(target),
    messages,
    stream: options.stream,
  };
  if (system !== "") body.system = system;
  if (options.withSampling) {
    for (const name of SAMPLING_FIELDS) if (isSet(params[name])) body[name] = params[name];
    // OpenAI's scale ends at 2.
    if (typeof body.temperature === "number") body.temperature = Math.min(1, body.temperature);
  }
  for (const name of PASSED_FIELDS) if (isSet(params[name])) body[name] = params[name];
  const stops = [params.stop ?? params.stop_sequences ?? []].flat()
    .filter((stop) => typeof stop === "string" && stop.trim() !== "");
  if (stops.length > 0) body.stop_sequences = stops;
  const tools = toToolDefinitions(params.tools);
  if (tools.length > 0) {
    body.tools = tools;
    const choice = toToolChoice(params.tool_choice);
    if (choice !== undefined) body.tool_choice = choice;
  }
  return body;
}

/**
 * Converts OpenAI messages.
 *
 * System messages at the start become the system text; later ones become part of a user message in the same place. Adjacent
 * messages of one role are merged. Empty text is dropped, because Anthropic refuses it.
 */
export function toAnthropicMessages(chat: ChatMessage[]): { system: string; messages: AnthropicMessage[] } {
  const system: string[] = [];
  const messages: AnthropicMessage[] = [];
  for (const message of chat) {
    const isSystem = message.role === "system" || message.role === "developer";
    if (isSystem && messages.length === 0) {
      system.push(...toBlocks(message).map((block) => String(block.text ?? "")));
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = message.role === "tool" ? [toToolResult(message)] : toBlocks(message);
    if (role === "assistant") content.push(...toToolUseBlocks(message.tool_calls));
    if (content.length === 0) continue;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  if (messages[0]?.role !== "user") messages.unshift({ role: "user", content: [OPENING] });
  trimPrefill(messages);
  return { system: system.filter((text) => text !== "").join("\n\n"), messages };
}

/** A trailing assistant message is the start of the reply. Anthropic refuses whitespace at its end. */
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
    return typeof part.text === "string" && part.text.trim() !== "" ? [{ type: "text", text: part.text }] : [];
  }
  if (part.type === "image_url") return [toImageBlock(part)];
  return [{ ...part }]; // already in Anthropic's form, or of unknown type
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

/** Parses the arguments of a tool call, which OpenAI sends as text. Text that is not a JSON object (a cut reply) becomes one field. */
function parseArguments(text: unknown): Record<string, unknown> {
  if (typeof text !== "string" || text.trim() === "") return {};
  try {
    const value = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // not JSON
  }
  return { arguments: text };
}

/** Converts `tools` to Anthropic's form. */
function toToolDefinitions(tools: unknown): Record<string, unknown>[] {
  if (!Array.isArray(tools)) return [];
  return tools.map((tool: Record<string, unknown> & { function?: Record<string, unknown> }) => {
    const definition = tool?.function;
    if (definition === undefined) return tool;
    return {
      name: definition.name,
      ...(definition.description !== undefined && { description: definition.description }),
      input_schema: definition.parameters ?? { type: "object", properties: {} },
    };
  });
}

/** Converts `tool_choice` to Anthropic's form. */
function toToolChoice(choice: unknown): Record<string, unknown> | undefined {
  if (choice === "auto" || choice === "none") return { type: choice };
  if (choice === "required") return { type: "any" };
  if (typeof choice !== "object" || choice === null) return undefined;
  const named = (choice as { function?: { name?: unknown } }).function;
  return named === undefined ? { ...choice } : { type: "tool", name: named.name };
}
