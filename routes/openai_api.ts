/** `/api/v1`: characters and connections as models of an OpenAI-compatible API. */
import type { TranscriptionRequest } from "../services/transcription/transcription.ts";
import type { Services } from "../services/services.ts";
import type { TokenAllowance } from "../services/auth/credential_stores.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import type {
  AnyChatRequest,
  ChatService,
  StartedReply,
  StatefulChatRequest,
  StatelessChat,
  StatelessStream,
} from "../services/chat/chat_service.ts";
import type { ReplyCursor } from "../services/chat/replies.ts";
import { randomToken } from "../services/crypto/random.ts";
import { AppError, type ErrorCode } from "../services/errors.ts";
import type { TranscriptEvent } from "../services/transcription/transcript_events.ts";
import type { ChatEvent } from "../services/llm/chat_event.ts";
import { estimateUsage, getReplyText } from "../services/llm/token_count.ts";
import { collectReply, nameMessages, waitForStart } from "./chat.ts";
import { createOpenAiError } from "./errors.ts";
import { createEventStream, EVENT_STREAM_HEADERS } from "./http/event_stream.ts";
import { parseFormField, readUpload } from "./http/form.ts";
import { createRouter } from "./http/router.ts";
import { ChunkFrames } from "./schemas/chat/chat_frames.ts";
import * as schema from "./schemas/openai_api.ts";
import { SpeechLanguage, TranscriptionPrompt } from "./schemas/transcription.ts";
import { passRawResponse } from "./http/raw_response.ts";

/** Routes of the OpenAI-compatible API. */
export function openAiRoutes(services: Services) {
  return createRouter()
    .openapi(schema.modelsRoute, async (c) => {
      const models = await services.openAiModels();
      return c.json(schema.toModelListJson(await models.list(getClientSignal(c), findAllowance(c))), 200);
    })
    .openapi(schema.modelRoute, async (c) => {
      const models = await services.openAiModels();
      return c.json(await models.get(c.req.valid("param").id, getClientSignal(c), findAllowance(c)), 200);
    })
    .openapi(schema.completionsRoute, async (c) => {
      const [models, { chat, stateless }] = [await services.openAiModels(), await services.chat()];
      const body = c.req.valid("json");
      const allow = findAllowance(c);
      const model = await models.resolve(body.model, getClientSignal(c), allow);
      const request = schema.toOpenAiChatRequest(body, model, allow);
      if (request.conversationId !== undefined) {
        if (allow?.write === false) await refuseExisting(services, request.conversationId);
        return await respondWithStored(c, chat, body, request as StatefulChatRequest);
      }
      if (body.stream === true) return await respondWithStream(c, stateless, body, request);
      return c.json({ ...await stateless.complete(request, getClientSignal(c)), model: body.model }, 200);
    })
    .openapi(schema.embeddingsRoute, async (c) => {
      const [models, { modelRouter, upstream }] = [await services.openAiModels(), await services.llm()];
      const body = c.req.valid("json");
      const { connectionId, model, characterId } = await models.resolve(
        body.model,
        getClientSignal(c),
        findAllowance(c),
      );
      if (characterId !== undefined) {
        const message = `a character has no embeddings; use "default" or a model of a connection`;
        throw new AppError("invalid_request", message, { issues: [{ path: "model", message }] });
      }
      const { target } = await modelRouter.route({ requestConnectionId: connectionId, model }, getClientSignal(c));
      const request = schema.toEmbeddingsRequest(body, model);
      const bytes = await upstream.createEmbeddings(target, request, getClientSignal(c));
      return passRawResponse(c.body(bytes, 200, { "Content-Type": "application/json" }));
    })
    .openapi(schema.speechRoute, async (c) => {
      const { speech } = await services.speech();
      const body = c.req.valid("json");
      const model = await speech.chooseModel(body.model ?? "", getClientSignal(c));
      const audio = await speech.speak(schema.toOpenAiSpeakRequest(body, model), getClientSignal(c));
      return c.body(audio.body, 200, { "Content-Type": audio.contentType });
    })
    .openapi(schema.transcriptionsRoute, async (c) => {
      const transcription = await services.transcription();
      const form = await readUpload(c, "file");
      const format = parseFormField(schema.TranscriptFormat, "response_format", form.text("response_format"));
      const request = {
        audio: form.file,
        model: await transcription.chooseModel(form.text("model") ?? "", getClientSignal(c)),
        language: parseFormField(SpeechLanguage.optional(), "language", form.text("language")),
        prompt: parseFormField(TranscriptionPrompt.optional(), "prompt", form.text("prompt")),
      } satisfies TranscriptionRequest;
      if (form.text("stream") === "true") {
        const events = transcription.stream(request, getClientSignal(c));
        // An error before the first event gets an ordinary error response.
        const first = await events.next();
        return streamFrames(c, formatTranscript(first, events), () => void events.return(undefined));
      }
      const transcript = await transcription.transcribe(request, getClientSignal(c));
      const type = format.endsWith("json") ? "application/json" : "text/plain; charset=utf-8";
      return passRawResponse(c.body(schema.formatTranscript(transcript, format), 200, { "Content-Type": type }));
    });
}

