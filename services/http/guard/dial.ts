/** Connecting to one of several addresses within a time limit. */

// Enough for a name with both families and a spare; a name with hundreds of addresses must not make a port scan of us.
const MAX_ATTEMPTS = 4;

/**
 * Connects to the first address that answers.
 *
 * @param resolve Gives the judged addresses; called once.
 * @param limitMs Lookup and all attempts together; each attempt gets an equal part of what is left.
 * @param signal Ends the waiting at once; a connection that comes later is closed.
 * @returns undefined when there is no address, none answers in time, or the lookup fails.
 */
export async function dialFirst(
  resolve: () => Promise<string[]>,
  port: number,
  limitMs: number,
  signal: AbortSignal,
): Promise<Deno.TcpConn | undefined> {
  const endsAt = performance.now() + limitMs;
  const addresses = (await within(limitMs, signal, resolve()) ?? []).slice(0, MAX_ATTEMPTS);
  for (const [index, hostname] of addresses.entries()) {
    const attemptMs = (endsAt - performance.now()) / (addresses.length - index);
    if (attemptMs <= 0 || signal.aborted) return undefined;
    const dialing = Deno.connect({ hostname, port });
    const conn = await within(attemptMs, signal, dialing);
    if (conn !== undefined) return conn;
    dialing.then((late) => late.close(), () => {});
  }
  return undefined;
}

/** Gives the value when it comes in time; undefined when it does not, fails, or the signal fires. */
async function within<T>(ms: number, signal: AbortSignal, promise: Promise<T>): Promise<T | undefined> {
  const { promise: given, resolve: giveUp } = Promise.withResolvers<undefined>();
  const stop = () => giveUp(undefined);
  const timer = setTimeout(stop, ms);
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await Promise.race([promise, given]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
