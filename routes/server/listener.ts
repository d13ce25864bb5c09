/**
 * Accepts connections and hands their requests on. The accept loop is ours and not `Deno.serve`'s, which ends for good when
 * the process runs out of descriptors (on 2.6.10 without a word until the last connection has gone), has no limit on time
 * or number of connections, and offers HTTP/2, whose requests without a Host it does not tell from others.
 * docs/decisions says more. What the runtime does by itself: it parses HTTP/1.1, caps a request's head, refuses bad
 * framing with 400, reads bodies and writes answers only as fast as the other side takes them.
 */
import { delay } from "../../services/async/delay.ts";
import type { ClientConnection } from "../../middleware/env.ts";
import { AppError, messageOf } from "../../services/errors.ts";
import type { Log } from "../../services/log.ts";
import { canServeConnections, type ConnectionServer, serveConnection } from "./serve_connection.ts";
import { openServeListener } from "./serve_listener.ts";

/** How much patience connections get. */
export interface ListenerLimits {
  /** For the first request of a connection, TLS handshake and header included. */
  firstRequestMs: number;
  /** Between the end of an answer and the next whole request header. */
  idleMs: number;
  /** For a client that takes nothing of a streamed answer. */
  stalledMs: number;
  /** Connections at a time; beyond it the one idle for longest makes room. */
  maxConnections: number;
  /** For running answers once the listener closes. */
  closeMs: number;
}

const LIMITS: ListenerLimits = {
  firstRequestMs: 30_000,
  idleMs: 120_000,
  stalledMs: 60_000,
  maxConnections: 2_000,
  closeMs: 5_000,
};

/** Pause after a failed accept: descriptors come back when some connection ends, not sooner. */
const ACCEPT_PAUSE_MS = 100;

/** Idle connections closed at once when descriptors run out, so that files and upstream calls can be opened, too. */
const ROOM_TO_MAKE = 16;

/** An open listener. */
export interface Listener {
  /** Where a browser on this machine finds it: `"http://localhost:8787"`. */
  readonly url: string;
  readonly port: number;
  /** Connections open now. */
  readonly connectionCount: number;
  /** Accepts nothing more, ends streams, lets running answers finish within `closeMs`. */
  close(): Promise<void>;
}

/** What a listener is opened with. */
export interface ListenerOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  /** PEM texts. */
  tls?: { cert: string; key: string };
  handler(request: Request, connection: ClientConnection): Response | Promise<Response>;
  log: Log;
  name?: "main" | "tailnet";
  limits?: Partial<ListenerLimits>;
  /** False uses `Deno.serve`, as on a runtime that can't serve a single connection. */
  servesConnections?: boolean;
}

interface OpenConnection {
  server: ConnectionServer;
  activeRequests: number;
  hasServed: boolean;
  /** When it has to be answered or asked something, by `performance.now()`. */
  idleUntilMs: number;
}

/**
 * Opens a listener.
 *
 * @throws {AppError} `not_available` when the address cannot be listened on; `invalid_request` for a bad certificate.
 */
export function openListener(options: ListenerOptions): Listener {
  const { host, log, handler, name = "main" } = options;
  const limits = { ...LIMITS, ...options.limits };
  const urlOf = (port: number) => `${options.tls ? "https" : "http"}://${shownHost(host)}:${port}`;
  if (!(options.servesConnections ?? canServeConnections())) {
    return orExplain(options, () => openServeListener(options, { closeMs: limits.closeMs, urlOf }));
  }
  const socket = listen(options);
  const { port } = socket.addr as Deno.NetAddr;
  const closing = new AbortController();
  const connections = new Set<OpenConnection>();
  /** Those without a running request, longest idle first. */
  const idle = new Set<OpenConnection>();
  let sweeper: ReturnType<typeof setInterval> | undefined;

  function drop(count: number): void {
    for (const connection of [...idle].slice(0, count)) {
      idle.delete(connection);
      connection.server.abort();
    }
  }

  function sweep(): void {
    const now = performance.now();
    for (const connection of idle) {
      if (connection.idleUntilMs > now) continue;
      idle.delete(connection);
      connection.server.abort();
    }
  }

  function open(conn: Deno.Conn): void {
    if (connections.size >= limits.maxConnections) {
      // All are being answered: the newcomer is the one who can best try again.
      if (idle.size === 0) return conn.close();
      drop(1);
    }
    const from: ClientConnection = {
      peerAddress: (conn.remoteAddr as Deno.NetAddr).hostname,
      listener: name,
      closing: closing.signal,
      stalledMs: limits.stalledMs,
      abort: () => connection.server.abort(),
    };
    const ended = (connection: OpenConnection) => {
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
        completed.then(() => ended(connection), () => ended(connection));
        return handler(request, from);
      }),
    };
    connections.add(connection);
    idle.add(connection);
    sweeper ??= setInterval(sweep, Math.max(10, Math.min(limits.firstRequestMs, limits.idleMs) / 4));
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
          log("warn", `Can't accept a connection: ${messageOf(error)}. Closing idle connections`);
        }
        drop(ROOM_TO_MAKE);
        await delay(ACCEPT_PAUSE_MS);
      }
    }
  }

  const accepting = acceptAll();
  return {
    url: urlOf(port),
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
        // An answer may be sent and yet not taken by a slow reader, so what has served ends in good order.
        if (activeRequests === 0 && hasServed) server.shutdown();
        else if (activeRequests === 0) server.abort();
      }
      let limit: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => limit = setTimeout(resolve, limits.closeMs));
      await Promise.race([allFinished(connections), late]);
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
  // Only HTTP/1.1 is offered: see above.
  return orExplain(
    options,
    () =>
      tls === undefined
        ? Deno.listen({ hostname, port })
        : Deno.listenTls({ hostname, port, ...tls, alpnProtocols: ["http/1.1"] }),
  );
}

/** Calls a function that listens, and turns what it throws into an error that says what to do. */
function orExplain<T>({ host, port }: ListenerOptions, listen: () => T): T {
  try {
    return listen();
  } catch (cause) {
    if (cause instanceof Deno.errors.InvalidData) {
      throw new AppError("invalid_request", `Can't use tls_cert and tls_key: ${messageOf(cause)}`, { cause });
    }
    const found = cause instanceof Deno.errors.AddrInUse
      ? "something listens there already, perhaps another Parlor; name another port by --port"
      : messageOf(cause);
    throw new AppError("not_available", `Can't listen on ${host}, port ${port}: ${found}`, { cause });
  }
}

function shownHost(host: string): string {
  if (["127.0.0.1", "::1", "[::1]", "0.0.0.0", "::", "[::]"].includes(host)) return "localhost";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
