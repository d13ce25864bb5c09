/**
 * Accepts connections and passes their requests to the app. It has its own accept loop, because that of `Deno.serve`
 * ends permanently when the process runs out of file descriptors, has no limits on time or on the number of
 * connections, and offers HTTP/2, where a request without a Host can't be recognized
 * (docs/decisions/0004-own-http-listener.md). The runtime parses HTTP/1.1, limits the size of headers, rejects bad
 * framing with 400, and reads and writes bodies with backpressure.
 */
import type { ClientConnection } from "../../middleware/env.ts";
import { delay } from "../../services/async/delay.ts";
import { AppError, getErrorMessage } from "../../services/errors.ts";
import type { OwnListeners } from "../../services/http/own_listeners.ts";
import type { Log } from "../../services/log.ts";
import { openServeListener } from "./serve_listener.ts";

/** Timeouts and limits of connections. */
export interface ListenerLimits {
  /** Time until the first request of a connection, including the TLS handshake. */
  firstRequestMs: number;
  /** Time between a response and the next request. */
  idleMs: number;
  /** Time for a client that doesn't read a streamed response. */
  stalledMs: number;
  /** Maximum number of open connections. Beyond that, the connection that was idle for longest is closed. */
  maxConnections: number;
  /** Time for running responses after `close`. */
  closeMs: number;
}

const LIMITS: ListenerLimits = {
  firstRequestMs: 30_000,
  idleMs: 120_000,
  stalledMs: 60_000,
  maxConnections: 2_000,
  closeMs: 5_000,
};

/** Pause in milliseconds after a failed accept. Descriptors become free when connections end. */
const ACCEPT_RETRY_MS = 100;

/**
 * Number of idle connections to close when descriptors run out, so that files and upstream calls can also be opened.
 */
const CLOSED_AT_SHORTAGE = 16;

/** An open listener. */
export interface Listener {
  /** Address for a browser on this machine: `"http://localhost:8787"`. */
  readonly url: string;
  readonly port: number;
  /** Number of open connections. */
  readonly connectionCount: number;
  /** Stops accepting, ends streams and lets running responses finish within `closeMs`. */
  close(): Promise<void>;
}

/** Options of `openListener`. */
export interface ListenerOptions {
  host: string;
  /** 0 for any free port. */
  port: number;
  /** Certificate and key as PEM texts. */
  tls?: { cert: string; key: string };
  handler(request: Request, connection: ClientConnection): Response | Promise<Response>;
  log: Log;
  name?: "main" | "tailnet";
  limits?: Partial<ListenerLimits>;
  /** False uses `Deno.serve`, as a runtime without the internal function does. */
  servesConnections?: boolean;
  /** Learns the address, so that no outbound request leads to it. */
  ownListeners?: OwnListeners;
}

interface OpenConnection {
  server: ConnectionServer;
  activeRequests: number;
  hasServed: boolean;
  /** When the connection is closed unless a request arrives, in milliseconds of `performance.now()`. */
  idleUntilMs: number;
}

/**
 * Opens a listener.
 *
 * @throws {AppError} `not_available` if it can't listen on the address; `invalid_request` for a bad certificate.
 */
export function openListener(options: ListenerOptions): Listener {
  const listener = startListener(options);
  const removeOwn = options.ownListeners?.add({ hostname: options.host, port: listener.port });
  const { close } = listener;
  listener.close = async () => {
    removeOwn?.();
    await close();
  };
  return listener;
}

