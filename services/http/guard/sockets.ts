/** Sockets: connecting to one of several addresses, writing, copying and closing, and the HTTP/1.1 heads sent over them. */
import { Buffer } from "node:buffer";

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

// Parses and formats HTTP/1.1 heads: strict, limited, byte for byte.

/** A start line and its header fields, as Latin-1 text so that every byte is preserved. */
export interface HttpHead {
  startLine: string;
  headers: [name: string, value: string][];
}

/** Hop-by-hop headers (RFC 9110, section 7.6.1, and older names still in use). */
const HOP_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

// deno-lint-ignore no-control-regex
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$/;

/**
 * Reads one head. Also returns the bytes received after it.
 *
 * @param rest Bytes already received.
 * @throws {Error} if the peer ends first, the head is longer than `maxBytes`, or a line is malformed
 */
export async function readHead(
  conn: Deno.Conn,
  maxBytes: number,
  rest: Uint8Array = new Uint8Array(0),
): Promise<{ head: HttpHead; rest: Uint8Array }> {
  const buffer = Buffer.alloc(Math.max(maxBytes, rest.length));
  buffer.set(rest);
  let length = rest.length;
  let end = buffer.subarray(0, length).indexOf("\r\n\r\n");
  while (end < 0) {
    if (length >= maxBytes) throw new Error(`Can't read the HTTP head: it is longer than ${maxBytes} bytes`);
    const count = await conn.read(buffer.subarray(length));
    if (count === null) throw new Error(`Can't read the HTTP head: the peer ended after ${length} bytes`);
    const from = Math.max(0, length - 3);
    length += count;
    const found = buffer.subarray(from, length).indexOf("\r\n\r\n");
    if (found >= 0) end = from + found;
  }
  return { head: parseHead(buffer.toString("latin1", 0, end)), rest: buffer.subarray(end + 4, length) };
}

/** Formats a head with its empty line. */
export function formatHead({ startLine, headers }: HttpHead): Uint8Array {
  const lines = [startLine, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** Lists the values of a header. @param name Lower case. */
export function listValues(head: HttpHead, name: string): string[] {
  return head.headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** Removes hop-by-hop headers, including those named by `Connection`. */
export function keepEndToEndHeaders(head: HttpHead): [string, string][] {
  const named = new Set(listValues(head, "connection").flatMap((value) => value.toLowerCase().split(/[\s,]+/)));
  return head.headers.filter(([name]) => !HOP_HEADERS.has(name.toLowerCase()) && !named.has(name.toLowerCase()));
}

function parseHead(text: string): HttpHead {
  const [startLine = "", ...lines] = text.split("\r\n");
  // deno-lint-ignore no-control-regex
  if (!/^[^\x00-\x1f\x7f]+$/.test(startLine)) throw new Error("Can't read the HTTP head: its first line is malformed");
  const headers = lines.map((line): [string, string] => {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error("Can't read the HTTP head: a field is malformed");
    return [name, value.trimEnd()];
  });
  return { startLine, headers };
}
