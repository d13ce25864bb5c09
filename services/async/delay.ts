/** Waits that end early. */

/**
 * Resolves after a time.
 *
 * @param wake Ends the wait early once it settles, whether it succeeded or failed.
 * @throws The reason of `signal`, if that fires first.
 */
export async function delay(ms: number, signal?: AbortSignal, wake?: Promise<unknown>): Promise<void> {
  signal?.throwIfAborted();
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  const abort = () => over.reject(signal!.reason);
  signal?.addEventListener("abort", abort, { once: true });
  wake?.then(() => over.resolve(), () => over.resolve());
  try {
    await over.promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
