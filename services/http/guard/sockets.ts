/** Sockets: connecting to one of several addresses, writing, copying and closing. */

/** Writes all bytes. */
export async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}

/** Passes everything a connection sends to `take`, one read at a time. The bytes are valid until `take` resolves. */
export async function pump(from: Deno.Conn, take: (bytes: Uint8Array) => Promise<void>): Promise<void> {
  const buffer = new Uint8Array(64 * 1024);
  for (let count = await from.read(buffer); count !== null; count = await from.read(buffer)) {
    await take(buffer.subarray(0, count));
  }
}

/** Closes a socket that may be closed already. */
export function closeQuietly(socket: Deno.Conn | Deno.Listener): void {
  try {
    socket.close();
  } catch {
    // closed already
  }
}

/** Connecting to one of several addresses within a time limit. */

// Enough for a name with both address families. A name with hundreds of addresses must not turn us into a port scanner.
const MAX_ATTEMPTS = 4;

/**
 * Connects to the first address that accepts.
 *
 * @param resolve Returns the allowed addresses. Called once.
 * @param limitMs For the lookup and all attempts; each attempt gets an equal share of the rest.
 * @param signal Ends the wait. A connection that opens later is closed.
 * @returns undefined if there is no address, none accepts in time, or the lookup fails
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

/** Returns the value, or undefined after the timeout, a failure or an abort. */
async function within<T>(ms: number, signal: AbortSignal, promise: Promise<T>): Promise<T | undefined> {
  const { promise: stopped, resolve: resolveStopped } = Promise.withResolvers<undefined>();
  const stop = () => resolveStopped(undefined);
  const timer = setTimeout(stop, ms);
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await Promise.race([promise, stopped]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
