/** Moves reasoning that opens a reply from its text to reasoning events, while the reply is streamed. */
import type { ChatEvent, OpenAiCompletion } from "../chat_event.ts";
import type { ChatStream } from "../provider.ts";
import { indexOfTag, REASONING_TAGS, splitReasoning, type TagPair } from "../reasoning.ts";

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

/** Returns the completion with reasoning between tags in the field of its own. */
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

/** White space before a tag is far shorter. */
const MAX_HELD_CHARS = 1_000;

/** Where a reply is: before its first word, inside the tags, behind them, or in its text. */
type Phase = "start" | "reasoning" | "behind" | "text";

/** Splits the events of one reply. Only a tag that opens the reply counts. */
export class ReasoningSplitter {
  #phase: Phase = "start";
  /** Text that may be the beginning of a tag. */
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
        // Nothing that belongs to the text can follow.
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
    if (this.#phase === "reasoning") this.#reason(out);
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

  #reason(out: ChatEvent[]): void {
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

/** Returns how many characters at the end of a text may be the beginning of a tag. */
function countTagStart(text: string, tag: string): number {
  for (let count = Math.min(tag.length - 1, text.length); count > 0; count--) {
    if (text.slice(text.length - count).toLowerCase() === tag.slice(0, count).toLowerCase()) return count;
  }
  return 0;
}
