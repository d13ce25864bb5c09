/** Responds with server-sent events: created on demand, never buffered, kept alive during silence. */
import { KEEP_ALIVE } from "../schemas/chat/chat_frames.ts";

/** Maximum silence on an open stream, in milliseconds. */
const KEEP_ALIVE_MS = 15_000;

/** Headers of every event stream. */
export const EVENT_STREAM_HEADERS = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
} as const;

/** Creates the frames of one stream. */
export interface FrameSource {
  /** Returns the next bytes, or `undefined` at the end. Called again only after the client has read them. */
  next(): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  /** Called when the client has disconnected or the stream has ended. */
  close?(): void;
}

/**
 * Creates the body of an event stream. If the source throws, the body ends without an end frame.
 */
export function createEventStream(source: FrameSource, keepAliveMs = KEEP_ALIVE_MS): ReadableStream<Uint8Array> {
  // Checked by a timer, because reading the clock for every chunk costs more.
  let hasSent = false;
  let timer: ReturnType<typeof setInterval> | undefined;
  const close = () => {
    if (timer === undefined) return;
    clearInterval(timer);
    timer = undefined;
    source.close?.();
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => {
        if (!hasSent) controller.enqueue(KEEP_ALIVE);
        hasSent = false;
      }, keepAliveMs);
    },
    pull(controller) {
      const deliver = (bytes: Uint8Array | undefined) => {
        if (timer === undefined) return;
        if (bytes === undefined) {
          close();
          controller.close();
          return;
        }
        hasSent = true;
        controller.enqueue(bytes);
      };
      const fail = (error: unknown) => {
        close();
        controller.error(error);
      };
      try {
        const next = source.next();
        if (next instanceof Promise) return next.then(deliver).catch(fail);
        deliver(next);
      } catch (error) {
        fail(error);
      }
    },
    cancel: close,
  }, { highWaterMark: 0 }); // Backpressure comes from the client: for a slow reader, nothing is buffered here.
}
