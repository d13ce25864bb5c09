/** Builds a chat completion from ChatEvents, for protocols and servers that don't return one. */
import type { ChatEvent, OpenAiCompletion, Usage } from "../chat_event.ts";
import type { ChatStream } from "../provider.ts";
import { ReasoningDetails } from "../reasoning.ts";
import { ToolCalls } from "./tool_calls.ts";
import { Sound } from "./sound.ts";

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
  readonly #images: unknown[] = [];
  readonly #sound = new Sound();
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
      case "images":
        this.#images.push(...event.urls.map((url) => ({ type: "image_url", image_url: { url } })));
        break;
      case "audio":
        this.#sound.add(event.audio);
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
          ...(this.#images.length > 0 && { images: this.#images }),
          ...(!this.#sound.isEmpty && { audio: this.#sound.toMessageAudio(this.#text) }),
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
