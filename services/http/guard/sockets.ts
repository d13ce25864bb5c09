/**
 * Sockets of guarded requests (connecting to one of several addresses, writing, copying and closing), the HTTP/1.1
 * heads sent over them, and the requests to the guard's proxy.
 */
import { Buffer } from "node:buffer";
import { type Target, toTarget } from "./target_policy.ts";

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

/** Closes a socket that may already be closed. */
export function closeQuietly(socket: Deno.Conn | Deno.Listener): void {
  try {
    socket.close();
  } catch {
    // Already closed
  }
}

// Enough for a name with both address families. A name with hundreds of addresses must not turn the server into a port
// scanner.
const MAX_ATTEMPTS = 4;

/** After this time without a connection, the next address is tried as well (RFC 8305, section 5). */
const NEXT_ATTEMPT_MS = 250;

/**
 * Connects to the first address that accepts.
 *
 * @param resolve Returns the allowed addresses. Called once.
 * @param limitMs For the lookup and all attempts.
 * @param signal Ends the wait. A connection that opens later is closed.
 * @param onFailure Called with the reason if addresses refuse the connection.
 * @returns `undefined` if there is no address, none accepts in time, or the lookup fails
 */
export async function connectToFirst(
  resolve: () => Promise<string[]>,
  port: number,
  limitMs: number,
  signal: AbortSignal,
  onFailure: (reason: unknown) => void = () => {},
): Promise<Deno.TcpConn | undefined> {
  const endsAt = performance.now() + limitMs;
  const addresses = (await within(limitMs, signal, resolve()) ?? []).slice(0, MAX_ATTEMPTS);
  const attempts: Promise<Deno.TcpConn>[] = [];
  let opened: Deno.TcpConn | undefined;
  for (const hostname of addresses) {
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0 || signal.aborted) break;
    const attempt = Deno.connect({ hostname, port });
    attempts.push(attempt);
    const isLast = attempts.length === addresses.length;
    const anyOpens = Promise.any(attempts);
    opened = await within(
      isLast ? leftMs : Math.min(leftMs, NEXT_ATTEMPT_MS),
      signal,
      isLast ? anyOpens : Promise.race([anyOpens, attempt]),
    );
    if (opened !== undefined) break;
  }
  for (const attempt of attempts) attempt.then((conn) => conn !== opened && conn.close(), onFailure);
  return opened;
}

