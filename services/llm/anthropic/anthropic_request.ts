/** Converts an OpenAI-shaped call to an Anthropic request (docs/protocols/llm.md#anthropic-messages). */
import { type Block, imageBlock, toolChoice, toolDefinitions, toolUseBlocks } from "./anthropic_content.ts";
import type { ChatCall, ChatMessage, ContentPart } from "../chat_event.ts";
import { defaultMaxTokens } from "../openai/openai_request.ts";
import type { UpstreamTarget } from "../provider.ts";

/** Sampler fields; newer models refuse them, so they are sent only when set and left out on a second try. */
export const SAMPLING_FIELDS = ["temperature", "top_p", "top_k"] as const;

/** Fields both sides know under one name. Unknown ones are an error there, so nothing else passes. */
const PLAIN_FIELDS = ["thinking", "metadata", "service_tier", "output_config"] as const;

// The first turn has to be the user's, and may not be empty.
const OPENING: Block = { type: "text", text: "(The conversation begins.)" };

interface Turn {
  role: "user" | "assistant";
  content: Block[];
}

/** Builds the body; `withSampling` false leaves the sampler fields out. */
export function anthropicBody(
  target: UpstreamTarget,
  call: ChatCall,
  options: { stream: boolean; withSampling: boolean },
): Record<string, unknown> {
  const { params } = call;
  const { system, turns } = turnsOf(call.messages);
  const body: Record<string, unknown> = {
    model: call.model,
    max_tokens: params.max_tokens ?? params.max_completion_tokens ?? defaultMaxTokens(target),
    messages: turns,
    stream: options.stream,
  };
  if (system !== "") body.system = system;
  if (options.withSampling) {
    for (const name of SAMPLING_FIELDS) if (isSet(params[name])) body[name] = params[name];
    // OpenAI's scale ends at 2.
    if (typeof body.temperature === "number") body.temperature = Math.min(1, body.temperature);
  }
  for (const name of PLAIN_FIELDS) if (isSet(params[name])) body[name] = params[name];
  const stops = [params.stop ?? params.stop_sequences ?? []].flat()
    .filter((stop) => typeof stop === "string" && stop.trim() !== "");
  if (stops.length > 0) body.stop_sequences = stops;
  const tools = toolDefinitions(params.tools);
  if (tools.length > 0) {
    body.tools = tools;
    const choice = toolChoice(params.tool_choice);
    if (choice !== undefined) body.tool_choice = choice;
  }
  return body;
}

/**
 * Folds an OpenAI history into turns.
 *
 * System messages at the start become the system text, later ones part of the user's turn where they stand; neighbours of
 * one role are merged; empty text is left out, since it is refused.
 */
export function turnsOf(messages: ChatMessage[]): { system: string; turns: Turn[] } {
  const system: string[] = [];
  const turns: Turn[] = [];
  for (const message of messages) {
    const isSystem = message.role === "system" || message.role === "developer";
    if (isSystem && turns.length === 0) {
      system.push(...blocksOf(message).map((block) => String(block.text ?? "")));
      continue;
    }
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = message.role === "tool" ? [toolResult(message)] : blocksOf(message);
    if (role === "assistant") content.push(...toolUseBlocks(message.tool_calls));
    if (content.length === 0) continue;
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content });
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: [OPENING] });
  trimPrefill(turns);
  return { system: system.filter((text) => text !== "").join("\n\n"), turns };
}

/** A trailing assistant turn is the beginning of the answer; white space at its end is refused. */
function trimPrefill(turns: Turn[]): void {
  const last = turns.at(-1);
  const block = last?.role === "assistant" ? last.content.at(-1) : undefined;
  if (block?.type === "text" && typeof block.text === "string") block.text = block.text.trimEnd();
}

function blocksOf(message: ChatMessage): Block[] {
  const { content } = message;
  if (typeof content === "string") return content.trim() === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap(blockOf);
}

function blockOf(part: ContentPart): Block[] {
  if (part.type === "text") {
    return typeof part.text === "string" && part.text.trim() !== "" ? [{ type: "text", text: part.text }] : [];
  }
  if (part.type === "image_url") return [imageBlock(part)];
  return [{ ...part }]; // already in Anthropic's form, or nothing we could translate
}

function toolResult(message: ChatMessage): Block {
  return { type: "tool_result", tool_use_id: message.tool_call_id, content: blocksOf(message) };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
