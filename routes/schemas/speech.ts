/** Text-to-speech and voice samples. */
import { createRoute, z } from "@hono/zod-openapi";
import { AUDIO_FORMATS } from "../../services/speech/audio_format.ts";
import type { SpeakRequest, SpeechConfig, SpeechConfigInput } from "../../services/speech/speech.ts";
import type { VoiceImportRequest } from "../../services/speech/voice_import.ts";
import type { VoiceSample } from "../../services/speech/voice_samples.ts";
import { ApiKey, ERRORS, Id, IdParams, IfMatch, json, jsonBody, RangeHeaders, Time } from "./common.ts";
import { createRestoreVersionRoute, createVersionRoute, createVersionsRoute, VersionNumber } from "./versions.ts";

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

/** Converts what a client asks to be spoken to the type of the service. */
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
export function toSpeechConfigJson(config: SpeechConfig): z.infer<typeof ConfigAnswer> {
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

/** What a sample is called; also checked for the parts of a form. */
export const SampleName = z.string().trim().min(1).max(200);
/** What else there is to say of it. */
export const SampleDescription = z.string().max(2000);

const VoiceAnswer = z.object({
  id: Id,
  name: z.string(),
  description: z.string(),
  format: z.string(),
  content_type: z.string(),
  duration_s: z.number().optional().openapi({ description: "Absent where the file does not say" }),
  sample_rate_hz: z.number().int().optional(),
  size_bytes: z.number().int(),
  created_at: Time,
}).openapi("VoiceSample");

const PatchBody = z.object({
  name: SampleName.optional(),
  description: SampleDescription.nullish(),
}).openapi("VoiceSamplePatch", { description: "What is left out stays; null clears the description" });

const ImportBody = z.object({
  url: z.string().max(4000),
  name: SampleName.nullish().openapi({ description: "By default what the address ends in" }),
  description: SampleDescription.nullish(),
  start_s: z.number().min(0).max(86_400).nullish(),
  end_s: z.number().min(0).max(86_400).nullish(),
}).openapi("VoiceImport");

/** Converts a sample to its JSON form. */
export function toVoiceSampleJson(sample: VoiceSample): z.infer<typeof VoiceAnswer> {
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

/** Returns the last part of an address without its ending, else its host. */
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
  responses: { 200: json(z.array(VoiceAnswer), "The samples, by name"), ...ERRORS },
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
          // Read by the handler as it comes; a schema of zod here would have the body read twice.
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
  responses: { 201: json(VoiceAnswer, "Stored"), ...ERRORS },
});

/** Import one from an address. */
export const importSampleRoute = createRoute({
  method: "post",
  path: `${voicesPath}/from-url`,
  tags: voiceTags,
  summary: "Import a voice sample from a page with video or audio, or from the address of an audio file",
  request: { body: jsonBody(ImportBody) },
  responses: {
    201: json(VoiceAnswer, "Stored; X-Parlor-Job-Id names the job, which goes on when the client leaves"),
    ...ERRORS,
  },
});

/** One sample. */
export const getSampleRoute = createRoute({
  method: "get",
  path: `${voicesPath}/{id}`,
  tags: voiceTags,
  summary: "Fetch a voice sample's metadata",
  request: { params: IdParams },
  responses: { 200: json(VoiceAnswer, "The sample"), ...ERRORS },
});

/** Rename one. */
export const patchSampleRoute = createRoute({
  method: "patch",
  path: `${voicesPath}/{id}`,
  tags: voiceTags,
  summary: "Change what a voice sample is called and what is said of it",
  request: { params: IdParams, body: jsonBody(PatchBody) },
  responses: { 200: json(VoiceAnswer, "The sample as it is now"), ...ERRORS },
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
  summary: "Raw audio of a voice sample",
  request: { params: IdParams, headers: RangeHeaders },
  responses: {
    200: {
      description: "The audio; 206 with a part of it where Range names one",
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
  answer: VoiceAnswer,
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
export type VoiceSampleJson = z.output<typeof VoiceAnswer>;

/** The body that imports a voice sample from a URL. */
export type VoiceImportJson = z.input<typeof ImportBody>;
