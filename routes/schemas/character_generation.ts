/** Characters that a model writes, on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ATTACHMENT_NAME } from "../../services/attachments/attachment_names.ts";
import { ERRORS, json, jsonBody } from "./common.ts";
import { Job } from "./jobs.ts";

const Creation = z.object({
  idea: z.string().max(20_000).default("").openapi({ example: "A lighthouse keeper who collects storms" }),
  picture: z.string().regex(ATTACHMENT_NAME, "this is no name of an attachment").optional().openapi({
    description: "Name of an attachment that shows the character; the model has to understand pictures",
  }),
  language: z.string().max(60).optional().openapi({
    description: "Language to write in; the idea's own where left out",
    example: "Deutsch",
  }),
  background: z.boolean().default(false).openapi({ description: "A job writes and stores the character" }),
  portrait: z.boolean().default(true).openapi({
    description: "Whether the job takes the picture as the character's portrait",
  }),
}).refine(({ idea, picture }) => idea.trim() !== "" || picture !== undefined, {
  path: ["idea"],
  message: "an idea or a picture is needed",
}).openapi("Creation");

/** `POST /api/characters/create` */
export const createCharacterRoute = createRoute({
  method: "post",
  path: "/api/characters/create",
  tags: ["Characters"],
  summary: "Let the active model write a character of an idea or a picture",
  request: { body: jsonBody(Creation) },
  responses: {
    200: {
      description:
        "Events as it is written, nothing is stored: start {model}; field {field, append} or {field, value} for texts " +
        "of a card and its tags; then done {is_cut} or error. The client's leaving ends the model",
      content: { "text/event-stream": { schema: z.string() } },
    },
    202: json(Job, "With background: the job; its detail is {character_id?, name?, is_cut?}"),
    ...ERRORS,
  },
});

const encoder = new TextEncoder();

/** Makes one event of a character's stream. */
export function creationFrame(
  event: "start" | "field" | "done" | "error",
  data: unknown,
): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Makes the bytes of events that go out together. */
export function framesOf(frames: readonly string[]): Uint8Array<ArrayBuffer> {
  return encoder.encode(frames.join(""));
}

/** The body that starts the generation of a character. */
export type CharacterGenerationJson = z.input<typeof Creation>;