/** Returns what the caller's token may use; `undefined` for callers that may use everything. */
export function findAllowance(c: AppContext): TokenAllowance | undefined {
  const { identity } = c.var;
  return identity.method === "token" ? identity.allow : undefined;
}

/** @throws {AppError} `forbidden` for a conversation that exists, in the trash too */
async function refuseExisting(services: Services, conversationId: string): Promise<void> {
  const { store } = await services.conversations();
  if (!store.exists(conversationId)) return;
  throw new AppError("forbidden", "This token may not write into existing conversations");
}

/** Streams a model's response. If the client disconnects, the upstream call is aborted. */
async function respondWithStream(
  c: AppContext,
  chat: StatelessChat,
  body: schema.OpenAiChatJson,
  request: AnyChatRequest,
) {
  const { batches, cancel, estimateUsage } = await chat.stream(request, getClientSignal(c));
  const created = Math.floor(Date.now() / 1000);
  const frames = new OpenAiFrames(body, { id: `chatcmpl-${randomToken(12)}`, created, estimateUsage });
  return streamFrames(c, frames.format(batches), cancel);
}

/** Responds with a reply that the server stores and that continues if the client disconnects. */
async function respondWithStored(
  c: AppContext,
  chat: ChatService,
  body: schema.OpenAiChatJson,
  request: StatefulChatRequest,
) {
  const started = await chat.start(request);
  nameMessages(c, started);
  c.var.holdCall?.(waitForEnd(started));
  const { reply } = started;
  const leave = reply.follow?.();
  try {
    if (body.stream !== true) {
      const completion = await collectReply(started);
      const usage = completion.usage ?? estimateUsage(request, getReplyText(completion));
      return c.json({ ...completion, usage, model: body.model }, 200);
    }
    await waitForStart(started, getClientSignal(c));
    const frames = new OpenAiFrames(body, {
      id: reply.messageId,
      created: Math.floor(reply.startedAtMs / 1000),
      estimateUsage: (text) => estimateUsage(request, text),
    });
    return streamFrames(c, frames.format(readReply(started)), reply.follow?.());
  } finally {
    leave?.();
  }
}

function streamFrames(c: AppContext, frames: AsyncGenerator<Uint8Array>, close?: () => void): never {
  const next = async () => {
    const { done, value } = await frames.next();
    return done ? undefined : value;
  };
  return passRawResponse(c.body(createEventStream({ next, close }), 200, EVENT_STREAM_HEADERS));
}

/** Creates the frames of one streamed response. */
class OpenAiFrames {
  readonly #chunks: ChunkFrames;
  readonly #hasUsage: boolean;
  readonly #estimateUsage: StatelessStream["estimateUsage"];

