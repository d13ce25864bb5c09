/**
 * The OpenAI-compatible API, as described at https://platform.openai.com/docs/api-reference. Fields that aren't listed
 * here are passed through.
 */
import { createRoute, z } from "@hono/zod-openapi";
import type { TokenAllowance } from "../../services/auth/credential_stores.ts";
import type { AnyChatRequest } from "../../services/chat/chat_service.ts";
import type { ChatMessage } from "../../services/llm/chat_event.ts";
import type { EmbeddingsRequest } from "../../services/llm/openai/openai_provider.ts";
import type { OpenAiModelList, ResolvedModel } from "../../services/openai_api/openai_models.ts";
import type { SpeakRequest } from "../../services/speech/speech.ts";
import type { WithheldContext } from "../../services/prompts/prompt_context.ts";
import { AppError } from "../../services/errors.ts";
import { asNumber, asObject } from "../../services/json/type_guards.ts";
import type { TranscriptEvent } from "../../services/transcription/transcript_events.ts";
import type { Transcript } from "../../services/transcription/transcription_server.ts";
import { isId } from "../../services/storage/ids.ts";
import { BINARY, eventStream, json, jsonBody } from "./common.ts";

const ErrorResponse = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string(),
  }),
}).openapi("OpenAiError");

/** Error responses of the OpenAI-compatible API. */
export const OPENAI_ERRORS = {
  default: { description: "Error in OpenAI's format", content: { "application/json": { schema: ErrorResponse } } },
};
/** Tags of the OpenAI-compatible API. */
export const OPENAI_TAGS = ["OpenAI-compatible"];

/** Name of a model in a request. */
export const ModelName = z.string().min(1).max(1000).openapi({
  description: "default, character:<id or slug of its name>, or connection:<id>/<model>",
  example: "default",
});

const Model = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.number().int(),
  owned_by: z.string(),
  name: z.string().openapi({ description: "For display: the character's name, or model and connection" }),
}).openapi("OpenAiModel");

const ModelList = z.object({
  object: z.literal("list"),
  data: z.array(Model),
  unavailable: z.array(z.object({ connection_id: z.string(), name: z.string(), message: z.string() })).openapi({
    description: "Connections whose models couldn't be listed",
  }),
}).openapi("OpenAiModelList");

/** `GET /api/v1/models` */
export const modelsRoute = createRoute({
  method: "get",
  path: "/api/v1/models",
  tags: OPENAI_TAGS,
  summary: "List models: the default, one per character, and those of each connection",
  responses: { 200: json(ModelList, "The models"), ...OPENAI_ERRORS },
});

/** `GET /api/v1/models/{id}` */
export const modelRoute = createRoute({
  method: "get",
  path: "/api/v1/models/{id}",
  tags: OPENAI_TAGS,
  summary: "Get one model by its name, whose slashes are encoded as %2F",
  request: { params: z.object({ id: z.string().min(1).max(1000) }) },
  responses: { 200: json(Model, "The model"), ...OPENAI_ERRORS },
});

const Message = z.looseObject({
  role: z.string().min(1).max(32),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
});

const ChatBody = z.looseObject({
  model: ModelName,
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.number().int().min(1).max(1, "only one choice is supported").nullish(),
  store: z.boolean().nullish().openapi({
    description:
      "Whether to store the messages and the reply as a conversation, whose ID is in X-Parlor-Conversation-Id",
  }),
  metadata: z.looseObject({}).nullish().openapi({
    description: "With store: ID of the conversation to add to, or of a new one",
  }),
}).refine(({ store, metadata }) => store !== true || hasValidConversationId(metadata), {
  message: "an ID has 1 to 64 letters, digits, _ or -",
  path: ["metadata", "conversation_id"],
}).openapi("OpenAiChatRequest");

function hasValidConversationId(metadata: Record<string, unknown> | null | undefined): boolean {
  const id = metadata?.conversation_id;
  return id === undefined || id === null || (typeof id === "string" && isId(id));
}

const Completion = z.looseObject({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.number(),
  model: z.string(),
  choices: z.array(z.looseObject({})),
}).openapi("OpenAiChatCompletion");

/** `POST /api/v1/chat/completions` */
export const completionsRoute = createRoute({
  method: "post",
  path: "/api/v1/chat/completions",
  tags: OPENAI_TAGS,
  summary: "Send messages to a model; for a character, the server assembles the prompt around the messages",
  request: { body: jsonBody(ChatBody) },
  responses: {
    200: {
      description: "The reply; with stream, its chunks and [DONE]",
      content: {
        "application/json": { schema: Completion },
        ...eventStream("A chat.completion.chunk, or an error; [DONE] is the last"),
      },
    },
    ...OPENAI_ERRORS,
  },
});

