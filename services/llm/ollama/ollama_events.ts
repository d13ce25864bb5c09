/** Translates the stream of Ollama's own chat API, one JSON value per line, to ChatEvents (docs/protocols/llm.md, "Ollama"). */
import { isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";
import type { ChatEvent, Usage } from "../chat_event.ts";
import type { ModelCall } from "../model_call.ts";
import type { ReplyTranslator } from "../streaming/response_body.ts";

const NANOSECONDS_PER_MS = 1_000_000;

/** One line of the stream, or the whole response. */
interface Frame {
  message?: { content?: unknown; thinking?: unknown; tool_calls?: unknown };
  done?: unknown;
  done_reason?: unknown;
  error?: unknown;
  [measurement: string]: unknown;
}

/** Creates the translator of one reply. */
export function createOllamaTranslator(call: ModelCall): ReplyTranslator {
  let toolCount = 0;

  function addToolCalls(calls: unknown[], out: ChatEvent[]): void {
    const delta = calls.filter(isJsonObject).map((toolCall) => {
      const named = isJsonObject(toolCall.function) ? toolCall.function : {};
      const { arguments: values = {} } = named;
      return {
        index: toolCount++,
        id: isNonEmptyString(toolCall.id) ? toolCall.id : `call_${crypto.randomUUID()}`,
        type: "function",
        function: { name: named.name, arguments: typeof values === "string" ? values : JSON.stringify(values) },
      };
    });
    if (delta.length > 0) out.push({ type: "tool_calls", delta });
  }

  /** Returns true for the last frame. */
  function addFrame(frame: Frame, out: ChatEvent[]): boolean {
    if (frame.error) throw call.createReportedError(frame);
    const { content, thinking, tool_calls: toolCalls } = frame.message ?? {};
    if (isNonEmptyString(thinking)) out.push({ type: "reasoning", text: thinking });
    if (isNonEmptyString(content)) out.push({ type: "text", text: content });
    if (Array.isArray(toolCalls)) addToolCalls(toolCalls, out);
    if (frame.done !== true) return false;
    const reason = isNonEmptyString(frame.done_reason) ? frame.done_reason : "stop";
    out.push({ type: "finish", reason: toolCount > 0 && reason === "stop" ? "tool_calls" : reason });
    out.push({ type: "usage", usage: toUsage(frame), timings: toTimings(frame) });
    return true;
  }

  return {
    hasLines: true,
    translateEvent(_, data, out) {
      const frame: unknown = JSON.parse(data);
      return isJsonObject(frame) && addFrame(frame, out);
    },
    translateResponse(value, out) {
      if (!isJsonObject(value) || (!value.error && !isJsonObject(value.message))) {
        throw call.createError("bad_answer", "returned JSON that isn't a chat response");
      }
      addFrame(value, out);
    },
  };
}

function toUsage(frame: Frame): Usage {
  const [prompt, completion] = [readNumber(frame, "prompt_eval_count"), readNumber(frame, "eval_count")];
  // Older versions leave out the count of a prompt that is in their cache.
  if (prompt === 0) return { completion_tokens: completion };
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Converts the measurements to llama.cpp's names, which the other providers pass on as they are. */
function toTimings(frame: Frame): Record<string, number> {
  const milliseconds = (name: string) => readNumber(frame, name) / NANOSECONDS_PER_MS;
  const [promptMs, predictedMs] = [milliseconds("prompt_eval_duration"), milliseconds("eval_duration")];
  const [prompt, predicted] = [readNumber(frame, "prompt_eval_count"), readNumber(frame, "eval_count")];
  return {
    load_ms: milliseconds("load_duration"),
    prompt_n: prompt,
    prompt_ms: promptMs,
    ...(promptMs > 0 && { prompt_per_second: prompt / promptMs * 1000 }),
    predicted_n: predicted,
    predicted_ms: predictedMs,
    ...(predictedMs > 0 && { predicted_per_second: predicted / predictedMs * 1000 }),
  };
}

function readNumber(frame: Frame, name: string): number {
  const value = frame[name];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
