/** The frames of a chat stream: OpenAI's `chat.completion.chunk`, whatever the model server speaks. */
import type { ReplyBatch, ReplyEnd, ReplyPlace, ReplySource } from "../../services/chat/reply.ts";
import type { ChatEvent, OpenAiCompletion } from "../../services/llm/chat_event.ts";
import { AppError, type ErrorCode } from "../../services/errors.ts";
import { errorBody } from "../errors.ts";

const encoder = new TextEncoder();
const DONE = "data: [DONE]\n\n";

/** Sent while nothing else is, so that nobody between us and the client takes the line for dead. */
export const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");

/** What is the same in all chunks of one answer. */
export interface ChunkHead {
  id: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
}

/** Makes the frames of one answer without ids: the model's own stream, passed on. */
export class ChunkFrames {
  readonly #before: string;

  constructor({ id, created, model }: ChunkHead) {
    this.#before = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${
      JSON.stringify(model)
    },"choices":`;
  }

  /** The first frame, which says who speaks. */
  role(): string {
    return this.#chunk('{"role":"assistant","content":""}', null);
  }

  text(text: string): string {
    return this.#chunk(`{"content":${JSON.stringify(text)}}`, null);
  }

  reasoning(text: string): string {
    return this.#chunk(`{"reasoning_content":${JSON.stringify(text)}}`, null);
  }

  toolCalls(calls: unknown[]): string {
    return this.#chunk(`{"tool_calls":${JSON.stringify(calls)}}`, null);
  }

  finish(reason: string | null): string {
    return this.#chunk("{}", reason);
  }

  usage(usage: unknown, timings: unknown): string {
    const extra = timings === undefined ? "" : `,"timings":${JSON.stringify(timings)}`;
    return `${this.#before}[],"usage":${JSON.stringify(usage)}${extra}}\n\n`;
  }

  /** All frames of what came from the model in one read. */
  events(events: readonly ChatEvent[]): Uint8Array {
    let frames = "";
    for (const event of events) {
      if (event.type === "text") frames += this.text(event.text);
      else if (event.type === "reasoning") frames += this.reasoning(event.text);
      else if (event.type === "tool_calls") frames += this.toolCalls(event.delta);
      else if (event.type === "finish") frames += this.finish(event.reason);
      else frames += this.usage(event.usage, event.timings);
    }
    return encoder.encode(frames);
  }

  #chunk(delta: string, finishReason: string | null): string {
    return `${this.#before}[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finishReason)}}]}\n\n`;
  }
}

/** Makes the frames of a reply, whose ids say how much a client has once it got them. */
export class ReplyFrames {
  readonly #chunks: ChunkFrames;
  readonly #generation: string;
  /** Each batch is one object for all who follow; encoded once for all of them. */
  static #encoded = new WeakMap<ReplyBatch, Uint8Array>();

  constructor(reply: ReplySource) {
    const created = Math.floor(reply.startedAtMs / 1000);
    this.#chunks = new ChunkFrames({ id: reply.messageId, created, model: reply.model });
    this.#generation = reply.generation;
  }

  begin(place: ReplyPlace): Uint8Array {
    return encoder.encode(this.#id(place) + this.#chunks.role());
  }

  batch(batch: ReplyBatch): Uint8Array {
    let bytes = ReplyFrames.#encoded.get(batch);
    if (bytes === undefined) {
      let frames = "";
      for (const event of batch) {
        frames += this.#id(event) +
          (event.type === "text" ? this.#chunks.text(event.delta) : this.#chunks.reasoning(event.delta));
      }
      ReplyFrames.#encoded.set(batch, bytes = encoder.encode(frames));
    }
    return bytes;
  }

  end(end: ReplyEnd, requestId: string): Uint8Array {
    if (end.error !== undefined) {
      return errorFrame(new AppError(end.error.code as ErrorCode, end.error.message), requestId);
    }
    let frames = end.toolCalls === undefined ? "" : this.#chunks.toolCalls(end.toolCalls);
    frames += this.#chunks.finish(end.finishReason ?? "stop");
    if (end.usage !== undefined) frames += this.#chunks.usage(end.usage, end.timings);
    return encoder.encode(frames + DONE);
  }

  #id({ seq, textLength, reasoningLength }: ReplyPlace): string {
    return `id: ${this.#generation}.${seq}.${textLength}.${reasoningLength}\n`;
  }
}

/** The last frame of a stream that ended well. */
export function doneFrame(): Uint8Array {
  return encoder.encode(DONE);
}

/** The last frame of a stream that failed after its first byte. */
export function errorFrame(thrown: unknown, requestId: string): Uint8Array {
  return encoder.encode(`event: error\ndata: ${JSON.stringify(errorBody(thrown, requestId))}\n\n`);
}

/** Gives the place that a Last-Event-ID names, or `undefined` when it is none of this run of the reply. */
export function placeOf(lastEventId: string | undefined, generation: string): ReplyPlace | undefined {
  const match = /^([A-Za-z0-9_-]{1,64})\.(\d{1,10})\.(\d{1,10})\.(\d{1,10})$/.exec(lastEventId ?? "");
  if (match === null || match[1] !== generation) return undefined;
  return { seq: Number(match[2]), textLength: Number(match[3]), reasoningLength: Number(match[4]) };
}

/** Makes the single object that answers `stream: false` in a conversation. */
export function completionOf(reply: ReplySource, text: string, reasoning: string, end: ReplyEnd): OpenAiCompletion {
  return {
    id: reply.messageId,
    object: "chat.completion",
    created: Math.floor(reply.startedAtMs / 1000),
    model: reply.model,
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: text,
        ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
        ...(end.toolCalls === undefined ? {} : { tool_calls: end.toolCalls }),
      },
      finish_reason: end.finishReason ?? "stop",
    }],
    ...(end.usage === undefined ? {} : { usage: end.usage }),
  };
}
