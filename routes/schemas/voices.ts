/** Voice samples on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import type { VoiceImportRequest } from "../../services/speech/voice_import.ts";
import type { VoiceSample } from "../../services/speech/voice_samples.ts";
import { ERRORS, Id, IdParams, json, jsonBody, RangeHeaders, Time } from "./common.ts";
import { restoreVersionRouteOf, VersionNumber, versionRouteOf, versionsRouteOf } from "./versions.ts";

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

/** Gives a sample its form on the wire. */
export function voiceAnswerOf(sample: VoiceSample): z.infer<typeof VoiceAnswer> {
  const { id, name, description, format } = sample;
  return {
    ...{ id, name, description, format },
    content_type: sample.contentType,
    duration_s: sample.durationS,
    sample_rate_hz: sample.sampleRateHz,
    size_bytes: sample.sizeBytes,
    created_at: new Date(sample.createdAtMs).toISOString(),
  };
}

/** Gives an import its form inside the server. */
export function importRequestOf(body: z.infer<typeof ImportBody>): VoiceImportRequest {
  const { url, description, start_s: startS, end_s: endS } = body;
  const name = body.name ?? nameIn(url);
  return { url, name, description: description ?? "", startS: startS ?? undefined, endS: endS ?? undefined };
}

/** Gives the last part of an address without its ending, else its host. */
function nameIn(text: string): string {
  const url = URL.parse(text);
  const last = decodedOrRaw(url?.pathname.split("/").findLast((part) => part !== "") ?? "").replace(/\.[^.]*$/, "");
  return last.trim().slice(0, 200) || url?.host || text.slice(0, 200);
}

function decodedOrRaw(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const path = "/api/voices";
const tags = ["Voices"];

/** All samples. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List voice samples",
  responses: { 200: json(z.array(VoiceAnswer), "The samples, by name"), ...ERRORS },
});

/** Upload one. */
export const uploadRoute = createRoute({
  method: "post",
  path,
  tags,
  summary: "Upload a voice sample: wav, mp3, m4a, ogg, flac or webm, told by its content",
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
export const fromUrlRoute = createRoute({
  method: "post",
  path: `${path}/from-url`,
  tags,
  summary: "Import a voice sample from a page with video or audio, or from the address of an audio file",
  request: { body: jsonBody(ImportBody) },
  responses: {
    201: json(VoiceAnswer, "Stored; X-Parlor-Job-Id names the job, which goes on when the client leaves"),
    ...ERRORS,
  },
});

/** One sample. */
export const getRoute = createRoute({
  method: "get",
  path: `${path}/{id}`,
  tags,
  summary: "Fetch a voice sample's metadata",
  request: { params: IdParams },
  responses: { 200: json(VoiceAnswer, "The sample"), ...ERRORS },
});

/** Rename one. */
export const patchRoute = createRoute({
  method: "patch",
  path: `${path}/{id}`,
  tags,
  summary: "Change what a voice sample is called and what is said of it",
  request: { params: IdParams, body: jsonBody(PatchBody) },
  responses: { 200: json(VoiceAnswer, "The sample as it is now"), ...ERRORS },
});

/** Remove one. */
export const deleteRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Move a voice sample to the trash",
  request: { params: IdParams },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Its audio. */
export const audioRoute = createRoute({
  method: "get",
  path: `${path}/{id}/audio`,
  tags,
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
  path: `${path}/{id}`,
  what: "a voice sample",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  answer: VoiceAnswer,
};

/** Earlier versions of name and description. */
export const versionsRoute = versionsRouteOf(versioned);

/** One of them. */
export const versionRoute = versionRouteOf(
  versioned,
  z.object({ name: z.string(), description: z.string() }).openapi("VoiceSampleVersion"),
);

/** Restore one. */
export const restoreVersionRoute = restoreVersionRouteOf(versioned);

/** A voice sample. */
export type VoiceSampleJson = z.output<typeof VoiceAnswer>;

/** The body that imports a voice sample from a URL. */
export type VoiceImportJson = z.input<typeof ImportBody>;
