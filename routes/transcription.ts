/** `/api/stt`: the transcription server, its test, the search for running ones, and recordings to text. */
import { type AppContext, clientSignal } from "../middleware/env.ts";
import type { Services } from "../services/services.ts";
import type { TranscriptEvent } from "../services/transcription/transcript_events.ts";
import { detectTranscriptionServers } from "../services/transcription/transcription_server.ts";
import { errorBody } from "./errors.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { EVENT_STREAM_HEADERS, eventStream } from "./http/event_stream.ts";
import { parseFormField, readUpload } from "./http/form.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/transcription.ts";
import { rawAnswer } from "./server/raw_response.ts";

/** Routes of transcription. @param services.config.discoverHosts Hosts that `discover` probes; never a client's choice. */
export function transcriptionRoutes(services: Services) {
  return newRouter()
    .openapi(schema.configRoute, async (c) => {
      const { settings } = await services.transcription();
      const config = settings.get();
      c.header("ETag", etag(config.version));
      return c.json(schema.toTranscriptionConfigJson(config), 200);
    })
    .openapi(schema.putConfigRoute, async (c) => {
      const { settings } = await services.transcription();
      const expected = preconditionOf(c.req.valid("header"));
      const config = await settings.put(schema.toTranscriptionConfigInput(c.req.valid("json")), expected);
      c.header("ETag", etag(config.version));
      return c.json(schema.toTranscriptionConfigJson(config), 200);
    })
    .openapi(schema.testRoute, async (c) => {
      const transcription = await services.transcription();
      const input = schema.toTranscriptionConfigInput(c.req.valid("json"));
      return c.json(schema.toTranscriptionTestJson(await transcription.test(input, clientSignal(c))), 200);
    })
    .openapi(schema.discoverRoute, async (c) => {
      const found = await detectTranscriptionServers({ hosts: services.config.discoverHosts });
      return c.json(found.map(schema.toDetectedServerJson), 200);
    })
    .openapi(schema.transcribeRoute, async (c) => {
      const transcription = await services.transcription();
      const form = await readUpload(c, "file");
      const request = {
        audio: form.file,
        language: parseFormField(schema.SpeechLanguage.optional(), "language", form.text("language")),
        prompt: parseFormField(schema.TranscriptionPrompt.optional(), "prompt", form.text("prompt")),
      };
      if (!/\btext\/event-stream\b/i.test(c.req.header("accept") ?? "")) {
        return c.json(schema.toTranscriptJson(await transcription.transcribe(request, clientSignal(c))), 200);
      }
      const events = transcription.stream(request, clientSignal(c));
      // What fails before the first event is an ordinary error.
      const first = await events.next();
      return rawAnswer(c.body(eventStream(createFrames(c, events, first)), 200, EVENT_STREAM_HEADERS));
    });
}

/** Creates the frames of a transcript. When the client leaves, its signal ends the request to the server. */
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
        if (value.kind === "delta") return schema.toTranscriptFrame("delta", { text: value.text });
        return schema.toTranscriptFrame("done", schema.toTranscriptJson(value.transcript));
      } catch (error) {
        isOver = true;
        return schema.toTranscriptFrame("error", errorBody(error, c.var.requestId));
      }
    },
    close: () => void events.return(undefined),
  };
}
