/** Calls that generate a character. Loaded with the screens that use them. */
import type { CardFieldUpdate, CharacterGenerationRequest, Job } from "./types.ts";
import { texts } from "../texts/texts.ts";
import { type ApiClient, ApiError, readEvents } from "./client.ts";
import { parseErrorBody } from "./failures.ts";

/** All calls throw `ApiError`. */
export interface GenerationApi {
  /**
   * Streams the fields that the model writes. Aborting `signal` stops the model.
   *
   * @returns True if the model reached its token limit.
   */
  write(
    request: CharacterGenerationRequest,
    onSteps: (steps: CardFieldUpdate[]) => void,
    signal: AbortSignal,
  ): Promise<{ isCut: boolean }>;
  /** Starts a job that generates and stores the character. */
  start(request: CharacterGenerationRequest, isPortrait: boolean): Promise<Job>;
}

const PATH = "/api/characters/create";

/** Returns the calls, bound to a client. */
export function generationApi(client: ApiClient): GenerationApi {
  return {
    async write(body, onSteps, signal) {
      const headers = { accept: "text/event-stream" };
      const response = await client.send("POST", PATH, { body, headers, signal });
      for await (const events of readEvents(response)) {
        const steps = events.filter(({ event }) => event === "field").map(({ data }): CardFieldUpdate =>
          JSON.parse(data)
        );
        if (steps.length > 0) onSteps(steps);
        for (const { event, data } of events) {
          if (event === "done") return { isCut: JSON.parse(data).is_cut };
          if (event === "error") {
            throw new ApiError(0, parseErrorBody(JSON.parse(data)) ?? { code: "internal", message: data });
          }
        }
      }
      throw new ApiError(0, { code: "no_answer", message: texts.errors.noAnswer });
    },
    async start(request, portrait) {
      const body = { ...request, background: true, portrait };
      return await (await client.send("POST", PATH, { body })).json() as Job;
    },
  };
}
