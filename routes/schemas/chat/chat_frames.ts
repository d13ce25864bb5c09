/** The frames of a chat stream: OpenAI's `chat.completion.chunk`, regardless of the model server's protocol. */
import type { NamedSource } from "../../../services/llm/sources.ts";
import type { ToolCallUpdate } from "../../../services/chat/tools/tool_messages.ts";
import type { ReplyBatch, ReplyCursor, ReplyEnd, ReplySource } from "../../../services/chat/replies.ts";
import type {
  AudioPiece,
  ChatEvent,
  ChatNotice,
  OpenAiCompletion,
  PromptProgress,
} from "../../../services/llm/chat_event.ts";
import { encodeUtf8 } from "../../../services/crypto/sealer.ts";
import { AppError, type ErrorCode } from "../../../services/errors.ts";
import { createErrorBody } from "../../errors.ts";

const encoder = new TextEncoder();
const DONE = "data: [DONE]\n\n";

/** Sent during silence, so that proxies don't close the connection. */
export const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");

/** Fields with the same value in all chunks of a response. */
interface ChunkHead {
  id: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
}

/** Creates the frames of a response without IDs: the model's own stream, passed on. */
export class ChunkFrames {
  readonly #before: string;
  readonly #beforeText: string;

  constructor({ id, created, model }: ChunkHead) {
    this.#before = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${
      JSON.stringify(model)
    },"choices":`;
    this.#beforeText = `${this.#before}[{"index":0,"delta":{"content":`;
  }

  /** Returns the first frame, which contains the role. */
  role(): string {
    return this.#chunk('{"role":"assistant","content":""}', null);
  }

  text(text: string): string {
    // Fast path for nearly all frames, with the same result as #chunk.
    return this.#beforeText + JSON.stringify(text) + '},"finish_reason":null}]}\n\n';
  }

  reasoning(text: string): string {
    return this.#chunk(`{"reasoning_content":${JSON.stringify(text)}}`, null);
  }

  toolCalls(calls: unknown[]): string {
    return this.#chunk(`{"tool_calls":${JSON.stringify(calls)}}`, null);
  }

  reasoningDetails(details: unknown[]): string {
    return this.#chunk(`{"reasoning_details":${JSON.stringify(details)}}`, null);
  }

  images(urls: readonly string[]): string {
    const parts = urls.map((url) => ({ type: "image_url", image_url: { url } }));
    return this.#chunk(`{"images":${JSON.stringify(parts)}}`, null);
  }

  audio(audio: AudioPiece): string {
    return this.#chunk(`{"audio":${JSON.stringify(audio)}}`, null);
  }

  sources(sources: readonly NamedSource[]): string {
    const annotations = sources.map((source) => ({ type: "url_citation", url_citation: source }));
    return this.#chunk(`{"annotations":${JSON.stringify(annotations)}}`, null);
  }

  finish(reason: string | null): string {
    return this.#chunk("{}", reason);
  }

  usage(usage: unknown, timings: unknown): string {
    const extra = timings === undefined ? "" : `,"timings":${JSON.stringify(timings)}`;
    return `${this.#before}[],"usage":${JSON.stringify(usage)}${extra}}\n\n`;
  }

  /** Encodes all events that one read from the model returned. */
  events(events: readonly ChatEvent[]): Uint8Array {
    let frames = "";
    for (const event of events) {
      if (event.type === "text") frames += this.text(event.text);
      else if (event.type === "reasoning") frames += this.reasoning(event.text);
      else if (event.type === "tool_calls") frames += this.toolCalls(event.delta);
      else if (event.type === "reasoning_details") frames += this.reasoningDetails(event.details);
      else if (event.type === "images") frames += this.images(event.urls);
      else if (event.type === "audio") frames += this.audio(event.audio);
      else if (event.type === "sources") frames += this.sources(event.sources);
      else if (event.type === "progress") frames += formatProgress(event.progress);
      else if (event.type === "finish") frames += this.finish(event.reason);
      else if (event.type === "usage") frames += this.usage(event.usage, event.timings);
    }
    return encodeUtf8(frames);
  }

  #chunk(delta: string, finishReason: string | null): string {
    return `${this.#before}[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finishReason)}}]}\n\n`;
  }
}

/** The most recently encoded batch of a reply. All clients that follow a running reply request the same batch. */
interface LastBatch {
  batch?: ReplyBatch;
  bytes?: Uint8Array;
}
const lastBatches = new WeakMap<ReplySource, LastBatch>();

/** Creates the frames of a reply, whose IDs are the positions up to which a client has received it. */
export class ReplyFrames {
  readonly #chunks: ChunkFrames;
  readonly #beforeId: string;
  readonly #last: LastBatch;

