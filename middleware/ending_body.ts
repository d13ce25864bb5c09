/** Ends a response body when its client loses access. */

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
  const onAbort = () => {
    // A read that waits is answered by the end at once, whatever the source takes to be cancelled (Streams, 4.3.3).
    reader.cancel(new Error("Access to this response was revoked")).catch(() => {});
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
        const { done, value } = await reader.read();
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
