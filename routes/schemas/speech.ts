/** Text-to-speech and voice samples. */
import { createRoute, z } from "@hono/zod-openapi";
import { AUDIO_FORMATS } from "../../services/speech/audio_format.ts";
import type { SpeakRequest, SpeechConfig, SpeechConfigInput } from "../../services/speech/speech.ts";
import type { DetectedSpeechServer } from "../../services/speech/speech_detection.ts";
import type { VoiceImportRequest } from "../../services/speech/voice_import.ts";
import type { VoiceSample } from "../../services/speech/voice_samples.ts";
import { ApiKey, ERRORS, Id, IdParams, IfMatch, json, jsonBody, RangeHeaders, Time } from "./common.ts";
import { createRestoreVersionRoute, createVersionRoute, createVersionsRoute, VersionNumber } from "./versions.ts";

/** OpenAI's maximum in characters. Other servers accept less, and long texts are spoken in pieces. */
const MAX_TEXT = 4096;
/** Formats that can be requested. */
const Format = z.enum(AUDIO_FORMATS).exclude(["ogg", "m4a", "webm"]);
const Name = z.string().max(300);
/** OpenAI's limits. */
const Speed = z.number().min(0.25).max(4).openapi({ description: "Factor of the voice's normal speed" });

const SpeakBody = z.object({
  text: z.string().max(MAX_TEXT).refine((text) => text.trim() !== "", "a text to speak is required"),
  voice: Name.nullish().openapi({ description: "A voice of the speech server, or the ID of a voice sample" }),
  model: Name.nullish(),
  format: Format.nullish(),
  speed: Speed.nullish(),
  base_url: z.string().max(2000).nullish().openapi({
    description: "URL of another server; the stored key is sent only to the configured origin",
  }),
  ref_audio: Id.nullish().openapi({ description: "ID of the voice sample whose voice is used" }),
}).openapi("SpeakRequest");

const ConfigResponse = z.object({
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
  api_key: ApiKey.nullish().openapi({ description: "If absent, the stored key is kept; null deletes it" }),
}).openapi("SpeechConfigPatch", { description: "Omitted fields keep their value; null clears it" });

const Voices = z.object({
  source: z.enum(["upstream", "files", "catalogue"]),
  voices: z.array(z.object({ id: z.string(), name: z.string(), language: z.string().optional() })),
}).openapi("Voices");

const Models = z.object({ object: z.literal("list"), data: z.array(z.object({ id: z.string() })) }).openapi(
  "SpeechModels",
);

/** A server that was detected. */
export const FoundSpeech = z.object({
  base_url: z.string(),
  software: z.string(),
  models: z.array(z.string()).openapi({ description: "Models that speak" }),
  voices: z.number().int().openapi({ description: "Number of listed voices" }),
  needs_key: z.boolean().optional(),
}).openapi("FoundSpeechServer");

const SpeechDetection = z.object({
  reachable: z.boolean().openapi({ description: "Whether anything responds at the address" }),
  software: z.string().optional().openapi({ description: "Absent if it isn't a speech server" }),
  models: z.array(z.string()).optional(),
  voices: z.number().int().optional(),
  needs_key: z.boolean().optional(),
}).openapi("SpeechServerDetection");

/** Converts a detected server to its JSON form. */
export function toDetectedSpeechJson(server: DetectedSpeechServer): z.infer<typeof FoundSpeech> {
  const { baseUrl: base_url, software, models, voices, needsKey: needs_key } = server;
  return { base_url, software, models, voices, needs_key };
}

