/**
 * Reasoning that a model wrote into its answer instead of a field of its own (docs/protocols/llm.md, "Reasoning"), and blocks of
 * reasoning that a server wants back unchanged with the results of tools: signed text, and reasoning that only it can read.
 *
 * @see https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */
import { isJsonObject } from "../json/type_guards.ts";

/** What stands around reasoning in a text. Compared without regard to case. */
export interface TagPair {
  open: string;
  close: string;
}

/** The tags of common models: Qwen and DeepSeek, Gemini's OpenAI endpoint, Magistral, and fine-tunes. */
export const REASONING_TAGS: readonly TagPair[] = [
  ...["think", "thinking", "thought", "reasoning"].map((name) => ({ open: `<${name}>`, close: `</${name}>` })),
  { open: "[THINK]", close: "[/THINK]" },
];

/** An answer in two parts. */
export interface SplitAnswer {
  reasoning: string;
  text: string;
}

/**
 * Splits an answer that starts with reasoning between tags, or whose opening tag the chat template already wrote. Reasoning
 * without a closing tag reaches to the end: the answer was cut.
 *
 * @returns undefined for an answer without reasoning.
 */
export function splitReasoning(text: string): SplitAnswer | undefined {
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

/** Splits an answer at a closing tag that has no opening one. A tag in code is text about tags. */
export function splitAtClosingTag(text: string): SplitAnswer | undefined {
  for (const { open, close } of REASONING_TAGS) {
    const at = indexOfTag(text, close);
    if (at < 0 || isCode(text, at)) continue;
    const before = indexOfTag(text, open);
    if (before >= 0 && before < at) continue;
    return { reasoning: text.slice(0, at).trim(), text: text.slice(at + close.length).trimStart() };
  }
  return undefined;
}

/** Removes reasoning wherever it stands, for text that people don't see. */
export function stripReasoning(text: string): string {
  let rest = text;
  for (const { open, close } of REASONING_TAGS) {
    for (let start = indexOfTag(rest, open); start >= 0; start = indexOfTag(rest, open)) {
      const end = indexOfTag(rest, close, start);
      rest = rest.slice(0, start) + (end < 0 ? "" : rest.slice(end + close.length));
    }
    const lone = lastIndexOf(rest, close);
    if (lone >= 0) rest = rest.slice(lone + close.length);
  }
  return rest;
}

function startsWith(text: string, tag: string): boolean {
  return text.slice(0, tag.length).toLowerCase() === tag.toLowerCase();
}

/** Finds a tag, written as it is listed or in capitals. */
export function indexOfTag(text: string, tag: string, from = 0): number {
  const found = text.indexOf(tag, from);
  return found >= 0 ? found : text.indexOf(tag.toUpperCase(), from);
}

function lastIndexOf(text: string, tag: string): number {
  return Math.max(text.lastIndexOf(tag), text.lastIndexOf(tag.toUpperCase()));
}

/** Reports whether a position is inside a code block or inline code. */
function isCode(text: string, at: number): boolean {
  const before = text.slice(0, at);
  const isInBlock = before.split("```").length % 2 === 0;
  return isInBlock || before.slice(before.lastIndexOf("\n") + 1).split("`").length % 2 === 0;
}

/** One block, as OpenRouter writes it. */
export interface ReasoningDetail {
  type: "reasoning.text" | "reasoning.encrypted" | "reasoning.summary";
  /** Whose blocks these are: `"anthropic-claude-v1"`. */
  format?: string;
  text?: string;
  signature?: string;
  data?: string;
  [more: string]: unknown;
}

/** The format of blocks that come from Anthropic. */
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
