/** Translates OpenAI's stream chunks and complete responses to ChatEvents (docs/protocols/llm.md, "Stream" and "Reasoning"). */
import type { AudioPiece, ChatEvent, CompletionChoice, PromptProgress, Usage } from "../chat_event.ts";
import { isReportedError, type ModelCall } from "../model_call.ts";
import { parseFinishReason } from "../streaming/finish_reason.ts";
import { isEndMark, parseEventData, type ReplyTranslator } from "../streaming/response_body.ts";
import { ToolCallReader, ToolCalls } from "../streaming/tool_calls.ts";
import { readSources } from "../sources.ts";
import { isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";

interface Delta {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_details?: unknown;
  images?: unknown;
  audio?: { transcript?: unknown; id?: unknown; data?: unknown; expires_at?: unknown } | null;
  tool_calls?: unknown;
  function_call?: unknown;
}

interface Choice {
  index?: unknown;
  delta?: Delta | null;
  message?: Delta | null;
  /** Text in the format of the legacy completions endpoint. */
  text?: unknown;
  finish_reason?: unknown;
  error?: unknown;
}

interface Chunk {
  choices?: Choice[] | null;
  usage?: Usage | null;
  timings?: Record<string, unknown> | null;
  /** llama.cpp, if it was requested. */
  prompt_progress?: unknown;
  error?: unknown;
  /** Set if Gemini rejects the prompt. */
  prompt_feedback?: { block_reason?: unknown } | null;
  promptFeedback?: { blockReason?: unknown } | null;
}

/** Creates the translator of one OpenAI reply. */
export function createOpenAiTranslator(call: ModelCall): ReplyTranslator {
  let hasFinished = false;
  let isRefusal = false;
  const toolCalls = new ToolCallReader();

  function addChunk(chunk: Chunk, out: ChatEvent[]): void {
    if (typeof chunk !== "object" || chunk === null) return;
    if (isJsonObject(chunk.prompt_progress)) addProgress(chunk.prompt_progress, out);
    const choice = findFirstChoice(chunk);
    if (choice !== undefined) {
      const delta = choice.delta ?? choice.message;
      if (typeof delta === "object" && delta !== null) {
        isRefusal ||= isNonEmptyString(delta.refusal);
        addDelta(delta, toolCalls, out);
      } else if (isNonEmptyString(choice.text)) out.push({ type: "text", text: choice.text });
    }
    const sources = readSources(chunk, choice, choice?.delta, choice?.message);
    if (sources.length > 0) out.push({ type: "sources", sources });
    if (isReportedError(chunk)) throw call.createReportedError(chunk);
    if (choice?.error) throw call.createReportedError({ error: choice.error });
    const isBlocked = chunk.prompt_feedback?.block_reason ?? chunk.promptFeedback?.blockReason;
    const reason = parseFinishReason(isBlocked ? "content_filter" : choice?.finish_reason);
    if (reason !== undefined && !hasFinished) {
      if (reason === "error") throw call.createReportedError({ error: "the server ended the reply with an error" });
      hasFinished = true;
      out.push({ type: "finish", reason: isRefusal && reason === "stop" ? "content_filter" : reason });
    }
    if (chunk.usage || chunk.timings) addUsage(chunk, out);
  }

  return {
    translateEvent(name, data, out) {
      if (isEndMark(data)) return true;
      if (name === "error") throw call.createReportedError(parseOrText(data));
      if (data === "") return false;
      addChunk(parseEventData(call, data) as Chunk, out);
      return false;
    },
    translateResponse(value, out) {
      if (!isChatResponse(value)) throw call.createError("bad_answer", "returned JSON that isn't a chat response");
      addChunk(value as Chunk, out);
    },
  };
}

function addProgress({ total, cache, processed }: Record<string, unknown>, out: ChatEvent[]): void {
  if (![total, cache, processed].every((count) => Number.isSafeInteger(count) && (count as number) >= 0)) return;
  out.push({ type: "progress", progress: { total, cache, processed } as PromptProgress });
}

/** Reports whether JSON is a chat response, or an error instead of one. */
function isChatResponse(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { choices, prompt_feedback: feedback, promptFeedback } = value as Chunk;
  return Array.isArray(choices) || Boolean(feedback ?? promptFeedback) || isReportedError(value);
}

/** Returns the first choice. Parlor never requests more than one. */
function findFirstChoice(chunk: Chunk): Choice | undefined {
  const choices = chunk.choices;
  if (!Array.isArray(choices)) return undefined;
  const choice = choices[0];
  if (choices.length < 2) return choice === null || (choice?.index ?? 0) !== 0 ? undefined : choice;
  return choices.find((candidate) => candidate && (candidate.index ?? 0) === 0);
}

function addDelta(delta: Delta, toolCalls: ToolCallReader, out: ChatEvent[]): void {
  const reasoning = readReasoning(delta);
  if (reasoning !== "") out.push({ type: "reasoning", text: reasoning });
  if (Array.isArray(delta.reasoning_details) && delta.reasoning_details.length > 0) {
    out.push({ type: "reasoning_details", details: delta.reasoning_details });
  }
  if (isNonEmptyString(delta.content)) out.push({ type: "text", text: delta.content });
  else if (Array.isArray(delta.content)) addParts(delta.content, out);
  else if (isNonEmptyString(delta.refusal)) out.push({ type: "text", text: delta.refusal });
  else if (isNonEmptyString(delta.audio?.transcript)) out.push({ type: "text", text: delta.audio.transcript });
  const urls = [delta.images].flat().flatMap(readImageUrl);
  if (urls.length > 0) out.push({ type: "images", urls });
  if (isJsonObject(delta.audio)) addAudio(delta.audio, out);
  // `function_call` is the predecessor of `tool_calls`.
  const calls = delta.tool_calls ?? delta.function_call;
  if (calls === undefined || calls === null) return;
  const fragments = toolCalls.read([calls].flat());
  if (fragments.length > 0) out.push({ type: "tool_calls", delta: fragments });
}

/** Adds sound. @see https://platform.openai.com/docs/guides/audio */
function addAudio({ id, data, expires_at: expires }: Record<string, unknown>, out: ChatEvent[]): void {
  const audio: AudioPiece = {
    ...(isNonEmptyString(id) && { id }),
    ...(isNonEmptyString(data) && { data }),
    ...(typeof expires === "number" && { expires_at: expires }),
  };
  if (Object.keys(audio).length > 0) out.push({ type: "audio", audio });
}

/**
 * Adds content parts: some servers return content like in a request. Mistral's thinking models return parts of the type
 * `thinking`.
 */
function addParts(parts: unknown[], out: ChatEvent[]): void {
  const urls = parts.flatMap(readImageUrl);
  if (urls.length > 0) out.push({ type: "images", urls });
  for (const part of parts as ({ type?: unknown; text?: unknown; thinking?: unknown } | null)[]) {
    if (part?.type === "thinking") {
      const text = joinTexts(part.thinking);
      if (text !== "") out.push({ type: "reasoning", text });
    } else if (isNonEmptyString(part?.text)) out.push({ type: "text", text: part.text });
  }
}

/** Returns the URL of a picture: a content part, or an object with base64 data. */
function readImageUrl(part: unknown): string[] {
  if (!isJsonObject(part)) return [];
  const { image_url: image, url, b64_json: data } = part;
  const found = isJsonObject(image) ? image.url : image ?? url;
  if (isNonEmptyString(found)) return /^(data:image\/|https?:\/\/)/i.test(found) ? [found] : [];
  return isNonEmptyString(data) ? [`data:image/png;base64,${data}`] : [];
}

/** Returns the text of a `thinking` part: a string, or parts of text. */
function joinTexts(thinking: unknown): string {
  if (typeof thinking === "string") return thinking;
  if (!Array.isArray(thinking)) return "";
  return (thinking as ({ text?: unknown } | null)[]).map((part) => isNonEmptyString(part?.text) ? part.text : "").join(
    "",
  );
}

/**
 * Returns the reasoning text of a delta or message.
 *
 * Only reads one field: vLLM writes the same text to two, and OpenRouter repeats it in `reasoning_details`.
 */
function readReasoning(delta: Delta): string {
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

function addUsage(chunk: Chunk, out: ChatEvent[]): void {
  const timings = chunk.timings ?? undefined;
  const usage = chunk.usage ? checkUsage(chunk.usage) : undefined;
  if (usage) out.push(timings ? { type: "usage", usage, timings } : { type: "usage", usage });
  else if (timings) out.push({ type: "usage", usage: toUsage(timings), timings });
}

/** Returns the usage, or `undefined` if it's fake: KoboldCpp up to 1.76 reports 100/100/200 for every reply. */
export function checkUsage(usage: Usage): Usage | undefined {
  if (typeof usage !== "object") return undefined;
  const isFake = usage.prompt_tokens === 100 && usage.completion_tokens === 100 && usage.total_tokens === 200;
  return isFake ? undefined : usage;
}

/** Converts llama.cpp's timings, which it always sends. `prompt_n` excludes cached tokens. */
function toUsage(timings: Record<string, unknown>): Usage {
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

/** Returns a choice whose tool calls have arguments as text. */
export function withToolCalls(choice: CompletionChoice): CompletionChoice {
  const given = choice.message.tool_calls;
  if (!Array.isArray(given) || given.length === 0) return choice;
  const calls = new ToolCalls();
  calls.add(new ToolCallReader().read(given));
  return { ...choice, message: { ...choice.message, tool_calls: calls.all().map(({ index: _, ...call }) => call) } };
}

/** Moves the reasoning to the field of Parlor's own API, and joins content parts. */
export function withReasoningContent(choice: CompletionChoice): CompletionChoice {
  const content: unknown = choice.message.content;
  if (Array.isArray(content)) {
    const events: ChatEvent[] = [];
    addParts(content, events);
    const join = (type: "text" | "reasoning") => events.map((event) => event.type === type ? event.text : "").join("");
    const reasoning = join("reasoning") || readReasoning(choice.message);
    const message = {
      ...choice.message,
      content: join("text"),
      ...(reasoning !== "" && { reasoning_content: reasoning }),
    };
    return { ...choice, message };
  }
  const reasoning = readReasoning(choice.message);
  return reasoning === "" ? choice : { ...choice, message: { ...choice.message, reasoning_content: reasoning } };
}
