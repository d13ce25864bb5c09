/** Transcription: recordings to text. */
import { createRoute, z } from "@hono/zod-openapi";
import type {
  TranscriptionConfig,
  TranscriptionConfigInput,
  TranscriptionTestResult,
} from "../../services/transcription/transcription.ts";
import type { DetectedTranscriptionServer, Transcript } from "../../services/transcription/transcription_server.ts";
import { ApiKey, BINARY, ERRORS, eventStream, IfMatch, json, jsonBody } from "./common.ts";

const Name = z.string().max(300);

/** Language of a recording. Also used for the parts of a form. */
export const SpeechLanguage = z.string().trim().regex(
  /^([A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*)?$/,
  "a language must be a code such as en",
)
  .openapi({ example: "en" });
/**
 * Text that contains the spelling of names. Also used for the parts of a form. Whisper uses about the last 224 tokens.
 */
export const TranscriptionPrompt = z.string().max(4000);

const ConfigResponse = z.object({
  base_url: z.string(),
  model: z.string(),
  language: z.string(),
  has_key: z.boolean(),
}).openapi("TranscriptionConfig");

const ConfigBody = z.object({
  base_url: z.string().max(2000).nullish(),
  model: Name.nullish(),
  language: SpeechLanguage.nullish().openapi({ description: "ISO 639-1; empty if the server detects it" }),
  api_key: ApiKey.nullish().openapi({ description: "If absent, the stored key is kept; null deletes it" }),
}).openapi("TranscriptionConfigPatch", { description: "Omitted fields keep their value; null clears it" });

const TestResponse = z.object({
  reachable: z.boolean(),
  error: z.string().optional(),
  models: z.array(z.string()),
  latency_ms: z.number().int(),
}).openapi("TranscriptionTest");

/** A server that was detected. */
export const FoundTranscription = z.object({ base_url: z.string(), software: z.string(), models: z.array(z.string()) })
  .openapi("DetectedTranscriptionServer");

const TranscriptResponse = z.object({
  text: z.string(),
  language: z.string().optional().openapi({ description: "As the server returns it: en or english" }),
  duration_s: z.number().optional(),
}).openapi("Transcript");

/** Converts a change of the settings from its JSON form. */
export function toTranscriptionConfigInput(body: z.infer<typeof ConfigBody>): TranscriptionConfigInput {
  const { base_url: baseUrl, model, language, api_key: apiKey } = body;
  return { baseUrl, model, language, apiKey };
}

/** Converts the settings to their JSON form. */
export function toTranscriptionConfigJson(config: TranscriptionConfig): z.infer<typeof ConfigResponse> {
  const { baseUrl, model, language, hasKey } = config;
  return { base_url: baseUrl, model, language, has_key: hasKey };
}

/** Converts the result of a test to its JSON form. */
export function toTranscriptionTestJson(result: TranscriptionTestResult): z.infer<typeof TestResponse> {
  const { isReachable: reachable, error, models, latencyMs: latency_ms } = result;
  return { reachable, error, models, latency_ms };
}

/** Converts a detected server to its JSON form. */
export function toDetectedServerJson(server: DetectedTranscriptionServer): z.infer<typeof FoundTranscription> {
  const { baseUrl: base_url, software, models } = server;
  return { base_url, software, models };
}

/** Converts a transcript to its JSON form. */
export function toTranscriptJson(
  { text, language, durationS: duration_s }: Transcript,
): z.infer<typeof TranscriptResponse> {
  return { text, language, duration_s };
}

const encoder = new TextEncoder();

/** Creates one event of a streamed transcript. */
export function toTranscriptFrame(event: "delta" | "done" | "error", data: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

const tags = ["Transcription"];
const path = "/api/stt";

/** The settings. */
export const configRoute = createRoute({
  method: "get",
  path: `${path}/config`,
  tags,
  summary: "Get the transcription server and model",
  responses: { 200: json(ConfigResponse, "The settings; the ETag is their version"), ...ERRORS },
});

/** Change the settings. */
export const putConfigRoute = createRoute({
  method: "put",
  path: `${path}/config`,
  tags,
  summary: "Update the transcription server and model; an address with another origin deletes the stored key",
  request: { headers: IfMatch, body: jsonBody(ConfigBody) },
  responses: { 200: json(ConfigResponse, "The new settings"), ...ERRORS },
});

/** Test changed settings. */
export const testRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary: "Test changed settings by transcribing a second of silence, without saving them",
  request: { body: jsonBody(ConfigBody) },
  responses: { 200: json(TestResponse, "The result of the test, and the models for transcription"), ...ERRORS },
});

/** Look for running servers. */
export const discoverRoute = createRoute({
  method: "post",
  path: `${path}/discover`,
  tags,
  summary: "Probe the configured hosts (this machine) for running transcription servers",
  responses: { 200: json(z.array(FoundTranscription), "The servers found"), ...ERRORS },
});

/** Transcribe. */
export const transcribeRoute = createRoute({
  method: "post",
  path: `${path}/transcribe`,
  tags,
  summary: "Transcribe a recording: wav, webm, ogg, mp4, mp3 or flac, detected by its content, up to 25 MiB",
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
              language: { type: "string" as const, description: "ISO 639-1; by default the configured one" },
              prompt: {
                type: "string" as const,
                maxLength: 4000,
                description: "Text that contains the spelling of names in the recording",
              },
            },
          },
        },
      },
    },
  },
  responses: {
    200: {
      description: "The transcript; with Accept: text/event-stream as events: delta {text} as the text arrives, then " +
        "done (the JSON answer) or error",
      content: { "application/json": { schema: TranscriptResponse }, ...eventStream("JSON of the event") },
    },
    ...ERRORS,
  },
});

/** The settings of the transcription server. */
export type TranscriptionConfigJson = z.output<typeof ConfigResponse>;

/** Settings of the transcription server to change or to test. */
export type TranscriptionConfigPatchJson = z.input<typeof ConfigBody>;

/** The result of a test. */
export type TranscriptionTestJson = z.output<typeof TestResponse>;

/** What was said in a recording. */
export type TranscriptJson = z.output<typeof TranscriptResponse>;
