/** Images and tools in Anthropic's form. */
import type { ContentPart } from "../chat_event.ts";

/** One content block of a message. */
export interface Block {
  type: string;
  [more: string]: unknown;
}

/** Turns an `image_url` part into an image block: a data URL becomes base64 data, any other stays an address. */
export function imageBlock(part: ContentPart): Block {
  const image = part.image_url as string | { url?: unknown } | undefined;
  const url = String((typeof image === "string" ? image : image?.url) ?? "");
  const match = /^data:([^;,]+);base64,/.exec(url);
  if (match === null) return { type: "image", source: { type: "url", url } };
  return { type: "image", source: { type: "base64", media_type: match[1], data: url.slice(match[0].length) } };
}

/** Turns the tool calls of an assistant message into tool_use blocks. */
export function toolUseBlocks(toolCalls: unknown): Block[] {
  if (!Array.isArray(toolCalls)) return [];
  return toolCalls.map((call: { id?: unknown; function?: { name?: unknown; arguments?: unknown } }) => ({
    type: "tool_use",
    id: call?.id,
    name: call?.function?.name,
    input: parsedArguments(call?.function?.arguments),
  }));
}

/** Arguments are text there and an object here; text that is no JSON object (a cut answer) is kept under one name. */
function parsedArguments(text: unknown): Record<string, unknown> {
  if (typeof text !== "string" || text.trim() === "") return {};
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // falls through: kept as it is
  }
  return { arguments: text };
}

/** Turns `tools` into Anthropic's definitions. */
export function toolDefinitions(tools: unknown): Record<string, unknown>[] {
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

/** Turns `tool_choice` into Anthropic's form. */
export function toolChoice(choice: unknown): Record<string, unknown> | undefined {
  if (choice === "auto" || choice === "none") return { type: choice };
  if (choice === "required") return { type: "any" };
  if (typeof choice !== "object" || choice === null) return undefined;
  const named = (choice as { function?: { name?: unknown } }).function;
  return named === undefined ? { ...choice } : { type: "tool", name: named.name };
}
