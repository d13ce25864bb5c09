/** Speech on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { AUDIO_FORMATS } from "../../services/speech/audio_format.ts";
import type { SpeechConfig, SpeechConfigInput } from "../../services/speech/speech_settings.ts";
import type { SpeakRequest } from "../../services/speech/speech.ts";
import { ApiKey, ERRORS, Id, IfMatch, json, jsonBody } from "./common.ts";

/** What OpenAI takes at most; other servers take less, and long texts are spoken piece by piece. */
const MAX_TEXT = 4096;
/** Formats that can be asked for. */
const Format = z.enum(AUDIO_FORMATS).exclude(["ogg", "m4a", "webm"]);
const Name = z.string().max(300);
/** As OpenAI bounds it. */
const Speed = z.number().min(0.25).max(4).openapi({ description: "Times the voice's own speed" });

const SpeakBody = z.object({
  text: z.string().max(MAX_TEXT).refine((text) => text.trim() !== "", "there is nothing to speak"),
  voice: Name.nullish().openapi({ description: "A voice of the speech server's, or the id of a voice sample" }),
  model: Name.nullish(),
  format: Format.nullish(),
  speed: Speed.nullish(),
  base_url: z.string().max(2000).nullish().openapi({
    description: "Another server; the stored key goes along only to the configured origin",
  }),
  ref_audio: Id.nullish().openapi({ description: "Id of a voice sample to speak in the voice of" }),
}).openapi("SpeakRequest");

const ConfigAnswer = z.object({
  base_url: z.string(),
  model: z.string(),
  voice: z.string(),
  format: z.string(),
  speed: z.number(),
  has_key: z.boolean(),
}).openapi("SpeechConfig");

const ConfigBody = z.object({
  base_url: z.string().max(2000).nullish(),
  model: Name.nullish(),
  voice: Name.nullish(),
  format: Format.nullish(),
  speed: Speed.nullish(),
  api_key: ApiKey.nullish().openapi({ description: "Absent keeps the stored key, null clears it" }),
}).openapi("SpeechConfigPatch", { description: "What is left out stays; null clears it" });

const Voices = z.object({
  source: z.enum(["upstream", "files", "catalogue"]),
  voices: z.array(z.object({ id: z.string(), name: z.string(), language: z.string().optional() })),
}).openapi("Voices");

const Models = z.object({ object: z.literal("list"), data: z.array(z.object({ id: z.string() })) }).openapi(
  "SpeechModels",
);

/** Gives what a client asks to be spoken its form inside the server. */
export function speakRequestOf(body: z.infer<typeof SpeakBody>): SpeakRequest {
  const { text, voice, model, format, speed, base_url: baseUrl, ref_audio: refAudio } = body;
  return {
    text,
    voice: voice ?? undefined,
    model: model ?? undefined,
    format: format ?? undefined,
    speed: speed ?? undefined,
    baseUrl: baseUrl ?? undefined,
    refAudio: refAudio ?? undefined,
  };
}

/** Gives a change of the endpoint its form inside the server. */
export function configInputOf(body: z.infer<typeof ConfigBody>): SpeechConfigInput {
  const { base_url: baseUrl, model, voice, format, speed, api_key: apiKey } = body;
  return { baseUrl, model, voice, format, speed, apiKey };
}

/** Gives the endpoint its form on the wire. */
export function configAnswerOf(config: SpeechConfig): z.infer<typeof ConfigAnswer> {
  const { baseUrl, model, voice, format, speed, hasKey } = config;
  return { base_url: baseUrl, model, voice, format, speed, has_key: hasKey };
}

const tags = ["Speech"];

/** Speak one piece. */
export const speakRoute = createRoute({
  method: "post",
  path: "/api/tts/speak",
  tags,
  summary: "Synthesize one chunk of text",
  request: { body: jsonBody(SpeakBody) },
  responses: {
    200: {
      description: "The audio as the server makes it, in the format its Content-Type names",
      content: { "audio/*": { schema: { type: "string" as const, format: "binary" } } },
    },
    ...ERRORS,
  },
});

/** The endpoint. */
export const configRoute = createRoute({
  method: "get",
  path: "/api/tts/config",
  tags,
  summary: "Current speech endpoint, model and voice",
  responses: { 200: json(ConfigAnswer, "The endpoint; the ETag is its version"), ...ERRORS },
});

/** Change the endpoint. */
export const putConfigRoute = createRoute({
  method: "put",
  path: "/api/tts/config",
  tags,
  summary: "Update endpoint, model and voice",
  request: { headers: IfMatch, body: jsonBody(ConfigBody) },
  responses: { 200: json(ConfigAnswer, "The endpoint as it is now"), ...ERRORS },
});

/** The voices. */
export const voicesRoute = createRoute({
  method: "get",
  path: "/api/tts/voices",
  tags,
  summary: "Voices the speech server advertises, else voice samples, else a curated catalogue",
  request: { query: z.object({ model: Name.optional() }) },
  responses: { 200: json(Voices, "The voices and where they are known from"), ...ERRORS },
});

/** The models. */
export const modelsRoute = createRoute({
  method: "get",
  path: "/api/tts/models",
  tags,
  summary: "Models the speech server advertises",
  responses: { 200: json(Models, "The models"), ...ERRORS },
});

/** The settings of the speech server. */
export type SpeechConfigJson = z.output<typeof ConfigAnswer>;

/** Settings of the speech server to change. */
export type SpeechConfigPatchJson = z.input<typeof ConfigBody>;

/** The voices of the speech server. */
export type VoicesJson = z.output<typeof Voices>;