  constructor(reply: ReplySource) {
    const created = Math.floor(reply.startedAtMs / 1000);
    this.#chunks = new ChunkFrames({ id: reply.messageId, created, model: reply.model });
    this.#beforeId = `id: ${reply.generation}.`;
    this.#last = lastBatches.get(reply) ?? {};
    lastBatches.set(reply, this.#last);
  }

  begin(place: ReplyCursor): Uint8Array {
    return encoder.encode(this.#id(place) + this.#chunks.role());
  }

  batch(batch: ReplyBatch): Uint8Array {
    if (this.#last.batch === batch) return this.#last.bytes!;
    let frames = "";
    for (const event of batch) {
      frames += this.#id(event) +
        (event.type === "text" ? this.#chunks.text(event.delta) : this.#chunks.reasoning(event.delta));
    }
    const bytes = encodeUtf8(frames);
    this.#last.batch = batch;
    this.#last.bytes = bytes;
    return bytes;
  }

  /**
   * Encodes changes of tool calls. New calls are also sent as OpenAI's deltas, and each change as an event with the
   * current state of the call.
   */
  calls(updates: readonly ToolCallUpdate[]): Uint8Array {
    let frames = "";
    for (const { call, index, isNew } of updates) {
      const { id, name, arguments: args } = call;
      if (isNew) {
        frames += this.#chunks.toolCalls([{ index, id, type: "function", function: { name, arguments: args } }]);
      }
      frames += `event: tool_call\ndata: ${JSON.stringify(call)}\n\n`;
    }
    return encoder.encode(frames);
  }

  end(end: ReplyEnd, requestId: string): Uint8Array {
    if (end.error !== undefined) {
      return createErrorFrame(toReplyError(end.error), requestId);
    }
    let frames = end.toolCalls === undefined ? "" : this.#chunks.toolCalls(end.toolCalls);
    frames += this.#chunks.finish(end.finishReason ?? "stop");
    if (end.usage !== undefined) frames += this.#chunks.usage(end.usage, end.timings);
    if (end.message !== undefined) frames += `event: message\ndata: ${JSON.stringify(end.message)}\n\n`;
    return encoder.encode(frames + DONE);
  }

  #id({ seq, textLength, reasoningLength }: ReplyCursor): string {
    return `${this.#beforeId}${seq}.${textLength}.${reasoningLength}\n`;
  }
}

/** Returns the error of a reply that failed. */
export function toReplyError({ code, message, upstream }: NonNullable<ReplyEnd["error"]>): AppError {
  return new AppError(code as ErrorCode, message, { upstream, retryAfterSeconds: upstream?.retry_after_s });
}

/** What a model server does before it responds. */
export interface ReplyNoticeJson {
  code: string;
  message: string;
  /** Tokens of context that the model is loaded with. */
  context_size?: number;
}

/**
 * Creates the frame about what the model server does before it responds. It has no ID, because it isn't part of the
 * reply.
 */
export function createNoticeFrame({ code, message, contextSize }: ChatNotice): Uint8Array {
  const notice: ReplyNoticeJson = { code, message, context_size: contextSize };
  return encoder.encode(`event: notice\ndata: ${JSON.stringify(notice)}\n\n`);
}

/** Creates the frame about the part of the prompt that the server has read. It has no ID. */
export function createProgressFrame(progress: PromptProgress): Uint8Array {
  return encoder.encode(formatProgress(progress));
}

function formatProgress({ total, cache, processed }: PromptProgress): string {
  return `event: prompt_progress\ndata: ${JSON.stringify({ total, cache, processed })}\n\n`;
}

/** After how many milliseconds a client connects again to a server that is being restarted. */
const RETRY_MS = 1000;

/** Creates the last frame of a stream that goes on after a restart. The client's position stays valid. */
export function createRestartingFrame(): Uint8Array {
  return encoder.encode(`event: restarting\ndata: ${JSON.stringify({ retry_ms: RETRY_MS })}\n\n`);
}

/** Returns the last frame of a stream that ended normally. */
export function createDoneFrame(): Uint8Array {
  return encoder.encode(DONE);
}

/** Creates the last frame of a stream that failed after its first byte. */
export function createErrorFrame(thrown: unknown, requestId: string): Uint8Array {
  return encoder.encode(`event: error\ndata: ${JSON.stringify(createErrorBody(thrown, requestId))}\n\n`);
}

/** Parses a Last-Event-ID into a position. Returns `undefined` if it belongs to another run of the reply. */
export function parseLastEventId(lastEventId: string | undefined, generation: string): ReplyCursor | undefined {
  const match = /^([A-Za-z0-9_-]{1,64})\.(\d{1,10})\.(\d{1,10})\.(\d{1,10})$/.exec(lastEventId ?? "");
  if (match === null || match[1] !== generation) return undefined;
  return { seq: Number(match[2]), textLength: Number(match[3]), reasoningLength: Number(match[4]) };
}

/** Creates the single object that responds to `stream: false` in a conversation. */
export function toCompletion(reply: ReplySource, text: string, reasoning: string, end: ReplyEnd): OpenAiCompletion {
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
