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
import { findTag, findTagAt, isCode, TAG_FAMILIES, type TagFamily, type TagKinds } from "./reasoning_tags.ts";

/** A reply in two parts. */
export interface SplitReply {
  reasoning: string;
  text: string;
}

/**
 * Splits a reply that has reasoning between tags, or whose opening tag was already written by the chat template. Reasoning
 * without a closing tag extends to the end, because the reply was truncated.
 *
 * @returns `undefined` for a reply without reasoning.
 */
export function splitReasoning(text: string): SplitReply | undefined {
  const start = text.length - text.trimStart().length;
  if (findTagAt(text, start, TAG_FAMILIES, ["open", "marker"])?.end === undefined) return splitAtClosingTag(text);
  const splitter = new ReasoningSplitter();
  const split = { reasoning: "", text: "" };
  for (const event of [...splitter.push([{ type: "text", text }]), ...splitter.end()]) {
    if (event.type === "text" || event.type === "reasoning") split[event.type] += event.text;
  }
  return { reasoning: split.reasoning.trim(), text: split.text };
}

/** Splits a reply at a closing tag without an opening one. Tags in code are ignored: they're text about tags. */
export function splitAtClosingTag(text: string): SplitReply | undefined {
  // The other families have opening tags that templates don't write.
  const families = TAG_FAMILIES.filter(({ markers }) => markers.length === 0);
  const isExpected = (at: number) => !isCode(text, at);
  const close = findTag(text, families, ["close"], { isExpected });
  if (close?.end === undefined) return undefined;
  const open = findTag(text.slice(0, close.start), [close.family], ["open"]);
  if (open?.end !== undefined) return undefined;
  return { reasoning: text.slice(0, close.start).trim(), text: text.slice(close.end).trimStart() };
}

/** Removes reasoning anywhere in a text that people don't see. */
export function stripReasoning(text: string): string {
  let rest = text;
  for (let from = 0;;) {
    const tag = findTag(rest, TAG_FAMILIES, ["open", "marker"], { from });
    if (tag?.end === undefined) break;
    if (tag.kind === "marker") {
      rest = rest.slice(0, tag.start) + rest.slice(tag.end);
      from = tag.start;
      continue;
    }
    const close = findTag(rest, [tag.family], ["close"], { from: tag.end });
    rest = rest.slice(0, tag.start) + (close?.end === undefined ? "" : rest.slice(close.end));
    from = tag.start;
  }
  for (let close = findTag(rest, TAG_FAMILIES, ["close"]); close?.end !== undefined;) {
    rest = rest.slice(close.end);
    close = findTag(rest, TAG_FAMILIES, ["close"]);
  }
  return rest;
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
    if (known) return { ...choice, message: { ...choice.message, content: content && dropClosingTag(content) } };
    const split = splitReasoning(content ?? "");
    if (split === undefined) return choice;
    const reasoning = split.reasoning === "" ? {} : { reasoning_content: split.reasoning };
    return { ...choice, message: { ...choice.message, content: split.text, ...reasoning } };
  });
  return { ...completion, choices };
}

/**
 * Returns the completion with its reasoning as the answer where there is nothing else, although the model has finished:
 * it forgot the closing tag. Questions that Parlor asks for itself have no answer then.
 */
export function answerWithReasoning(completion: OpenAiCompletion): OpenAiCompletion {
  const choices = completion.choices.map((choice) => {
    const { reasoning_content: reasoning, ...message } = choice.message;
    const isAnswer = !message.content && reasoning && choice.finish_reason === "stop" && !message.tool_calls?.length;
    return isAnswer ? { ...choice, message: { ...message, content: reasoning } } : choice;
  });
  return { ...completion, choices };
}

/** Removes a closing tag at the start of a text whose reasoning the server separated. */
function dropClosingTag(text: string): string {
  const start = text.length - text.trimStart().length;
  const end = findTagAt(text, start, TAG_FAMILIES, ["close", "marker"])?.end;
  return end === undefined ? text : text.slice(end).trimStart();
}

/** Maximum length of held-back text before the first word. White space before a tag is far shorter. */
const MAX_HELD_CHARS = 1_000;
/** Maximum length of a block in the middle of a reply. It's held back until its closing tag, because it may be text. */
const MAX_BLOCK_CHARS = 256 * 1024;

/**
 * Position in a reply: before its first word, in the reasoning at its start, right after that, in its text, or in a later
 * block that is reasoning if it's closed.
 */
type Phase = "start" | "reasoning" | "behind" | "text" | "block";

/**
 * Splits the events of one reply.
 *
 * Tags count at the start of a reply, and anywhere outside of code after that. Elsewhere they're text about tags: if in
 * doubt, text is the answer.
 */
export class ReasoningSplitter {
  #phase: Phase = "start";
  /** Text that isn't decided yet. */
  #pending = "";
  /** The family of the reply; `undefined` if it has no tags. */
  #family: TagFamily | undefined;
  /** The opening tag of a later block. */
  #opening = "";
  /** Length of the start of a later block that has no closing tag. */
  #searched = 0;
  /** Whether white space is dropped, because there is enough before a later block. */
  #trimsText = false;
  /** Text of the reply so far. */
  #text = "";
  #hasReasoning = false;
  /** Whether the server separated reasoning itself. */
  #isSeparated = false;

