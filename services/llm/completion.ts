/** Builds the single OpenAI-shaped answer out of ChatEvents, for servers and kinds that do not send one. */
import type { ChatEvent, OpenAiCompletion, Usage } from "./chat_event.ts";

interface ToolCallPiece {
  index?: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments?: string };
}

/** Gathers the events of one answer. */
export class CompletionBuilder {
  #text = "";
  #reasoning = "";
  readonly #toolCalls: ToolCallPiece[] = [];
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
        for (const piece of event.delta) this.#addToolCall(piece as ToolCallPiece);
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
    const toolCalls = this.#toolCalls.filter((call) => call !== undefined);
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

  #addToolCall(piece: ToolCallPiece | null): void {
    if (typeof piece !== "object" || piece === null) return;
    const index = piece.index ?? this.#toolCalls.length;
    // A hostile index must not make a huge array.
    if (!Number.isInteger(index) || index < 0 || index > 1000) return;
    const call = this.#toolCalls[index] ??= { type: "function", function: { name: "", arguments: "" } };
    if (piece.id) call.id = piece.id;
    if (piece.function?.name) call.function!.name = piece.function.name;
    call.function!.arguments += piece.function?.arguments ?? "";
  }
}
