/** `/api/tts`: speech, its endpoint, its voices and models. */
import { clientSignal } from "../middleware/env.ts";
import type { Speech } from "../services/speech/speech.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/speech.ts";

/** Routes of speech. */
export function ttsRoutes(speech: Speech) {
  return newRouter()
    .openapi(schema.speakRoute, async (c) => {
      const audio = await speech.speak(schema.toSpeakRequest(c.req.valid("json")), clientSignal(c));
      c.header("Content-Type", audio.contentType);
      return c.body(audio.body, 200);
    })
    .openapi(schema.configRoute, (c) => {
      const config = speech.settings.get();
      c.header("ETag", etag(config.version));
      return c.json(schema.toSpeechConfigJson(config), 200);
    })
    .openapi(schema.putConfigRoute, async (c) => {
      const expected = preconditionOf(c.req.valid("header"));
      const config = await speech.settings.put(schema.toSpeechConfigInput(c.req.valid("json")), expected);
      c.header("ETag", etag(config.version));
      return c.json(schema.toSpeechConfigJson(config), 200);
    })
    .openapi(
      schema.voicesRoute,
      async (c) => c.json(await speech.voices(c.req.valid("query").model, clientSignal(c)), 200),
    )
    .openapi(
      schema.modelsRoute,
      async (c) => c.json({ object: "list" as const, data: await speech.models(clientSignal(c)) }, 200),
    );
}
