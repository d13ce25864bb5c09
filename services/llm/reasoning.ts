/**
 * Reasoning that a model writes into its reply instead of a separate field (docs/protocols/llm.md, "Reasoning"), and
 * blocks of reasoning that a server requires back unchanged with tool results: signed text, and reasoning that only it
 * can read.
 *
 * @see https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */
import { isJsonObject } from "../json/type_guards.ts";
import type { ChatEvent, OpenAiCompletion } from "./chat_event.ts";
import type { ChatStream } from "./provider.ts";

/** The tags around reasoning in a text. Case is ignored. */
export interface TagPair {
  open: string;
  close: string;
}

/** The tags of common models: Qwen and DeepSeek, Gemini's OpenAI endpoint, Magistral, and fine-tunes. */
const REASONING_TAGS: readonly TagPair[] = [
  ...["think", "thinking", "thought", "reasoning"].map((name) => ({ open: `<${name}>`, close: `</${name}>` })),
  { open: "[THINK]", close: "[/THINK]" },
];

/** A reply in two parts. */
export interface SplitReply {
  reasoning: string;
  text: string;
}

/**
 * Splits a reply that starts with reasoning between tags, or whose opening tag was already written by the chat
 * template. Reasoning without a closing tag extends to the end, because the reply was truncated.
 *
 * @returns `undefined` for a reply without reasoning.
 */
export function splitReasoning(text: string): SplitReply | undefined {
  const start = text.trimStart();
  const pair = REASONING_TAGS.find(({ open }) => startsWith(start, open));
  if (pair === undefined) return splitAtClosingTag(text);
  const end = indexOfTag(start, pair.close, pair.open.length);
  if (end < 0) return { reasoning: start.slice(pair.open.length).trim(), text: "" };
  return {
    reasoning: start.slice(pair.open.length, end).trim(),
    text: start.slice(end + pair.close.length).trimStart(),
  };
}

/** Splits a reply at a closing tag without an opening one. Tags in code are ignored: they're text about tags. */
export function splitAtClosingTag(text: string): SplitReply | undefined {
  for (const { open, close } of REASONING_TAGS) {
    const at = indexOfTag(text, close);
    if (at < 0 || isCode(text, at)) continue;
    const before = indexOfTag(text, open);
    if (before >= 0 && before < at) continue;
    return { reasoning: text.slice(0, at).trim(), text: text.slice(at + close.length).trimStart() };
  }
  return undefined;
}

/** Removes reasoning anywhere in a text that people don't see. */
export function stripReasoning(text: string): string {
  let rest = text;
  for (const { open, close } of REASONING_TAGS) {
    for (let start = indexOfTag(rest, open); start >= 0; start = indexOfTag(rest, open)) {
      const end = indexOfTag(rest, close, start);
      rest = rest.slice(0, start) + (end < 0 ? "" : rest.slice(end + close.length));
    }
    const lone = findLastTag(rest, close);
    if (lone >= 0) rest = rest.slice(lone + close.length);
  }
  return rest;
}

function startsWith(text: string, tag: string): boolean {
  return text.slice(0, tag.length).toLowerCase() === tag.toLowerCase();
}

/** Finds a tag, as listed or in capitals. */
function indexOfTag(text: string, tag: string, from = 0): number {
  const found = text.indexOf(tag, from);
  return found >= 0 ? found : text.indexOf(tag.toUpperCase(), from);
}

function findLastTag(text: string, tag: string): number {
  return Math.max(text.lastIndexOf(tag), text.lastIndexOf(tag.toUpperCase()));
}

/** Reports whether a position is inside a code block or inline code. */
function isCode(text: string, at: number): boolean {
  const before = text.slice(0, at);
  const isInBlock = before.split("```").length % 2 === 0;
  return isInBlock || before.slice(before.lastIndexOf("\n") + 1).split("`").length % 2 === 0;
}

/** One block, in OpenRouter's format. */
export interface ReasoningDetail {
  type: "reasoning.text" | "reasoning.encrypted" | "reasoning.summary";
  /** Provider-specific format of the block: `"anthropic-claude-v1"`. */
  format?: string;
  text?: string;
  signature?: string;
  data?: string;
  [more: string]: unknown;
}

/** The format of Anthropic's blocks. */
export const ANTHROPIC_FORMAT = "anthropic-claude-v1";

/** Fields that arrive in pieces. */
const TEXT_FIELDS = ["text", "summary", "data"];

/** Collects the blocks of one reply. Pieces with the same `index` and type are one block. */
export class ReasoningDetails {
  readonly #blocks: Record<string, unknown>[] = [];

  /** Adds the blocks of one event. Skips anything that isn't one. */
  add(details: readonly unknown[]): void {
    for (const detail of details) if (isJsonObject(detail)) this.#addDetail(detail);
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0;
  }

  /** Returns a copy of the blocks, in their order. */
  all(): Record<string, unknown>[] {
    return structuredClone(this.#blocks);
  }

  #addDetail(detail: Record<string, unknown>): void {
    const last = this.#blocks.at(-1);
    const isSame = last !== undefined && typeof detail.index === "number" && last.index === detail.index &&
      last.type === detail.type;
    if (!isSame) {
      this.#blocks.push({ ...detail });
      return;
    }
    for (const [name, value] of Object.entries(detail)) {
      const before = last[name];
      const isPiece = TEXT_FIELDS.includes(name) && typeof before === "string" && typeof value === "string";
      if (isPiece) last[name] = before + value;
      else if (value !== null && value !== undefined) last[name] = value;
    }
  }
}

