/**
 * Hands on an answer whose body is ready bytes or a stream. Hono's types know only JSON values here, though the schema
 * of the route documents the very shape that the bytes have.
 */
export function rawAnswer(response: Response): never {
  return response as never;
}

/**
 * Makes a stream of pieces, of which the first one is there already: what fails before it is an ordinary error, and what
 * fails later can only cut the answer off.
 */
export async function startedStream(pieces: AsyncGenerator<Uint8Array>): Promise<ReadableStream<Uint8Array>> {
  let first: IteratorResult<Uint8Array> | undefined = await pieces.next();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = first ?? await pieces.next();
      first = undefined;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await pieces.return(undefined);
    },
  }, { highWaterMark: 0 });
}
