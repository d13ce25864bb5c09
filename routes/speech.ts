/** `/api/voices`, `/v1/audio` and `/api/stt`: speech, voice samples, transcription. */
import type { VoiceMetadata } from "../services/speech/voice_samples.ts";
import type { TranscriptionRequest } from "../services/transcription/transcription.ts";
import { findServers } from "../services/server_search/server_search.ts";
import { detectSpeechServerAt } from "../services/speech/speech_detection.ts";
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { parseFormField, readUpload } from "./http/form.ts";
import { sendFile } from "./http/file_response.ts";
import { createRouter, createSchemaError } from "./http/router.ts";
import * as schema from "./schemas/speech.ts";
import { toVersionJson } from "./schemas/versions.ts";
import type { TranscriptEvent } from "../services/transcription/transcript_events.ts";
import { detectTranscriptionServers } from "../services/transcription/transcription_server.ts";
import { createErrorBody } from "./errors.ts";
import { createEventStream, EVENT_STREAM_HEADERS } from "./http/event_stream.ts";
import * as transcriptions from "./schemas/transcription.ts";
import { passRawResponse } from "./http/raw_response.ts";

/** Routes of speech. */
export function speechRoutes(services: Services) {
  return createRouter().route("/", ttsRoutes(services)).route("/", voiceRoutes(services));
}

function ttsRoutes(services: Services) {
  return createRouter()
    .openapi(schema.speakRoute, async (c) => {
      const { speech } = await services.speech();
      const audio = await speech.speak(schema.toSpeakRequest(c.req.valid("json")), getClientSignal(c));
      c.header("Content-Type", audio.contentType);
      return c.body(audio.body, 200);
    })
    .openapi(schema.configRoute, async (c) => {
      const { speech } = await services.speech();
      const config = speech.settings.get();
      c.header("ETag", formatEtag(config.version));
      return c.json(schema.toSpeechConfigJson(config), 200);
    })
    .openapi(schema.putConfigRoute, async (c) => {
      const { speech } = await services.speech();
      const expected = parsePrecondition(c.req.valid("header"));
      const config = await speech.settings.put(schema.toSpeechConfigInput(c.req.valid("json")), expected);
      c.header("ETag", formatEtag(config.version));
      return c.json(schema.toSpeechConfigJson(config), 200);
    })
    .openapi(schema.voicesRoute, async (c) => {
      const { speech } = await services.speech();
      return c.json(await speech.listVoices(c.req.valid("query").model, getClientSignal(c)), 200);
    })
    .openapi(schema.modelsRoute, async (c) => {
      const { speech } = await services.speech();
      return c.json({ object: "list" as const, data: await speech.listModels(getClientSignal(c)) }, 200);
    })
    .openapi(schema.discoverSpeechRoute, async (c) => {
      const { speech } = await findServers({
        hosts: services.config.discoverHosts,
        ownListeners: services.ownListeners,
      });
      return c.json(speech.map(schema.toDetectedSpeechJson), 200);
    })
    .openapi(schema.detectSpeechRoute, async (c) => {
      const { isReachable, server } = await detectSpeechServerAt(c.req.valid("json").base_url, {
        ownListeners: services.ownListeners,
      });
      const { base_url: _, ...found } = server === undefined ? { base_url: "" } : schema.toDetectedSpeechJson(server);
      return c.json({ reachable: isReachable, ...found }, 200);
    });
}

/** Policy for files from strangers: browsers may only play them. */
const PLAY_ONLY = { "Content-Security-Policy": "sandbox; default-src 'none'", "Content-Disposition": "attachment" };

