/** Responses whose body is bytes or a stream. */
import type { AppContext } from "../../middleware/env.ts";

/**
 * Returns a response whose body is bytes or a stream. Hono's types allow only JSON values here, though the schema of
 * the route describes the format of the bytes.
 */
export function passRawResponse(response: Response): never {
  return response as never;
}

/** A client that doesn't read its response for this long is disconnected, because unread data occupies memory. */
const STALLED_MS = 60_000;

/**
 * Creates a response with a stream of pieces, after the first piece is available: earlier errors are ordinary error
 * responses, later ones can only cut off the response. Each piece is created after the client has read the previous
 * one. A client that stops reading is disconnected after a while.
 */
export async function openResponseStream(
  c: AppContext,
  pieces: AsyncGenerator<Uint8Array>,
): Promise<ReadableStream<Uint8Array>> {
  let first: IteratorResult<Uint8Array> | undefined = await pieces.next();
  const { stalledMs = STALLED_MS, abort } = c.env;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isSent = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      watch(controller);
    },
    async pull(controller) {
      clearTimeout(timer);
      isSent = true;
      const { done, value } = first ?? await pieces.next();
      first = undefined;
      if (done) return controller.close();
      watch(controller);
      controller.enqueue(value);
    },
    async cancel() {
      clearTimeout(timer);
      await pieces.return(undefined);
    },
  }, { highWaterMark: 0 });

  function watch(controller: ReadableStreamDefaultController<Uint8Array>): void {
    timer = setTimeout(() => {
      controller.error(new Error(`The client read nothing of its response for ${stalledMs} ms`));
      pieces.return(undefined).catch(() => {});
      // The body of a response to HEAD is never sent, and its connection is fine.
      if (isSent) abort?.();
    }, stalledMs);
  }
}