/** A chat request of the API. */
export type OpenAiChatJson = z.infer<typeof ChatBody>;

/** Fields that aren't passed on to the model server unchanged. */
const OWN_FIELDS = new Set(["model", "messages", "stream", "stream_options", "n", "store", "metadata"]);

/**
 * Converts a chat request to the type of the service. It has a `conversationId` if the reply is stored.
 *
 * @param allow What the caller's token may use; without it, everything.
 */
export function toOpenAiChatRequest(
  body: OpenAiChatJson,
  { model, connectionId, characterId }: ResolvedModel,
  allow?: TokenAllowance,
): AnyChatRequest {
  // Tokens that are limited to this API can't choose among the owner's documents.
  const messages = body.messages.map(({ documents: _, ...message }) =>
    ({ ...message, content: message.content ?? null }) as ChatMessage
  );
  const request: AnyChatRequest = {
    model,
    connectionId,
    messages,
    params: Object.fromEntries(
      Object.entries(body).filter(([field, value]) => !OWN_FIELDS.has(field) && value !== null),
    ),
    context: characterId === undefined ? "client" : "character",
    characterId,
    withheld: toWithheld(allow),
    use: "api",
  };
  if (body.store !== true) return request;
  const earlier = messages.at(-1)?.role === "user" ? messages.slice(0, -1) : messages;
  return {
    ...request,
    action: "send",
    conversationId: (body.metadata?.conversation_id as string | undefined) ?? crypto.randomUUID(),
    opening: {
      participants: characterId === undefined ? [] : [{ character_id: characterId }],
      messages: earlier.filter(({ role }) => role === "user" || role === "assistant"),
    },
  };
}

/** Returns what prompts leave out for a token. */
export function toWithheld(allow: TokenAllowance | undefined): WithheldContext | undefined {
  return allow && { notes: !allow.notes, persona: !allow.persona };
}

/** Converts the list of models to its JSON form. */
export function toModelListJson({ data, unavailable }: OpenAiModelList): z.infer<typeof ModelList> {
  return {
    object: "list",
    data,
    unavailable: unavailable.map(({ connectionId, name, error }) => ({
      connection_id: connectionId,
      name,
      message: error.message,
    })),
  };
}

const EmbeddingsBody = z.looseObject({
  model: ModelName,
  input: z.union([z.string(), z.array(z.union([z.string(), z.number(), z.array(z.number())]))]),
}).openapi("OpenAiEmbeddingsRequest");

const Embeddings = z.looseObject({
  data: z.array(z.looseObject({ embedding: z.union([z.array(z.number()), z.string()]) })),
}).openapi("OpenAiEmbeddings");

/** `POST /api/v1/embeddings` */
export const embeddingsRoute = createRoute({
  method: "post",
  path: "/api/v1/embeddings",
  tags: OPENAI_TAGS,
  summary: "Create embeddings with the model of a connection",
  request: { body: jsonBody(EmbeddingsBody) },
  responses: { 200: json(Embeddings, "The embeddings, as the model server sent them"), ...OPENAI_ERRORS },
});

/** Converts a request for embeddings to the body for the model server. */
export function toEmbeddingsRequest(body: z.infer<typeof EmbeddingsBody>, model: string): EmbeddingsRequest {
  return {
    ...Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)),
    model,
    input: body.input,
  };
}

/** OpenAI's maximum. */
const MAX_SPEECH_CHARS = 4096;

const SpeechBody = z.looseObject({
  model: z.string().max(300).nullish().openapi({
    description: "A model that the speech server lists; for any other name, the configured model is used",
  }),
  input: z.string().max(MAX_SPEECH_CHARS).refine((text) => text.trim() !== "", "a text to speak is required"),
  voice: z.union([z.string().max(300), z.looseObject({ id: z.string().max(300) })]).nullish().openapi({
    description: "A voice of the speech server, or the ID of a voice sample; if absent, the configured voice",
  }),
  response_format: z.enum(["mp3", "opus", "aac", "flac", "wav", "pcm"]).default("mp3"),
  speed: z.number().min(0.25).max(4).nullish(),
}).openapi("OpenAiSpeechRequest");

