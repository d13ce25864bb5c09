/** Change events in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import type { ChangeEvent } from "../../services/events/event_hub.ts";
import { ERRORS, eventStream } from "./common.ts";

const Change = z.object({
  kind: z.string().openapi({ example: "conversation" }),
  id: z.string(),
  revision: z.number().int().optional(),
}).openapi("ChangeEvent");

/** `GET /api/events` */
export const eventsRoute = createRoute({
  method: "get",
  path: "/api/events",
  tags: ["events"],
  summary: "Stream changes as they happen: names only, no content",
  responses: {
    200: {
      description: "Server-sent events. Earlier changes aren't repeated. X-Parlor-Build names the build of the page",
      content: eventStream("{kind, id, revision?}"),
    },
    ...ERRORS,
  },
});

const encoder = new TextEncoder();

/** Formats changes as frames. */
export function changeFrames(events: Iterable<ChangeEvent>): Uint8Array<ArrayBuffer> {
  let text = "";
  for (const { kind, id, revision } of events) text += `data: ${JSON.stringify({ kind, id, revision })}\n\n`;
  return encoder.encode(text);
}

/** A change on the server. */
export type ChangeEventJson = z.output<typeof Change>;