/** Routes of voice samples. */
function voiceRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listSamplesRoute, async (c) => {
      const { voices } = await services.speech();
      return c.json(voices.list().map(schema.toVoiceSampleJson), 200);
    })
    .openapi(schema.uploadSampleRoute, async (c) => {
      const { voices } = await services.speech();
      const form = await readUpload(c, "audio");
      const name = checked(schema.SampleName, "name", form.text("name"));
      const description = checked(schema.SampleDescription, "description", form.text("description") ?? "");
      return c.json(schema.toVoiceSampleJson(await voices.add({ name, description, audio: form.file })), 201);
    })
    .openapi(schema.importSampleRoute, async (c) => {
      const { voiceImports } = await services.speech();
      const { jobId, sample } = await voiceImports.start(schema.toVoiceImportRequest(c.req.valid("json")));
      c.header("X-Parlor-Job-Id", jobId);
      return c.json(schema.toVoiceSampleJson(await sample), 201);
    })
    .openapi(schema.getSampleRoute, async (c) => {
      const { voices } = await services.speech();
      const sample = voices.get(c.req.valid("param").id);
      c.header("ETag", formatEtag(voices.hashMetadata(sample)));
      return c.json(schema.toVoiceSampleJson(sample), 200);
    })
    .openapi(schema.patchSampleRoute, async (c) => {
      const { voices } = await services.speech();
      const { name, description } = c.req.valid("json");
      const changes = { name, description: description === null ? "" : description } satisfies Partial<VoiceMetadata>;
      const sample = await voices.change(c.req.valid("param").id, changes);
      c.header("ETag", formatEtag(voices.hashMetadata(sample)));
      return c.json(schema.toVoiceSampleJson(sample), 200);
    })
    .openapi(schema.sampleVersionsRoute, async (c) => {
      const { voices } = await services.speech();
      return c.json((await voices.listVersions(c.req.valid("param").id)).map(toVersionJson), 200);
    })
    .openapi(schema.sampleVersionRoute, async (c) => {
      const { voices } = await services.speech();
      const { id, n } = c.req.valid("param");
      return c.json(await voices.getVersion(id, n), 200);
    })
    .openapi(schema.restoreSampleVersionRoute, async (c) => {
      const { voices } = await services.speech();
      const { id, n } = c.req.valid("param");
      const sample = await voices.restoreVersion(id, n, parsePrecondition(c.req.valid("header")));
      c.header("ETag", formatEtag(voices.hashMetadata(sample)));
      return c.json(schema.toVoiceSampleJson(sample), 200);
    })
    .openapi(schema.deleteSampleRoute, async (c) => {
      const { voices } = await services.speech();
      await voices.remove(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.sampleAudioRoute, async (c) => {
      const { voices } = await services.speech();
      const { sample, file } = await voices.open(c.req.valid("param").id);
      return await sendFile(file, {
        sizeBytes: sample.sizeBytes,
        version: `${sample.createdAtMs.toString(36)}-${sample.sizeBytes.toString(36)}`,
        asked: c.req.valid("header"),
        headers: { "Content-Type": sample.contentType, ...PLAY_ONLY },
      });
    });
}

/** Validates a part of a form as the router validates bodies. */
function checked(
  field: typeof schema.SampleName | typeof schema.SampleDescription,
  name: string,
  value: string | undefined,
): string {
  const parsed = field.safeParse(value);
  if (parsed.success) return parsed.data;
  throw createSchemaError("form", parsed.error.issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
}

/**
 * Routes of transcription. @param services.config.discoverHosts Hosts that `discover` probes; never a client's choice.
 * `/api/stt`: the transcription server, its test, the search for running ones, and recordings to text.
 */
export function transcriptionRoutes(services: Services) {
  return createRouter()
    .openapi(transcriptions.configRoute, async (c) => {
      const { settings } = await services.transcription();
      const config = settings.get();
      c.header("ETag", formatEtag(config.version));
      return c.json(transcriptions.toTranscriptionConfigJson(config), 200);
    })
    .openapi(transcriptions.putConfigRoute, async (c) => {
      const { settings } = await services.transcription();
      const expected = parsePrecondition(c.req.valid("header"));
      const config = await settings.put(transcriptions.toTranscriptionConfigInput(c.req.valid("json")), expected);
      c.header("ETag", formatEtag(config.version));
      return c.json(transcriptions.toTranscriptionConfigJson(config), 200);
    })
    .openapi(transcriptions.testRoute, async (c) => {
      const transcription = await services.transcription();
      const input = transcriptions.toTranscriptionConfigInput(c.req.valid("json"));
      return c.json(transcriptions.toTranscriptionTestJson(await transcription.test(input, getClientSignal(c))), 200);
    })
    .openapi(transcriptions.discoverRoute, async (c) => {
      const found = await detectTranscriptionServers({
        hosts: services.config.discoverHosts,
        ownListeners: services.ownListeners,
      });
      return c.json(found.map(transcriptions.toDetectedServerJson), 200);
    })
    .openapi(transcriptions.transcribeRoute, async (c) => {
      const transcription = await services.transcription();
      const form = await readUpload(c, "file");
      const request = {
        audio: form.file,
        language: parseFormField(transcriptions.SpeechLanguage.optional(), "language", form.text("language")),
        prompt: parseFormField(transcriptions.TranscriptionPrompt.optional(), "prompt", form.text("prompt")),
      } satisfies TranscriptionRequest;
      if (!/\btext\/event-stream\b/i.test(c.req.header("accept") ?? "")) {
        return c.json(
          transcriptions.toTranscriptJson(await transcription.transcribe(request, getClientSignal(c))),
          200,
        );
      }
      const events = transcription.stream(request, getClientSignal(c));
      // An error before the first event gets an ordinary error response.
      const first = await events.next();
      return passRawResponse(c.body(createEventStream(createFrames(c, events, first)), 200, EVENT_STREAM_HEADERS));
    });
}

/** Creates the frames of a transcript. If the client disconnects, its signal aborts the request to the server. */
function createFrames(c: AppContext, events: AsyncGenerator<TranscriptEvent>, first: IteratorResult<TranscriptEvent>) {
  let next: IteratorResult<TranscriptEvent> | undefined = first;
  let isOver = false;
  return {
    async next() {
      if (isOver) return undefined;
      try {
        const { done, value } = next ?? await events.next();
        next = undefined;
        if (done) return undefined;
        if (value.kind === "delta") return transcriptions.toTranscriptFrame("delta", { text: value.text });
        return transcriptions.toTranscriptFrame("done", transcriptions.toTranscriptJson(value.transcript));
      } catch (error) {
        isOver = true;
        return transcriptions.toTranscriptFrame("error", createErrorBody(error, c.var.requestId));
      }
    },
    close: () => void events.return(undefined),
  };
}
