/** Waiting that can be given up. */

/** Waits, or until `wake` resolves. @throws The reason of `signal` when that fires first. */
export async function pause(ms: number, signal: AbortSignal, wake?: Promise<unknown>): Promise<void> {
  signal.throwIfAborted();
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  const leave = () => over.reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  wake?.then(() => over.resolve(), () => over.resolve());
  try {
    await over.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
  }
}