/** `POST /api/v1/audio/speech` */
export const speechRoute = createRoute({
  method: "post",
  path: "/api/v1/audio/speech",
  tags: OPENAI_TAGS,
  summary: "Speak a text with the configured speech server",
  request: { body: jsonBody(SpeechBody) },
  responses: {
    200: {
      description: "The audio as the server creates it, in the format of its Content-Type",
      content: { "audio/*": { schema: { type: "string" as const, format: "binary" } } },
    },
    ...OPENAI_ERRORS,
  },
});

/**
 * Converts a text to speak to the type of the service.
 *
 * @param model The speech server's name of the model; empty for its default.
 */
export function toOpenAiSpeakRequest(body: z.infer<typeof SpeechBody>, model: string): SpeakRequest {
  const { input, voice, response_format, speed } = body;
  return {
    text: input,
    voice: (typeof voice === "string" ? voice : voice?.id) || undefined,
    model: model || undefined,
    format: response_format,
    speed: speed ?? undefined,
  };
}

/** Formats of a transcript. */
export const TranscriptFormat = z.enum(["json", "text", "verbose_json", "srt", "vtt"]).default("json");

const text = { type: "string" as const };
const Transcription = z.looseObject({ text: z.string() }).openapi("OpenAiTranscription");

/** `POST /api/v1/audio/transcriptions` */
export const transcriptionsRoute = createRoute({
  method: "post",
  path: "/api/v1/audio/transcriptions",
  tags: OPENAI_TAGS,
  summary: "Transcribe a recording with the configured transcription server",
  request: {
    body: {
      required: true,
      content: {
        "multipart/form-data": {
          // Parsed by the handler; with a zod schema here the body would be read twice.
          schema: {
            type: "object" as const,
            required: ["file"],
            properties: {
              file: BINARY,
              model: {
                ...text,
                description: "A model that the server lists; for any other name, the configured model is used",
              },
              language: { ...text, description: "ISO 639-1" },
              prompt: { ...text, description: "Text that contains the spelling of names in the recording" },
              response_format: { ...text, enum: ["json", "text", "verbose_json", "srt", "vtt"], default: "json" },
              stream: { ...text, enum: ["true", "false"] },
            },
          },
        },
      },
    },
  },
  responses: {
    200: {
      description: "The transcript; with stream, transcript.text.delta and transcript.text.done events",
      content: {
        "application/json": { schema: Transcription },
        "text/plain": { schema: z.string() },
        ...eventStream("JSON of the event"),
      },
    },
    ...OPENAI_ERRORS,
  },
});

/** Formats a transcript. @throws {AppError} `unprocessable` if subtitles are requested and the server sends no times */
export function formatTranscript(transcript: Transcript, format: z.infer<typeof TranscriptFormat>): string {
  const { text, language, durationS: duration, segments } = transcript;
  if (format === "json") return JSON.stringify({ text });
  if (format === "text") return `${text}\n`;
  if (format === "verbose_json") return JSON.stringify({ task: "transcribe", language, duration, text, segments });
  return formatSubtitles(segments ?? [], format);
}

function formatSubtitles(segments: unknown[], format: "srt" | "vtt"): string {
  const cues = segments.map((segment, n) => {
    const { start, end, text } = asObject(segment);
    const [from, to] = [asNumber(start), asNumber(end)];
    if (from === undefined || to === undefined || typeof text !== "string") return undefined;
    const times = [from, to].map((seconds) => formatTime(seconds, format === "srt" ? "," : ".")).join(" --> ");
    return `${format === "srt" ? `${n + 1}\n` : ""}${times}\n${text.trim()}\n\n`;
  });
  if (cues.length === 0 || cues.includes(undefined)) {
    const message = "the transcription server sends no times, so subtitles can't be created";
    throw new AppError("unprocessable", message, { issues: [{ path: "response_format", message }] });
  }
  return (format === "vtt" ? "WEBVTT\n\n" : "") + cues.join("");
}

/** Formats a time as `00:00:01,500`. */
function formatTime(seconds: number, point: "," | "."): string {
  return new Date(Math.round(seconds * 1000)).toISOString().slice(11, 23).replace(".", point);
}

/** Creates one event of a streamed transcript. */
export function toOpenAiTranscriptFrame(event: TranscriptEvent): string {
  const data = event.kind === "delta"
    ? { type: "transcript.text.delta", delta: event.text }
    : { type: "transcript.text.done", text: event.transcript.text };
  return `data: ${JSON.stringify(data)}\n\n`;
}