function startListener(options: ListenerOptions): Listener {
  const { host, log, handler, name = "main" } = options;
  const limits = { ...LIMITS, ...options.limits };
  const getUrl = (port: number) => `${options.tls ? "https" : "http"}://${formatHost(host)}:${port}`;
  if (!(options.servesConnections ?? canServeConnections())) {
    return listenOrExplain(options, () => openServeListener(options, { closeMs: limits.closeMs, getUrl }));
  }
  const socket = listen(options);
  const { port } = socket.addr as Deno.NetAddr;
  const closing = new AbortController();
  const connections = new Set<OpenConnection>();
  /** Connections without a running request, longest idle first. */
  const idle = new Set<OpenConnection>();
  let sweeper: ReturnType<typeof setInterval> | undefined;

  function closeIdle(count: number): void {
    for (const connection of [...idle].slice(0, count)) {
      idle.delete(connection);
      connection.server.abort();
    }
  }

  function closeExpired(): void {
    const now = performance.now();
    for (const connection of idle) {
      if (connection.idleUntilMs > now) continue;
      idle.delete(connection);
      connection.server.abort();
    }
  }

  function open(conn: Deno.Conn): void {
    if (connections.size >= limits.maxConnections) {
      // All have running requests: reject the new one, which can retry.
      if (idle.size === 0) return conn.close();
      closeIdle(1);
    }
    const from: ClientConnection = {
      peerAddress: (conn.remoteAddr as Deno.NetAddr).hostname,
      listener: name,
      closing: closing.signal,
      stalledMs: limits.stalledMs,
      abort: () => connection.server.abort(),
    };
    const endRequest = (connection: OpenConnection) => {
      connection.activeRequests--;
      connection.idleUntilMs = performance.now() + limits.idleMs;
      if (connection.activeRequests > 0) return;
      if (closing.signal.aborted) connection.server.shutdown();
      else idle.add(connection);
    };
    const connection: OpenConnection = {
      activeRequests: 0,
      hasServed: false,
      idleUntilMs: performance.now() + limits.firstRequestMs,
      server: serveConnection(conn, (request, completed) => {
        connection.activeRequests++;
        connection.hasServed = true;
        idle.delete(connection);
        completed.then(() => endRequest(connection), () => endRequest(connection));
        return handler(request, from);
      }),
    };
    connections.add(connection);
    idle.add(connection);
    sweeper ??= setInterval(closeExpired, Math.max(10, Math.min(limits.firstRequestMs, limits.idleMs) / 4));
    connection.server.finished.then(() => {
      connections.delete(connection);
      idle.delete(connection);
      if (connections.size > 0 || sweeper === undefined) return;
      clearInterval(sweeper);
      sweeper = undefined;
    });
  }

  async function acceptAll(): Promise<void> {
    let isShort = false;
    while (!closing.signal.aborted) {
      try {
        open(await socket.accept());
        isShort = false;
      } catch (error) {
        if (closing.signal.aborted) return;
        if (!isShort) {
          isShort = true;
          log("warn", `Can't accept a connection: ${getErrorMessage(error)}. Closing idle connections`);
        }
        closeIdle(CLOSED_AT_SHORTAGE);
        await delay(ACCEPT_RETRY_MS);
      }
    }
  }

  const accepting = acceptAll();
  return {
    url: getUrl(port),
    port,
    get connectionCount() {
      return connections.size;
    },
    async close() {
      if (closing.signal.aborted) return await accepting;
      closing.abort();
      socket.close();
      await accepting;
      for (const { server, activeRequests, hasServed } of connections) {
        // A slow reader may not have received its whole response yet, so connections that served one are shut down, not aborted.
        if (activeRequests === 0 && hasServed) server.shutdown();
        else if (activeRequests === 0) server.abort();
      }
      let limit: ReturnType<typeof setTimeout> | undefined;
      const timeout = new Promise<void>((resolve) => limit = setTimeout(resolve, limits.closeMs));
      await Promise.race([allFinished(connections), timeout]);
      clearTimeout(limit);
      const stuck = [...connections].filter(({ activeRequests }) => activeRequests > 0);
      stuck.forEach(({ server }) => server.abort());
      await allFinished(stuck);
      clearInterval(sweeper);
    },
  };
}

async function allFinished(connections: Iterable<OpenConnection>): Promise<void> {
  await Promise.all([...connections].map(({ server }) => server.finished));
}