/** Returns the value, or `undefined` after the timeout, a failure or an abort. */
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
export function getHeaderValues(head: HttpHead, name: string): string[] {
  return head.headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** Removes hop-by-hop headers, including those named by `Connection`. */
function keepEndToEndHeaders(head: HttpHead): [string, string][] {
  const named = new Set(getHeaderValues(head, "connection").flatMap((value) => value.toLowerCase().split(/[\s,]+/)));
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

/** A tunnel to the target. */
export interface TunnelRequest {
  kind: "tunnel";
  target: Target;
}

/** One plain HTTP request. */
interface ForwardRequest {
  kind: "forward";
  target: Target;
  method: string;
  /** The head to send upstream. */
  head: HttpHead;
  /** Size of the body after the head. */
  bodyBytes: number;
  /** True if the client speaks HTTP/1.1 and accepts chunks. */
  takesChunks: boolean;
}

export type ProxyRequest = TunnelRequest | ForwardRequest;

// Strict on purpose: without credentials, escapes, backslashes or white space, which parsers could interpret
// differently.
const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/**
 * Parses the head of a proxy request: CONNECT with host and port, or any other method with an absolute `http:` target.
 *
 * The checked host is also the one to connect to and the one sent as `Host`.
 *
 * @throws {Error} for anything else, a second `Content-Length`, or a body of unknown length
 */
export function parseProxyRequest(head: HttpHead): ProxyRequest {
  const [, method, requestTarget, minor] = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(head.startLine) ?? [];
  if (method === undefined || requestTarget === undefined) throw new Error("Can't read the proxy request line");
  if (method === "CONNECT") {
    if (!/:\d+$/.test(requestTarget)) throw new Error("Can't open a tunnel: the target has no port");
    return { kind: "tunnel", target: toTarget(parseAuthority(requestTarget)) };
  }
  const [, authority = "", path = ""] = /^http:\/\/([^/?#]*)([^#]*)$/i.exec(requestTarget) ?? [];
  const url = parseAuthority(authority);
  return {
    kind: "forward",
    target: toTarget(url),
    method,
    head: {
      startLine: `${method} ${path.startsWith("/") ? path : `/${path}`} HTTP/1.1`,
      headers: [
        ["Host", url.host],
        ...keepEndToEndHeaders(head).filter(([name]) => name.toLowerCase() !== "host"),
        ["Connection", "close"], // The next request needs its own check.
      ],
    },
    bodyBytes: parseBodyBytes(head),
    takesChunks: minor === "1",
  };
}

function parseAuthority(authority: string): URL {
  const url = AUTHORITY.test(authority) && URL.canParse(`http://${authority}`)
    ? new URL(`http://${authority}`)
    : undefined;
  // The URL parser turns 0x7f.1 or 2130706433 into an address. Such a notation is suspicious.
  if (url === undefined || (/^[\d.]+$/.test(url.hostname) && url.hostname !== authority.replace(/:\d+$/, ""))) {
    throw new Error("Can't read the host and port of the proxy request");
  }
  return url;
}

function parseBodyBytes(head: HttpHead): number {
  const [length = "0", ...more] = getHeaderValues(head, "content-length");
  if (!/^\d{1,15}$/.test(length) || more.length > 0 || getHeaderValues(head, "transfer-encoding").length > 0) {
    throw new Error("Can't forward a body of unknown length");
  }
  return Number(length);
}

/**
 * Forwards interim heads, the final head with `Connection: close`, and the body.
 *
 * A body without a length is sent in chunks. Otherwise a broken connection would look like the end of a shorter response.
 *
 * @param touch Called whenever the server has sent part of the body.
 * @throws {Error} if the response isn't HTTP, its head is too long, or a socket fails
 */
export async function forwardResponse(
  upstream: Deno.Conn,
  client: Deno.Conn,
  request: ForwardRequest,
  headBytes: number,
  touch: () => void,
): Promise<void> {
  let { head, rest } = await readHead(upstream, headBytes);
  let status = parseStatus(head);
  for (; status < 200; status = parseStatus(head)) {
    await writeAll(client, formatHead({ startLine: toOwnVersion(head), headers: keepEndToEndHeaders(head) }));
    ({ head, rest } = await readHead(upstream, headBytes, rest));
  }
  touch();
  const hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
  const hasLength = getHeaderValues(head, "content-length").length > 0 ||
    getHeaderValues(head, "transfer-encoding").length > 0;
  const isChunked = hasBody && !hasLength && request.takesChunks;
  const headers = keepEndToEndHeaders(head);
  headers.push(["Connection", "close"]);
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  await writeAll(client, formatHead({ startLine: toOwnVersion(head), headers }));
  const forwardBytes = async (bytes: Uint8Array) => {
    touch();
    if (bytes.length > 0) await writeAll(client, isChunked ? toChunk(bytes) : bytes);
  };
  await forwardBytes(rest);
  await pump(upstream, forwardBytes);
  if (isChunked) await writeAll(client, Buffer.from("0\r\n\r\n"));
}

function parseStatus(head: HttpHead): number {
  const [, status] = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(head.startLine) ?? [];
  if (status === undefined) throw new Error("Can't read the response: it isn't HTTP");
  return Number(status);
}

/** A proxy responds with its own HTTP version (RFC 9110, section 2.5); chunks need 1.1. */
function toOwnVersion({ startLine }: HttpHead): string {
  return startLine.replace(/^HTTP\/1\.0/, "HTTP/1.1");
}

function toChunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}
