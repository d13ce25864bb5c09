/** `/api/characters/create`: characters that a model writes. */
import { clientSignal } from "../middleware/env.ts";
import type { Creator } from "../services/characters/generation/character_generator.ts";
import type { Writing } from "../services/characters/generation/character_writing.ts";
import { errorBody } from "./errors.ts";
import { EVENT_STREAM_HEADERS, eventStream, type FrameSource } from "./http/event_stream.ts";
import { rawAnswer } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import { createCharacterRoute, encodeFrames, toCreationFrame } from "./schemas/characters.ts";
import { toJobJson } from "./schemas/jobs.ts";

/** Routes of written characters. */
export function creatorRoutes(openCreator: () => Promise<Creator>) {
  return newRouter().openapi(createCharacterRoute, async (c) => {
    const { background, portrait, ...request } = c.req.valid("json");
    const creator = await openCreator();
    if (background) {
      const job = await creator.start(request, portrait);
      c.header("X-Parlor-Job-Id", job.id);
      return c.json(toJobJson(job), 202);
    }
    const writing = await creator.write(request, clientSignal(c));
    const source = framesOfWriting(writing, c.var.requestId);
    return rawAnswer(c.body(eventStream(source), 200, EVENT_STREAM_HEADERS));
  });
}

/** What came before a failure is sent before it. */
function framesOfWriting(writing: Writing, requestId: string): FrameSource {
  const steps = writing.steps();
  let state: "begin" | "body" | "over" = "begin";
  return {
    async next() {
      if (state === "over") return undefined;
      if (state === "begin") {
        state = "body";
        return encodeFrames([toCreationFrame("start", { model: writing.model })]);
      }
      try {
        for (;;) {
          const { done, value } = await steps.next();
          if (done) {
            state = "over";
            return encodeFrames([toCreationFrame("done", { is_cut: value.isCut })]);
          }
          if (value.length > 0) return encodeFrames(value.map((step) => toCreationFrame("field", step)));
        }
      } catch (error) {
        state = "over";
        return encodeFrames([toCreationFrame("error", errorBody(error, requestId))]);
      }
    },
    close: () => writing.cancel(),
  };
}
