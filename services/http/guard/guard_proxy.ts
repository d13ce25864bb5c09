/**
 * The proxy for all guarded requests: those of guarded_fetch.ts, and those of other programs, which get its URL and
 * password. target_policy.ts decides which targets are allowed.
 */
import { Buffer } from "node:buffer";
import { randomBytes, timingSafeEqual } from "node:crypto";
import { delay } from "../../async/delay.ts";
import {
  closeQuietly,
  connectToFirst,
  formatHead,
  forwardResponse,
  getHeaderValues,
  type HttpHead,
  parseProxyRequest,
  type ProxyRequest,
  pump,
  readHead,
  writeAll,
} from "./sockets.ts";
import type { OwnListeners } from "../own_listeners.ts";
import {
  isPublicAddress,
  OWN_VIA,
  type ProxyLimits,
  REFUSAL_TEXT,
  type Target,
  type TargetPolicy,
} from "./target_policy.ts";

export interface GuardProxy {
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Value of the {@link REFUSAL_HEADER} on the proxy's own responses. No server can know it. */
  readonly refusalMark: string;
  close(): Promise<void>;
}

export const REFUSAL_HEADER = "x-guard-refusal";

const ACCEPT_RETRY_MS = 50;
const LINGER_MS = 1000; // Lets a client read the last bytes before its socket closes.

/** Options of the proxy. */
export interface GuardProxyOptions {
  policy: Pick<TargetPolicy, "resolveAllowed">;
  limits: ProxyLimits;
  /** The proxy adds itself. */
  ownListeners?: Pick<OwnListeners, "add">;
  /** Called with the reason why an allowed target can't be reached. */
  onFailure?(target: Target, reason: unknown): void;
}

interface Context extends Pick<GuardProxyOptions, "policy" | "onFailure"> {
  limits: ProxyLimits;
  authorization: string;
  refusalMark: string;
  /** Connections that have not authenticated, oldest first. */
  unauthenticated: Set<Deno.Conn>;
  /** Aborts when the proxy closes. */
  closing: AbortController;
}

/** Opens the proxy on a free port of 127.0.0.1 with a fresh password. */
export function openGuardProxy({ policy, limits, ownListeners, onFailure }: GuardProxyOptions): GuardProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, transport: "tcp" });
  const removeOwn = ownListeners?.add({ hostname: "127.0.0.1", port: listener.addr.port });
  const username = "guard";
  const password = randomBytes(24).toString("base64url");
  const context: Context = {
    policy,
    limits,
    onFailure,
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
    refusalMark: randomBytes(16).toString("base64url"),
    unauthenticated: new Set(),
    closing: new AbortController(),
  };
  const open = new Map<Deno.Conn, Promise<void>>();
  const admit = (conn: Deno.Conn) => {
    if (open.size >= limits.connections) {
      const [oldest = conn] = context.unauthenticated;
      context.unauthenticated.delete(oldest);
      closeQuietly(oldest);
      if (oldest === conn) return;
    }
    context.unauthenticated.add(conn);
    open.set(conn, serve(conn, context).finally(() => open.delete(conn)));
  };
  const accepting = acceptAll(listener, admit, context.closing.signal);
  return {
    port: listener.addr.port,
    username,
    password,
    refusalMark: context.refusalMark,
    async close() {
      removeOwn?.();
      context.closing.abort();
      [listener, ...open.keys()].forEach(closeQuietly);
      await Promise.all([accepting, ...open.values()]);
    },
  };
}

/** Accepts connections until the proxy closes. After a failed accept (out of descriptors, client gone) it pauses. */
async function acceptAll(
  listener: Deno.Listener,
  admit: (conn: Deno.Conn) => void,
  closing: AbortSignal,
): Promise<void> {
  while (!closing.aborted) {
    try {
      admit(await listener.accept());
    } catch {
      if (!closing.aborted) await delay(ACCEPT_RETRY_MS);
    }
  }
}

/** Serves one client. Never throws. */
async function serve(client: Deno.Conn, context: Context): Promise<void> {
  const sockets: Deno.Conn[] = [client];
  const deadline = new Deadline(() => sockets.forEach(closeQuietly));
  try {
    deadline.set(context.limits.headMs);
    await serveRequest(client, context, deadline, sockets);
  } catch {
    // The client or server disconnected or sent invalid data. Close the connection.
  } finally {
    deadline.clear();
    context.unauthenticated.delete(client);
    sockets.forEach(closeQuietly);
  }
}

