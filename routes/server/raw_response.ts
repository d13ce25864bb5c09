/** Answers whose body is ready bytes or a stream of pieces. */
import type { AppContext } from "../../middleware/env.ts";

/**
 * Hands on an answer whose body is ready bytes or a stream. Hono's types know only JSON values here, though the schema
 * of the route documents the very shape that the bytes have.
 */
export function passRawResponse(response: Response): never {
  return response as never;
}

/** A client that takes nothing of its answer for this long is disconnected: what waits for it holds memory. */
const STALLED_MS = 60_000;

/**
 * Makes a stream of pieces, of which the first one is there already: what fails before it is an ordinary error, and what
 * fails later can only cut the answer off. A piece is made when the client has taken the one before it. A client that
 * stops reading is disconnected after a while.
 */
export async function openStream(
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
      // The body of an answer to HEAD is never sent, and its connection is healthy.
      if (isSent) abort?.();
    }, stalledMs);
  }
}
