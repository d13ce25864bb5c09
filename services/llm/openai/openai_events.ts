/** Converts OpenAI-compatible stream chunks and responses to ChatEvents (docs/protocols/llm.md#stream). */
import type { ReplyTranslator } from "../streaming/response_body.ts";
import type { ChatEvent, CompletionChoice, Usage } from "../chat_event.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { UpstreamCall } from "../model_call.ts";
import { isNonEmptyString } from "../../json/type_guards.ts";

interface Delta {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_details?: unknown;
  tool_calls?: unknown;
}

interface Choice {
  index?: unknown;
  delta?: Delta | null;
  message?: Delta | null;
  /** Where the old completions form is spoken. */
  text?: unknown;
  finish_reason?: unknown;
  error?: unknown;
}

interface Chunk {
  choices?: Choice[] | null;
  usage?: Usage | null;
  timings?: Record<string, unknown> | null;
  error?: unknown;
  /** `"error"` where the error lies flat in the value (older vLLM). */
  object?: unknown;
}

/** Makes the translator of one OpenAI-shaped answer. */
export function openAiTranslator(call: UpstreamCall): ReplyTranslator {
  let hasFinished = false;

  function addChunk(chunk: Chunk, out: ChatEvent[]): void {
    if (typeof chunk !== "object" || chunk === null) return;
    const choice = firstChoice(chunk);
    if (choice !== undefined) {
      const delta = choice.delta ?? choice.message;
      if (typeof delta === "object" && delta !== null) addDelta(delta, out);
      else if (isNonEmptyString(choice.text)) out.push({ type: "text", text: choice.text });
    }
    if (chunk.error || chunk.object === "error") throw call.reported(chunk);
    if (choice?.error) throw call.reported({ error: choice.error });
    const reason = choice?.finish_reason;
    if (isNonEmptyString(reason) && !hasFinished) {
      if (reason === "error") throw call.reported({ error: "the server ended the answer with an error" });
      hasFinished = true;
      out.push({ type: "finish", reason });
    }
    if (chunk.usage || chunk.timings) addUsage(chunk, out);
  }

  return {
    event(name, data, out) {
      if (data.startsWith("[DONE]")) return true;
      if (name === "error") throw call.reported(parseOrText(data));
      if (data === "") return false;
      addChunk(JSON.parse(data), out);
      return false;
    },
    whole(value, out) {
      if (!isChatAnswer(value)) throw notAnAnswer(call);
      addChunk(value as Chunk, out);
    },
  };
}

/** Tells an answer of a chat endpoint, or an error in its place, from any other JSON. */
function isChatAnswer(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { choices, error, object } = value as Chunk;
  return Array.isArray(choices) || Boolean(error) || object === "error";
}

/** The error for JSON that is no answer of a chat endpoint. */
function notAnAnswer(call: UpstreamCall): UpstreamError {
  return new UpstreamError("bad_answer", `The model at "${call.target.baseUrl}" gave JSON that is no chat answer`);
}

/** Further choices (`n` above one) are nobody's wish here; only the first counts. */
function firstChoice(chunk: Chunk): Choice | undefined {
  const choices = chunk.choices;
  if (!Array.isArray(choices)) return undefined;
  const choice = choices[0];
  if (choices.length < 2) return choice === null || (choice?.index ?? 0) !== 0 ? undefined : choice;
  return choices.find((candidate) => candidate && (candidate.index ?? 0) === 0);
}

function addDelta(delta: Delta, out: ChatEvent[]): void {
  const reasoning = reasoningOf(delta);
  if (reasoning !== "") out.push({ type: "reasoning", text: reasoning });
  if (isNonEmptyString(delta.content)) out.push({ type: "text", text: delta.content });
  else if (Array.isArray(delta.content)) addParts(delta.content, out);
  else if (isNonEmptyString(delta.refusal)) out.push({ type: "text", text: delta.refusal });
  if (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0) {
    out.push({ type: "tool_calls", delta: delta.tool_calls.map(withoutEmptyName) });
  }
}

/** Some servers give content as parts, as in a request. */
function addParts(parts: unknown[], out: ChatEvent[]): void {
  for (const part of parts as ({ text?: unknown } | null)[]) {
    if (isNonEmptyString(part?.text)) out.push({ type: "text", text: part.text });
  }
}

/**
 * Gives the reasoning text of a delta or message.
 *
 * One field only: vLLM fills two with the same text, OpenRouter repeats the plain string in the details.
 */
function reasoningOf(delta: Delta): string {
  if (isNonEmptyString(delta.reasoning_content)) return delta.reasoning_content;
  if (isNonEmptyString(delta.reasoning)) return delta.reasoning;
  if (!Array.isArray(delta.reasoning_details)) return "";
  let text = "";
  for (const detail of delta.reasoning_details as ({ text?: unknown; summary?: unknown } | null)[]) {
    if (isNonEmptyString(detail?.text)) text += detail.text;
    else if (isNonEmptyString(detail?.summary)) text += detail.summary;
  }
  return text;
}

/** An empty name in a later piece means no name (old LM Studio) and must not replace the real one. */
function withoutEmptyName(piece: unknown): unknown {
  const named = piece as { function?: { name?: unknown } } | null;
  if (named?.function?.name !== "") return piece;
  const { name: _, ...rest } = named.function;
  return { ...named, function: rest };
}

function addUsage(chunk: Chunk, out: ChatEvent[]): void {
  const timings = chunk.timings ?? undefined;
  const usage = chunk.usage ? knownUsage(chunk.usage) : undefined;
  if (usage) out.push(timings ? { type: "usage", usage, timings } : { type: "usage", usage });
  else if (timings) out.push({ type: "usage", usage: usageOfTimings(timings), timings });
}

/** KoboldCpp up to 1.76 reports the same 100/100/200 for every answer; counts learned from it would be wrong. */
export function knownUsage(usage: Usage): Usage | undefined {
  if (typeof usage !== "object") return undefined;
  const isFake = usage.prompt_tokens === 100 && usage.completion_tokens === 100 && usage.total_tokens === 200;
  return isFake ? undefined : usage;
}

/** llama.cpp sends timings without being asked; prompt_n leaves out what its cache held. */
function usageOfTimings(timings: Record<string, unknown>): Usage {
  const count = (name: string) => (typeof timings[name] === "number" ? timings[name] : 0);
  const prompt = count("prompt_n") + count("cache_n");
  const completion = count("predicted_n");
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function parseOrText(data: string): unknown {
  try {
    const value = JSON.parse(data);
    return typeof value === "object" && value !== null ? value : { error: String(value) };
  } catch {
    return { error: data };
  }
}

/** Fills the reasoning field under the one name our own answers use. */
export function withReasoningContent(choice: CompletionChoice): CompletionChoice {
  const reasoning = reasoningOf(choice.message);
  return reasoning === "" ? choice : { ...choice, message: { ...choice.message, reasoning_content: reasoning } };
}