async function serveRequest(
  client: Deno.Conn,
  context: Context,
  deadline: Deadline,
  sockets: Deno.Conn[],
): Promise<void> {
  const { limits, policy } = context;
  const { head, rest } = await readHead(client, limits.headBytes).catch(async (cause) => {
    await respond(client, deadline, "400 Bad Request", []);
    throw cause;
  });
  if (!isAuthorized(head, context.authorization)) {
    return await respond(client, deadline, "407 Proxy Authentication Required", [[
      "Proxy-Authenticate",
      'Basic realm="guard"',
    ]]);
  }
  context.unauthenticated.delete(client);
  const refuse = () =>
    respond(client, deadline, "502 Bad Gateway", [[REFUSAL_HEADER, context.refusalMark]], `${REFUSAL_TEXT}\n`);
  let request: ProxyRequest;
  try {
    request = parseProxyRequest(head);
  } catch {
    return await refuse();
  }
  deadline.set(limits.connectMs + LINGER_MS);
  const resolve = () => policy.resolveAllowed(request.target);
  const upstream = await connectToFirst(
    resolve,
    request.target.port,
    limits.connectMs,
    context.closing.signal,
    (reason) => context.onFailure?.(request.target, reason),
  );
  if (upstream === undefined) return await refuse();
  sockets.push(upstream);
  deadline.set(limits.idleMs);
  const touch = () => deadline.set(limits.idleMs);
  if (request.kind === "tunnel") {
    await writeAll(client, new TextEncoder().encode("HTTP/1.1 200 Connection established\r\n\r\n"));
    await writeAll(upstream, rest);
    const toUpstream = (bytes: Uint8Array) => (touch(), writeAll(upstream, bytes));
    const toClient = (bytes: Uint8Array) => (touch(), writeAll(client, bytes));
    await relay(client, pump(client, toUpstream), pump(upstream, toClient), deadline);
  } else {
    const isPublic = isPublicAddress((upstream.remoteAddr as Deno.NetAddr).hostname);
    const { startLine, headers } = request.head;
    await writeAll(
      upstream,
      formatHead({ startLine, headers: isPublic ? headers : [...headers, ["Via", OWN_VIA.via]] }),
    );
    const sending = sendBody(client, upstream, rest, request.bodyBytes, touch);
    await relay(client, sending, forwardResponse(upstream, client, request, limits.headBytes, touch), deadline);
  }
}

/** Runs both directions until one ends. If the server ends, the client can still read the last bytes. */
async function relay(
  client: Deno.Conn,
  sending: Promise<void>,
  receiving: Promise<void>,
  deadline: Deadline,
): Promise<void> {
  sending.catch(() => {});
  receiving.catch(() => {});
  const serverEnded = await Promise.race([sending.then(() => false), receiving.then(() => true)]);
  if (!serverEnded) return;
  deadline.set(LINGER_MS);
  await client.closeWrite();
  await sending;
}

/** Sends the body, then waits for the client to end. More bytes than announced are a second request, which is an error. */
async function sendBody(
  client: Deno.Conn,
  upstream: Deno.Conn,
  rest: Uint8Array,
  bodyBytes: number,
  touch: () => void,
) {
  const buffer = new Uint8Array(64 * 1024);
  let missing = bodyBytes;
  for (let chunk: Uint8Array | null = rest; chunk !== null;) {
    missing -= chunk.length;
    if (missing < 0) throw new Error("Can't forward more than one request on a connection");
    touch();
    await writeAll(upstream, chunk);
    const count: number | null = await client.read(buffer);
    chunk = count === null ? null : buffer.subarray(0, count);
  }
}

/** Sends the proxy's own response. Drains the client first: closing with unread bytes would reset the connection. */
async function respond(client: Deno.Conn, deadline: Deadline, status: string, headers: [string, string][], body = "") {
  deadline.set(LINGER_MS);
  const fixed: [string, string][] = [["Content-Length", `${body.length}`], ["Connection", "close"]];
  const head = formatHead({ startLine: `HTTP/1.1 ${status}`, headers: [...headers, ...fixed] });
  await writeAll(client, Buffer.concat([head, Buffer.from(body)]));
  await client.closeWrite();
  const buffer = new Uint8Array(16 * 1024);
  for (let drained = 0; drained < 256 * 1024;) {
    const count = await client.read(buffer);
    if (count === null) return;
    drained += count;
  }
}

function isAuthorized(head: HttpHead, expected: string): boolean {
  const [actual = "", ...more] = getHeaderValues(head, "proxy-authorization");
  const [a, b] = [Buffer.from(actual), Buffer.from(expected)];
  return more.length === 0 && a.length === b.length && timingSafeEqual(a, b);
}

/** A timer that can be reset. */
class Deadline {
  #timer: ReturnType<typeof setTimeout> | undefined;
  constructor(readonly onExpiry: () => void) {}
  set(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.onExpiry, ms);
  }
  clear(): void {
    clearTimeout(this.#timer);
  }
}
