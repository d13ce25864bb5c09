/** Answers as server-sent events: made when asked for, never gathered, kept alive while silent. */
import { KEEP_ALIVE } from "../schemas/chat/chat_frames.ts";

/** Longest silence on an open stream. */
const KEEP_ALIVE_MS = 15_000;

/** Headers of every event stream. */
export const EVENT_STREAM_HEADERS = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
} as const;

/** What makes the frames of one stream. */
export interface FrameSource {
  /** Returns the next bytes, or `undefined` at the end. Called again only when the client has read them. */
  next(): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  /** Called once the client has left, or the stream has ended. */
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
      const give = (bytes: Uint8Array | undefined) => {
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
        if (next instanceof Promise) return next.then(give).catch(fail);
        give(next);
      } catch (error) {
        fail(error);
      }
    },
    cancel: close,
  }, { highWaterMark: 0 }); // Backpressure is the client's: a slow reader keeps nothing of ours in memory.
}