/** Returns the stream with reasoning between tags as reasoning events. */
export function splitStream(stream: ChatStream): ChatStream {
  return { ...stream, batches: () => splitBatches(stream) };
}

async function* splitBatches(stream: ChatStream): AsyncGenerator<ChatEvent[]> {
  const splitter = new ReasoningSplitter();
  try {
    for await (const batch of stream.batches()) {
      const split = splitter.push(batch);
      if (split.length > 0) yield split;
    }
  } catch (error) {
    const rest = splitter.end();
    if (rest.length > 0) yield rest;
    throw error;
  }
  const rest = splitter.end();
  if (rest.length > 0) yield rest;
}

/** Returns the completion with reasoning between tags in a separate field. */
export function splitCompletion(completion: OpenAiCompletion): OpenAiCompletion {
  const choices = completion.choices.map((choice) => {
    const { content, reasoning_content: known } = choice.message;
    const split = known ? undefined : splitReasoning(content ?? "");
    if (split === undefined) return choice;
    const reasoning = split.reasoning === "" ? {} : { reasoning_content: split.reasoning };
    return { ...choice, message: { ...choice.message, content: split.text, ...reasoning } };
  });
  return { ...completion, choices };
}

/** Maximum length of held-back text. White space before a tag is far shorter. */
const MAX_HELD_CHARS = 1_000;

/** Position in a reply: before its first word, between the tags, right after them, or in its text. */
type Phase = "start" | "reasoning" | "behind" | "text";

/** Splits the events of one reply. Only a tag at the start of the reply counts. */
export class ReasoningSplitter {
  #phase: Phase = "start";
  /** Text that may be the start of a tag. */
  #pending = "";
  #pair: TagPair | undefined;
  #hasReasoning = false;

  /** Splits the events of one read. */
  push(batch: ChatEvent[]): ChatEvent[] {
    if (this.#phase === "text") return batch;
    const out: ChatEvent[] = [];
    for (const event of batch) {
      if (event.type === "text") this.#add(event.text, out);
      else {
        // No more text can follow.
        if (event.type === "finish" || event.type === "tool_calls") this.#flush(out);
        out.push(event);
      }
    }
    return out;
  }

  /** Ends the reply. Returns the text that was held back. */
  end(): ChatEvent[] {
    const out: ChatEvent[] = [];
    this.#flush(out);
    return out;
  }

  #add(text: string, out: ChatEvent[]): void {
    this.#pending += text;
    if (this.#phase === "start") this.#start(out);
    if (this.#phase === "reasoning") this.#addReasoning(out);
    if (this.#phase === "behind") this.#pending = this.#pending.trimStart();
    if (this.#phase === "text" || (this.#phase === "behind" && this.#pending !== "")) {
      this.#phase = "text";
      this.#emit("text", this.#pending, out);
      this.#pending = "";
    }
  }

  #start(out: ChatEvent[]): void {
    const begun = this.#pending.trimStart();
    const isTag = ({ open }: TagPair) => begun.slice(0, open.length).toLowerCase() === open.toLowerCase();
    this.#pair = REASONING_TAGS.find(isTag);
    if (this.#pair !== undefined) {
      this.#phase = "reasoning";
      this.#pending = begun.slice(this.#pair.open.length);
    } else if (!REASONING_TAGS.some(({ open }) => open.toLowerCase().startsWith(begun.toLowerCase()))) {
      this.#phase = "text";
    } else if (this.#pending.length > MAX_HELD_CHARS) {
      this.#flush(out);
    }
  }

  #addReasoning(out: ChatEvent[]): void {
    const { close } = this.#pair!;
    const text = this.#pending;
    const end = indexOfTag(text, close);
    if (end >= 0) {
      this.#emit("reasoning", text.slice(0, end).trimEnd(), out);
      this.#pending = text.slice(end + close.length);
      this.#phase = "behind";
      return;
    }
    // The end may be part of the closing tag, and white space before it isn't part of the reasoning.
    let sure = text.length - countTagStart(text, close);
    const trimmed = text.slice(0, sure).trimEnd().length;
    if (sure - trimmed <= MAX_HELD_CHARS) sure = trimmed;
    this.#emit("reasoning", text.slice(0, sure), out);
    this.#pending = text.slice(sure);
  }

  #emit(type: "text" | "reasoning", text: string, out: ChatEvent[]): void {
    const isFirst = type === "reasoning" && !this.#hasReasoning;
    const sent = isFirst ? text.trimStart() : text;
    if (sent === "") return;
    if (type === "reasoning") this.#hasReasoning = true;
    out.push({ type, text: sent });
  }

  #flush(out: ChatEvent[]): void {
    if (this.#phase === "reasoning") this.#emit("reasoning", this.#pending.trimEnd(), out);
    else this.#emit("text", this.#pending, out);
    this.#pending = "";
    this.#phase = "text";
  }
}

/** Returns how many characters at the end of a text may be the start of a tag. */
function countTagStart(text: string, tag: string): number {
  for (let count = Math.min(tag.length - 1, text.length); count > 0; count--) {
    if (text.slice(text.length - count).toLowerCase() === tag.slice(0, count).toLowerCase()) return count;
  }
  return 0;
}
