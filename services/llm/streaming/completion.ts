/** Builds a chat completion from ChatEvents, for protocols and servers that don't return one. */
import type { ChatEvent, OpenAiCompletion, Usage } from "../chat_event.ts";
import type { ChatStream } from "../provider.ts";
import { ReasoningDetails } from "../reasoning.ts";
import { isJsonObject } from "../../json/type_guards.ts";

/** One tool call, as far as it was received. */
export interface ToolCall {
  index: number;
  id?: string;
  type: string;
  function: { name: string; arguments: string };
  /** Data that the server requires back with the call, such as Gemini's `thought_signature`. */
  extra_content?: Record<string, unknown>;
}

/** Maximum index, far above any real reply. A hostile index must not make the map grow. */
const MAX_INDEX = 1_000;

/**
 * Collects the tool calls of one reply: merged by `index`, argument fragments joined, empty names ignored, because some servers
 * repeat an empty name in later fragments.
 *
 * @see docs/protocols/llm.md, "Tool calls"
 */
export class ToolCalls {
  readonly #calls = new Map<number, ToolCall>();

  /** Adds the fragments of one event. Skips anything that isn't one. */
  add(fragments: readonly unknown[]): void {
    for (const fragment of fragments) if (isJsonObject(fragment)) this.#addFragment(fragment);
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  /** Returns a copy of the calls, by index. */
  all(): ToolCall[] {
    const calls = [...this.#calls.values()].sort((a, b) => a.index - b.index);
    return calls.map((call) => ({ ...call, function: { ...call.function } }));
  }

  #addFragment(fragment: Record<string, unknown>): void {
    const index = fragment.index ?? Math.max(-1, ...this.#calls.keys()) + 1;
    if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index > MAX_INDEX) return;
    let call = this.#calls.get(index);
    if (call === undefined) {
      this.#calls.set(index, call = { index, type: "function", function: { name: "", arguments: "" } });
    }
    if (typeof fragment.id === "string" && fragment.id !== "") call.id = fragment.id;
    if (isJsonObject(fragment.extra_content)) call.extra_content = fragment.extra_content;
    if (!isJsonObject(fragment.function)) return;
    const { name, arguments: text } = fragment.function;
    if (typeof name === "string" && name !== "") call.function.name = name;
    if (typeof text === "string") call.function.arguments += text;
  }
}

/** Reads a reply to its end and returns it as one completion. @throws Like `ChatStream.batches` */
export async function collectCompletion(stream: ChatStream, model: string): Promise<OpenAiCompletion> {
  const builder = new CompletionBuilder();
  for await (const batch of stream.batches()) {
    for (const event of batch) builder.add(event);
  }
  return builder.build(model);
}

/** Collects the events of one reply. */
export class CompletionBuilder {
  #text = "";
  #reasoning = "";
  readonly #toolCalls = new ToolCalls();
  readonly #details = new ReasoningDetails();
  #finishReason: string | null = null;
  #usage: Usage | undefined;
  #timings: Record<string, unknown> | undefined;

  add(event: ChatEvent): void {
    switch (event.type) {
      case "text":
        this.#text += event.text;
        break;
      case "reasoning":
        this.#reasoning += event.text;
        break;
      case "tool_calls":
        this.#toolCalls.add(event.delta);
        break;
      case "reasoning_details":
        this.#details.add(event.details);
        break;
      case "finish":
        this.#finishReason = event.reason;
        break;
      case "usage":
        this.#usage = event.usage;
        this.#timings = event.timings ?? this.#timings;
    }
  }

  build(model: string): OpenAiCompletion {
    const toolCalls = this.#toolCalls.all().map(({ index: _, ...call }) => call);
    return {
      id: `chatcmpl-${crypto.randomUUID()}`,
      object: "chat.completion",
      created: Math.floor(Date.now() / 1000),
      model,
      choices: [{
        index: 0,
        message: {
          role: "assistant",
          content: this.#text === "" && toolCalls.length > 0 ? null : this.#text,
          ...(this.#reasoning !== "" && { reasoning_content: this.#reasoning }),
          ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
          ...(toolCalls.length > 0 && !this.#details.isEmpty && { reasoning_details: this.#details.all() }),
        },
        finish_reason: this.#finishReason,
      }],
      ...(this.#usage && { usage: this.#usage }),
      ...(this.#timings && { timings: this.#timings }),
    };
  }
}