function listen(options: ListenerOptions): Deno.Listener {
  const { host, port, tls } = options;
  const hostname = host.replace(/^\[(.*)\]$/, "$1");
  // Only HTTP/1.1, see the top of this file.
  return listenOrExplain(
    options,
    () =>
      tls === undefined
        ? Deno.listen({ hostname, port })
        : Deno.listenTls({ hostname, port, ...tls, alpnProtocols: ["http/1.1"] }),
  );
}

/** Calls `listen` and converts its errors to errors that say what to do. */
function listenOrExplain<T>({ host, port }: ListenerOptions, listen: () => T): T {
  try {
    return listen();
  } catch (cause) {
    if (cause instanceof Deno.errors.InvalidData) {
      throw new AppError("invalid_request", `Can't use tls_cert and tls_key: ${getErrorMessage(cause)}`, { cause });
    }
    const found = cause instanceof Deno.errors.AddrInUse
      ? "it's in use, perhaps by another Parlor. Choose another port with --port"
      : getErrorMessage(cause);
    throw new AppError("not_available", `Can't listen on ${host}, port ${port}: ${found}`, { cause });
  }
}

function formatHost(host: string): string {
  if (["127.0.0.1", "::1", "[::1]", "0.0.0.0", "::", "[::]"].includes(host)) return "localhost";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/**
 * HTTP on one accepted connection, by an internal function of the runtime on which `Deno.serve` and node:http are built. No
 * other file uses it. A runtime without it gets serve_listener.ts.
 */
interface ConnectionServer {
  /** Resolves when the connection has ended for any reason. */
  readonly finished: Promise<void>;
  /** Ends the connection after the responses that were started have been sent. */
  shutdown(): void;
  /** Ends the connection immediately. Has no effect after `shutdown`. */
  abort(): void;
}

/** Answers one request. @param completed Settles when the response was sent or failed. */
type ConnectionHandler = (request: Request, completed: Promise<void>) => Response | Promise<Response>;

/** What the runtime uses of an `AbortSignal`. */
interface EndSignal {
  addEventListener(type: "abort", listener: () => void): void;
}

type RuntimeServe = (
  connection: Deno.Conn,
  signal: EndSignal,
  handler: (request: Request, info: { completed: Promise<void> }) => Response | Promise<Response>,
  onError: (error: unknown) => Response,
  onListen: () => void,
) => { finished: Promise<void>; shutdown(): Promise<void> };

/** Serves HTTP/1.1 on a connection and closes it at the end. Requires `canServeConnections()`. */
function serveConnection(connection: Deno.Conn, handler: ConnectionHandler): ConnectionServer {
  let cancel = () => {};
  const server = findRuntimeServe()!(
    connection,
    // The listener throws if the connection is just ending. From a real signal, that would end the process.
    { addEventListener: (_type, listener) => cancel = listener },
    (request, info) => handler(request, info.completed),
    () => new Response(null, { status: 500 }),
    () => {},
  );
  // The runtime fails if either is called a second time.
  let isEnding = false;
  const endOnce = (end: () => void) => () => {
    if (isEnding) return;
    isEnding = true;
    end();
  };
  return {
    // Rejects if the client closes the connection within a message.
    finished: server.finished.catch(() => {}).then(() => void (isEnding = true)),
    shutdown: endOnce(() => void server.shutdown().catch(() => {})),
    abort: endOnce(() => {
      try {
        cancel();
      } catch (error) {
        if (!(error instanceof Deno.errors.BadResource)) throw error;
      }
    }),
  };
}

/** Returns whether the runtime has the function that `serveConnection` needs. */
function canServeConnections(): boolean {
  return findRuntimeServe() !== undefined;
}

let found: RuntimeServe | undefined;

function findRuntimeServe(): RuntimeServe | undefined {
  if (found !== undefined) return found;
  const key: unknown = Reflect.get(Deno, "internal");
  const internals: unknown = typeof key === "symbol" ? Reflect.get(Deno, key) : undefined;
  const serve: unknown = typeof internals === "object" && internals !== null
    ? Reflect.get(internals, "serveHttpOnConnection")
    : undefined;
  return found = typeof serve === "function" ? serve as RuntimeServe : undefined;
}
