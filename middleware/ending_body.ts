/** A body that ends when the right to it does. */

/**
 * Passes a body on until the signal fires; then the body ends and its source is cancelled.
 *
 * @param watched.release Called once, however the body ends.
 */
export function endingBody(
  body: ReadableStream<Uint8Array>,
  watched: { signal: AbortSignal; release(): void },
): ReadableStream<Uint8Array> {
  const { signal, release } = watched;
  const reader = body.getReader();
  let end = () => {};
  const hasEnded = new Promise<{ done: true; value: undefined }>((resolve) => {
    end = () => resolve({ done: true, value: undefined });
  });
  const onAbort = () => {
    end();
    reader.cancel(new Error("The right to this answer was revoked")).catch(() => {});
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const close = () => {
    signal.removeEventListener("abort", onAbort);
    release();
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await Promise.race([reader.read(), hasEnded]);
        if (!done) return controller.enqueue(value);
        close();
        controller.close();
      } catch (error) {
        close();
        controller.error(error);
      }
    },
    async cancel(reason) {
      close();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 }); // The source is asked only when the client is ready, as without us.
}