  constructor(
    { model, stream_options: options }: schema.OpenAiChatJson,
    { id, created, estimateUsage }: { id: string; created: number } & Pick<StatelessStream, "estimateUsage">,
  ) {
    this.#chunks = new ChunkFrames({ id, created, model });
    // Clients that didn't ask for a chunk without choices may not expect it.
    this.#hasUsage = options?.include_usage === true;
    this.#estimateUsage = estimateUsage;
  }

  /** Yields the frames of a whole reply. A failure is the last frame. */
  async *format(batches: AsyncIterable<ChatEvent[]>): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    // The last usage counts: servers send running totals.
    let usage: Extract<ChatEvent, { type: "usage" }> | undefined;
    let text = "";
    yield encoder.encode(this.#chunks.role());
    try {
      for await (const batch of batches) {
        const events = batch.filter(({ type }) => type !== "usage" && type !== "progress");
        if (this.#hasUsage) {
          for (const event of batch) {
            if (event.type === "usage") usage = event;
            else text += getEventText(event);
          }
        }
        if (events.length > 0) yield this.#chunks.events(events);
      }
    } catch (error) {
      yield encoder.encode(formatErrorFrame(error));
      return;
    }
    if (this.#hasUsage) yield this.#chunks.events([usage ?? { type: "usage", usage: this.#estimateUsage(text) }]);
    yield encoder.encode("data: [DONE]\n\n");
  }
}

/** Returns what a model wrote in an event, for an estimate of its tokens. */
function getEventText(event: ChatEvent): string {
  if (event.type === "text" || event.type === "reasoning") return event.text;
  return event.type === "tool_calls" ? JSON.stringify(event.delta) : "";
}

/** Yields the frames of a transcript. A failure is the last frame. */
async function* formatTranscript(
  first: IteratorResult<TranscriptEvent>,
  events: AsyncGenerator<TranscriptEvent>,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  try {
    for (let step = first; !step.done; step = await events.next()) {
      yield encoder.encode(schema.toOpenAiTranscriptFrame(step.value));
    }
  } catch (error) {
    yield encoder.encode(formatErrorFrame(error));
  }
}

function formatErrorFrame(thrown: unknown): string {
  return `data: ${JSON.stringify(createOpenAiError(thrown).body)}\n\n`;
}

/** Reads a reply as events of a model. @throws {AppError} if the reply failed */
async function* readReply({ reply, from }: StartedReply): AsyncGenerator<ChatEvent[]> {
  let cursor: ReplyCursor = from;
  for (;;) {
    const step = await reply.next(cursor);
    if ("batch" in step) {
      yield step.batch.map(({ type, delta }) => ({ type, text: delta }));
      cursor = { ...step.batch.at(-1)!, calls: cursor.calls };
      continue;
    }
    if ("suspended" in step) throw new AppError("interrupted", step.suspended.error!.message);
    // OpenAI's API has no form for notices, and Parlor's own tools aren't used here.
    if ("notice" in step || "progress" in step || "calls" in step) {
      cursor = step.after;
      continue;
    }
    const { error, toolCalls, finishReason, usage, timings } = step.end;
    if (error !== undefined) throw new AppError(error.code as ErrorCode, error.message);
    if (toolCalls !== undefined) yield [{ type: "tool_calls", delta: toolCalls }];
    yield [{ type: "finish", reason: finishReason ?? "stop" }];
    if (usage !== undefined) yield [{ type: "usage", usage, timings }];
    return;
  }
}

async function waitForEnd({ reply }: StartedReply): Promise<void> {
  // Nothing is stored: only the final position counts.
  let cursor: ReplyCursor = { seq: 0, textLength: 0, reasoningLength: 0 };
  for (;;) {
    const step = await reply.next(cursor);
    if ("end" in step || "suspended" in step) return;
    cursor = "batch" in step ? { ...step.batch.at(-1)!, calls: cursor.calls } : step.after;
  }
}
