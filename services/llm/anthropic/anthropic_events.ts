/** Translates Anthropic's stream events and complete messages to ChatEvents (docs/protocols/llm.md, "Anthropic Messages"). */
import type { ReplyTranslator } from "../streaming/response_body.ts";
import type { ChatEvent, Usage } from "../chat_event.ts";
import type { ModelCall } from "../model_call.ts";
import { ANTHROPIC_FORMAT, type ReasoningDetail } from "../reasoning.ts";
import { isNonEmptyString } from "../../json/type_guards.ts";

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
  /** Of reasoning that only Anthropic can read. */
  data?: string;
  input?: unknown;
}

interface Delta {
  type?: string;
  text?: string;
  thinking?: string;
  partial_json?: string;
  signature?: string;
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

// `pause_turn` pauses server-side tools, which Parlor doesn't use.
const FINISH_REASONS = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);

/** Creates the translator of one Anthropic reply. */
export function createAnthropicTranslator(call: ModelCall): ReplyTranslator {
  // Running totals: a later count replaces an earlier one.
  let counts: Counts = {};
  // Block index → index among the tool calls.
  const toolIndexes = new Map<number, number>();
  // Blocks of reasoning that aren't complete, by their index.
  const thoughts = new Map<number, { text: string; signature: string }>();

  function startBlock(index: number, block: ContentBlock, out: ChatEvent[]): void {
    if (block.type === "tool_use") {
      const toolIndex = toolIndexes.size;
      toolIndexes.set(index, toolIndex);
      out.push(createToolFragment(toolIndex, { id: block.id, type: "function", name: block.name, arguments: "" }));
    } else if (block.type === "text" && isNonEmptyString(block.text)) out.push({ type: "text", text: block.text });
    else if (block.type === "thinking") {
      const { thinking: text = "", signature = "" } = block;
      thoughts.set(index, { text, signature });
      if (text !== "") out.push({ type: "reasoning", text });
    } else if (block.type === "redacted_thinking" && isNonEmptyString(block.data)) {
      out.push(createDetail(index, { type: "reasoning.encrypted", data: block.data }));
    }
  }

  function endBlock(index: number, out: ChatEvent[]): void {
    const thought = thoughts.get(index);
    if (thought === undefined) return;
    thoughts.delete(index);
    if (thought.signature !== "") out.push(createDetail(index, { type: "reasoning.text", ...thought }));
  }

  function addDelta(index: number, delta: Delta, out: ChatEvent[]): void {
    if (delta.type === "text_delta" && isNonEmptyString(delta.text)) out.push({ type: "text", text: delta.text });
    else if (delta.type === "thinking_delta" && isNonEmptyString(delta.thinking)) {
      const thought = thoughts.get(index);
      if (thought !== undefined) thought.text += delta.thinking;
      out.push({ type: "reasoning", text: delta.thinking });
    } else if (delta.type === "signature_delta" && isNonEmptyString(delta.signature)) {
      const thought = thoughts.get(index);
      if (thought !== undefined) thought.signature += delta.signature;
    } else if (delta.type === "input_json_delta" && isNonEmptyString(delta.partial_json)) {
      const toolIndex = toolIndexes.get(index);
      if (toolIndex !== undefined) out.push(createToolFragment(toolIndex, { arguments: delta.partial_json }));
    }
  }

  function finish(reason: unknown, out: ChatEvent[]): void {
    if (isNonEmptyString(reason)) out.push({ type: "finish", reason: FINISH_REASONS.get(reason) ?? reason });
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
      if (data.startsWith("[DONE]")) return true;
      if (data === "") return false;
      const frame: Frame | null = JSON.parse(data);
      if (typeof frame !== "object" || frame === null) return false;
      if (name === "error" || frame.type === "error" || frame.error) throw call.createReportedError(frame);
      return addFrame(frame, out);
    },
    translateResponse(value, out) {
      const message = value as Frame | null;
      if (message?.type === "error" || message?.error) throw call.createReportedError(message);
      if (!Array.isArray(message?.content)) {
        throw call.createError("bad_answer", "returned JSON that isn't a chat response");
      }
      for (const [index, block] of message.content.entries()) {
        if (typeof block !== "object" || block === null) continue;
        startBlock(index, block, out);
        endBlock(index, out);
        if (block.type === "tool_use") {
          addDelta(index, { type: "input_json_delta", partial_json: JSON.stringify(block.input ?? {}) }, out);
        }
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