/** Converts a request to speak to the type of the service. */
export function toSpeakRequest(body: z.infer<typeof SpeakBody>): SpeakRequest {
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

/** Converts a change of the endpoint to the type of the service. */
export function toSpeechConfigInput(body: z.infer<typeof ConfigBody>): SpeechConfigInput {
  const { base_url: baseUrl, model, voice, format, speed, api_key: apiKey } = body;
  return { baseUrl, model, voice, format, speed, apiKey };
}

/** Converts the endpoint to its JSON form. */
export function toSpeechConfigJson(config: SpeechConfig): z.infer<typeof ConfigResponse> {
  const { baseUrl, model, voice, format, speed, hasKey } = config;
  return { base_url: baseUrl, model, voice, format, speed, has_key: hasKey };
}

const tags = ["Speech"];

/** Speak one piece. */
export const speakRoute = createRoute({
  method: "post",
  path: "/api/tts/speak",
  tags,
  summary: "Speak a piece of text",
  request: { body: jsonBody(SpeakBody) },
  responses: {
    200: {
      description: "The audio as the server creates it, in the format of its Content-Type",
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
  summary: "Get the speech endpoint, its model and voice",
  responses: { 200: json(ConfigResponse, "The endpoint; the ETag is its version"), ...ERRORS },
});

/** Change the endpoint. */
export const putConfigRoute = createRoute({
  method: "put",
  path: "/api/tts/config",
  tags,
  summary: "Update the speech endpoint, its model and voice",
  request: { headers: IfMatch, body: jsonBody(ConfigBody) },
  responses: { 200: json(ConfigResponse, "The updated endpoint"), ...ERRORS },
});

/** The voices. */
export const voicesRoute = createRoute({
  method: "get",
  path: "/api/tts/voices",
  tags,
  summary: "List the voices of the speech server; if it lists none, voice samples, or else a built-in list",
  request: { query: z.object({ model: Name.optional() }) },
  responses: { 200: json(Voices, "The voices and their source"), ...ERRORS },
});

/** The models. */
export const modelsRoute = createRoute({
  method: "get",
  path: "/api/tts/models",
  tags,
  summary: "List the models of the speech server",
  responses: { 200: json(Models, "The models"), ...ERRORS },
});

/** Look for running servers. */
export const discoverSpeechRoute = createRoute({
  method: "post",
  path: "/api/tts/discover",
  tags,
  summary: "Probe the configured hosts (this machine) for running speech servers",
  responses: { 200: json(z.array(FoundSpeech), "The servers found"), ...ERRORS },
});

/** Detect the kind of a server. */
export const detectSpeechRoute = createRoute({
  method: "post",
  path: "/api/tts/detect",
  tags,
  summary: "Detect which speech server is at a URL; no key is sent",
  request: { body: jsonBody(z.object({ base_url: z.string().min(1).max(2000) })) },
  responses: { 200: json(SpeechDetection, "The result of the detection"), ...ERRORS },
});

/** A speech server that was detected. */
export type DetectedSpeechServerJson = z.output<typeof FoundSpeech>;

/** What the speech server at an address is. */
export type SpeechDetectionJson = z.output<typeof SpeechDetection>;

/** The settings of the speech server. */
export type SpeechConfigJson = z.output<typeof ConfigResponse>;

/** Settings of the speech server to change. */
export type SpeechConfigPatchJson = z.input<typeof ConfigBody>;

/** The voices of the speech server. */
export type VoicesJson = z.output<typeof Voices>;

/** Name of a voice sample. Also used for the parts of a form. */
export const SampleName = z.string().trim().min(1).max(200);
/** Description of a voice sample. */
export const SampleDescription = z.string().max(2000);

const VoiceResponse = z.object({
  id: Id,
  name: z.string(),
  description: z.string(),
  format: z.string(),
  content_type: z.string(),
  duration_s: z.number().optional().openapi({ description: "Absent if the file doesn't contain it" }),
  sample_rate_hz: z.number().int().optional(),
  size_bytes: z.number().int(),
  created_at: Time,
}).openapi("VoiceSample");

const PatchBody = z.object({
  name: SampleName.optional(),
  description: SampleDescription.nullish(),
}).openapi("VoiceSamplePatch", { description: "Omitted fields keep their value; null clears the description" });

const ImportBody = z.object({
  url: z.string().max(4000),
  name: SampleName.nullish().openapi({ description: "By default the last part of the URL" }),
  description: SampleDescription.nullish(),
  start_s: z.number().min(0).max(86_400).nullish(),
  end_s: z.number().min(0).max(86_400).nullish(),
}).openapi("VoiceImport");

/** Converts a sample to its JSON form. */
export function toVoiceSampleJson(sample: VoiceSample): z.infer<typeof VoiceResponse> {
  const { id, name, description, format } = sample;
  return {
    id,
    name,
    description,
    format,
    content_type: sample.contentType,
    duration_s: sample.durationS,
    sample_rate_hz: sample.sampleRateHz,
    size_bytes: sample.sizeBytes,
    created_at: new Date(sample.createdAtMs).toISOString(),
  };
}

/** Converts an import to the type of the service. */
export function toVoiceImportRequest(body: z.infer<typeof ImportBody>): VoiceImportRequest {
  const { url, description, start_s: startS, end_s: endS } = body;
  const name = body.name ?? parseName(url);
  return { url, name, description: description ?? "", startS: startS ?? undefined, endS: endS ?? undefined };
}

/** Returns the last part of a URL without its extension, or the host if there is none. */
function parseName(text: string): string {
  const url = URL.parse(text);
  const last = decodeOrKeep(url?.pathname.split("/").findLast((part) => part !== "") ?? "").replace(/\.[^.]*$/, "");
  return last.trim().slice(0, 200) || url?.host || text.slice(0, 200);
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const voicesPath = "/api/voices";
const voiceTags = ["Voices"];

/** All samples. */
export const listSamplesRoute = createRoute({
  method: "get",
  path: voicesPath,
  tags: voiceTags,
  summary: "List voice samples",
  responses: { 200: json(z.array(VoiceResponse), "The samples, by name"), ...ERRORS },
});

/** Upload one. */
export const uploadSampleRoute = createRoute({
  method: "post",
  path: voicesPath,
  tags: voiceTags,
  summary: "Upload a voice sample: wav, mp3, m4a, ogg, flac or webm, recognized by its content",
  request: {
    body: {
      required: true,
      content: {
        "multipart/form-data": {
          // Read by the handler as a stream; with a zod schema here the body would be read twice.
          schema: {
            type: "object" as const,
            required: ["audio", "name"],
            properties: {
              audio: { type: "string" as const, format: "binary" },
              name: { type: "string" as const, maxLength: 200 },
              description: { type: "string" as const, maxLength: 2000 },
            },
          },
        },
      },
    },
  },
  responses: { 201: json(VoiceResponse, "Stored"), ...ERRORS },
});

/** Import one from an address. */
export const importSampleRoute = createRoute({
  method: "post",
  path: `${voicesPath}/from-url`,
  tags: voiceTags,
  summary: "Import a voice sample from a page with video or audio, or from the URL of an audio file",
  request: { body: jsonBody(ImportBody) },
  responses: {
    201: json(
      VoiceResponse,
      "The stored sample; X-Parlor-Job-Id names the job, which continues if the client disconnects",
    ),
    ...ERRORS,
  },
});

/** One sample. */
export const getSampleRoute = createRoute({
  method: "get",
  path: `${voicesPath}/{id}`,
  tags: voiceTags,
  summary: "Get the metadata of a voice sample",
  request: { params: IdParams },
  responses: { 200: json(VoiceResponse, "The sample"), ...ERRORS },
});

/** Rename one. */
export const patchSampleRoute = createRoute({
  method: "patch",
  path: `${voicesPath}/{id}`,
  tags: voiceTags,
  summary: "Change the name and description of a voice sample",
  request: { params: IdParams, body: jsonBody(PatchBody) },
  responses: { 200: json(VoiceResponse, "The updated sample"), ...ERRORS },
});

/** Remove one. */
export const deleteSampleRoute = createRoute({
  method: "delete",
  path: `${voicesPath}/{id}`,
  tags: voiceTags,
  summary: "Move a voice sample to the trash",
  request: { params: IdParams },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Its audio. */
export const sampleAudioRoute = createRoute({
  method: "get",
  path: `${voicesPath}/{id}/audio`,
  tags: voiceTags,
  summary: "Get the audio of a voice sample",
  request: { params: IdParams, headers: RangeHeaders },
  responses: {
    200: {
      description: "The audio",
      content: { "audio/*": { schema: { type: "string" as const, format: "binary" } } },
    },
    206: {
      description: "The part of it that Range requests",
      content: { "audio/*": { schema: { type: "string" as const, format: "binary" } } },
    },
    ...ERRORS,
  },
});

const versioned = {
  path: `${voicesPath}/{id}`,
  what: "a voice sample",
  tags: voiceTags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  response: VoiceResponse,
};

/** Earlier versions of name and description. */
export const sampleVersionsRoute = createVersionsRoute(versioned);

/** One of them. */
export const sampleVersionRoute = createVersionRoute(
  versioned,
  z.object({ name: z.string(), description: z.string() }).openapi("VoiceSampleVersion"),
);

/** Restore one. */
export const restoreSampleVersionRoute = createRestoreVersionRoute(versioned);

/** A voice sample. */
export type VoiceSampleJson = z.output<typeof VoiceResponse>;

/** The body that imports a voice sample from a URL. */
export type VoiceImportJson = z.input<typeof ImportBody>;
