/** `GET /api/events`: each client has its own queue, so that a slow client doesn't delay the others. */
import type { Services } from "../services/services.ts";
import type { ChangeEvent, EventHub } from "../services/events/event_hub.ts";
import { createEventStream, EVENT_STREAM_HEADERS, type FrameSource } from "./http/event_stream.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import { createRestartingFrame } from "./schemas/chat/chat_frames.ts";
import { changeFrames, eventsRoute } from "./schemas/events.ts";

/** Tells an open page that the server has another build of it. */
const BUILD_HEADER = "X-Parlor-Build";
/** Maximum number of queued changes per client. Beyond it the stream ends, and the client reconnects and reloads. */
const MAX_WAITING = 1_000;

/**
 * Route of the event stream, which ends when the client disconnects or the listener closes.
 *
 * @param options.build Name of the build of the page that this server has.
 * @param options.keepAliveMs Maximum silence in milliseconds
 */
export function eventRoutes(
  { events }: Pick<Services, "events">,
  { build, keepAliveMs }: { build?: string; keepAliveMs?: number } = {},
) {
  const headers = { ...EVENT_STREAM_HEADERS, ...(build !== undefined && { [BUILD_HEADER]: build }) };
  return createRouter().openapi(eventsRoute, (c) => {
    const body = createEventStream(followChanges(events, c.env.closing), keepAliveMs);
    return passRawResponse(c.body(body, 200, headers));
  });
}

/** Subscribes immediately, so that no change is missed between the response headers and the first frame. */
function followChanges(events: EventHub, closing: AbortSignal): FrameSource {
  // Two changes of the same item while a client was away become one frame: the later one.
  const waiting = new Map<string, ChangeEvent>();
  let wake = () => {};
  let hasEnded = false;
  let hasBegun = false;
  let isRestarting = false;

  const stop = () => {
    isRestarting = !hasEnded;
    end();
  };
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    unsubscribe();
    closing.removeEventListener("abort", stop);
    wake();
  };
  const unsubscribe = events.subscribe((event) => {
    const key = `${event.kind} ${event.id}`;
    waiting.delete(key);
    waiting.set(key, event);
    if (waiting.size > MAX_WAITING) end();
    else wake();
  });
  closing.addEventListener("abort", stop, { once: true });
  if (closing.aborted) stop();

  return {
    close: end,
    async next() {
      if (!hasBegun) {
        hasBegun = true;
        return new TextEncoder().encode(": open\n\n"); // so that the client knows that the stream is open
      }
      while (!hasEnded && waiting.size === 0) await new Promise<void>((resolve) => wake = resolve);
      if (isRestarting) {
        isRestarting = false;
        return createRestartingFrame();
      }
      if (hasEnded) return undefined;
      const frames = changeFrames(waiting.values());
      waiting.clear();
      return frames;
    },
  };
}
