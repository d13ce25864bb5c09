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

/** Waits for work, but no longer than until the signal aborts. The work continues. @throws The reason of `signal` */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {}); // What fails after the signal has no effect anymore.
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