  /** Splits the events of one read. */
  push(batch: ChatEvent[]): ChatEvent[] {
    if (this.#phase === "text" && this.#family === undefined) return batch;
    const out: ChatEvent[] = [];
    for (const event of batch) {
      if (event.type === "text") this.#add(event.text, out);
      else {
        if (event.type === "reasoning") this.#isSeparated = true;
        // No more text can follow.
        if (event.type === "finish") this.#flush(out, event.reason);
        else if (event.type === "tool_calls") this.#flush(out);
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
    while (this.#step(out));
  }

  /** Handles the next part of the pending text. Returns false if more text is needed. */
  #step(out: ChatEvent[]): boolean {
    switch (this.#phase) {
      case "start":
      case "behind":
        return this.#start();
      case "reasoning":
        return this.#addReasoning(out);
      case "text":
        return this.#addText(out);
      case "block":
        return this.#addBlock(out);
    }
  }

  #start(): boolean {
    const isStart = this.#phase === "start";
    const begun = this.#pending.trimStart();
    if (begun === "") {
      if (!isStart) this.#pending = "";
      return isStart && this.#pending.length > MAX_HELD_CHARS && this.#startText();
    }
    const families = this.#family === undefined ? TAG_FAMILIES : [this.#family];
    const kinds: TagKinds = this.#isSeparated ? ["open", "marker", "close"] : ["open", "marker"];
    const tag = findTagAt(begun, 0, families, kinds);
    if (tag === undefined) {
      if (!isStart) this.#pending = begun;
      return this.#startText();
    }
    if (tag.end === undefined) return false;
    this.#pending = begun.slice(tag.end);
    this.#family = tag.family;
    this.#phase = tag.kind === "open" ? "reasoning" : "behind";
    return true;
  }

  #startText(): boolean {
    this.#phase = "text";
    return true;
  }

  #addReasoning(out: ChatEvent[]): boolean {
    const text = this.#pending;
    const close = findTag(text, [this.#family!], ["close"]);
    if (close?.end !== undefined) {
      this.#emit("reasoning", text.slice(0, close.start).trimEnd(), out);
      this.#pending = text.slice(close.end);
      this.#phase = "behind";
      return true;
    }
    // The end may be part of the closing tag, and white space before it isn't part of the reasoning.
    let sure = close?.start ?? text.length;
    const trimmed = text.slice(0, sure).trimEnd().length;
    if (sure - trimmed <= MAX_HELD_CHARS) sure = trimmed;
    this.#emit("reasoning", text.slice(0, sure), out);
    this.#pending = text.slice(sure);
    return false;
  }

  #addText(out: ChatEvent[]): boolean {
    if (this.#trimsText) {
      this.#pending = this.#pending.trimStart();
      if (this.#pending === "") return false;
      this.#trimsText = false;
    }
    const text = this.#pending;
    const whole = this.#text + text;
    const isExpected = (at: number) => !isCode(whole, this.#text.length + at);
    const tag = this.#family && findTag(text, [this.#family], ["open", "marker"], { isExpected });
    if (tag === undefined) {
      this.#pending = "";
      this.#emit("text", text, out);
      return false;
    }
    this.#pending = text.slice(tag.end ?? tag.start);
    this.#emit("text", text.slice(0, tag.start), out);
    if (tag.end === undefined) return false;
    if (tag.kind === "open") {
      this.#phase = "block";
      this.#searched = 0;
      this.#opening = text.slice(tag.start, tag.end);
    }
    return true;
  }

  #addBlock(out: ChatEvent[]): boolean {
    const text = this.#pending;
    const close = findTag(text, [this.#family!], ["close"], { from: this.#searched });
    this.#searched = close?.start ?? text.length;
    if (close?.end === undefined) return text.length > MAX_BLOCK_CHARS && this.#endBlock(out);
    const reasoning = text.slice(0, close.start).trim();
    if (reasoning !== "") this.#emit("reasoning", `${this.#hasReasoning ? "\n\n" : ""}${reasoning}`, out);
    this.#pending = text.slice(close.end);
    this.#trimsText = /\s$/.test(this.#text);
    this.#phase = "text";
    return true;
  }

  /** Ends a block without a closing tag: it's text. */
  #endBlock(out: ChatEvent[]): boolean {
    const text = this.#opening + this.#pending;
    this.#pending = "";
    this.#phase = "text";
    this.#emit("text", text, out);
    return false;
  }

  #emit(type: "text" | "reasoning", text: string, out: ChatEvent[]): void {
    const isFirst = type === "reasoning" && !this.#hasReasoning;
    const sent = isFirst ? text.trimStart() : text;
    if (sent === "") return;
    if (type === "reasoning") this.#hasReasoning = true;
    else if (this.#family !== undefined) this.#text += sent;
    out.push({ type, text: sent });
  }

  #flush(out: ChatEvent[], reason?: string): void {
    if (this.#phase === "reasoning") this.#emit("reasoning", this.#pending.trimEnd(), out);
    else if (this.#phase === "block") {
      if (reason === "length") this.#emit("reasoning", `\n\n${this.#pending.trim()}`, out);
      else this.#endBlock(out);
    } else this.#emit("text", this.#pending, out);
    this.#pending = "";
    this.#phase = "text";
  }
}
