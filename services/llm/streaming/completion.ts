/** Builds the single OpenAI-shaped answer out of ChatEvents, for servers and kinds that do not send one. */
import type { ChatEvent, OpenAiCompletion, Usage } from "../chat_event.ts";
import { ToolCalls } from "../tool_calls.ts";

/** Gathers the events of one answer. */
export class CompletionBuilder {
  #text = "";
  #reasoning = "";
  readonly #toolCalls = new ToolCalls();
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
      case "finish":
        this.#finishReason = event.reason;
        break;
      case "usage":
        this.#usage = event.usage;
        this.#timings = event.timings ?? this.#timings;
    }
  }

  /** @param createdAtMs Milliseconds since 1970. */
  build(id: string, model: string, createdAtMs: number): OpenAiCompletion {
    const toolCalls = this.#toolCalls.all().map(({ index: _, ...call }) => call);
    return {
      id,
      object: "chat.completion",
      created: Math.floor(createdAtMs / 1000),
      model,
      choices: [{
        index: 0,
        message: {
          role: "assistant",
          content: this.#text === "" && toolCalls.length > 0 ? null : this.#text,
          ...(this.#reasoning !== "" && { reasoning_content: this.#reasoning }),
          ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
        },
        finish_reason: this.#finishReason,
      }],
      ...(this.#usage && { usage: this.#usage }),
      ...(this.#timings && { timings: this.#timings }),
    };
  }
}
