/**
 * HTTP over one accepted connection. The runtime has it, as `Deno.serve` itself and its node:http are made of it, but does
 * not export it by name: this file is the only one that reaches for it. A runtime without it gets serve_listener.ts.
 */

/** HTTP running on one connection. */
export interface ConnectionServer {
  /** Resolves once the connection has ended, however it did. */
  readonly finished: Promise<void>;
  /** Takes no further request and ends once what was answered has been taken by the other side. */
  shutdown(): void;
  /** Ends at once, also in the middle of sending; without effect after `shutdown`. */
  abort(): void;
}

/** Answers one request. @param completed Settles when the answer is sent, or cannot be any more. */
export type ConnectionHandler = (request: Request, completed: Promise<void>) => Response | Promise<Response>;

type RuntimeServe = (
  connection: Deno.Conn,
  signal: AbortSignal,
  handler: (request: Request, info: { completed: Promise<void> }) => Response | Promise<Response>,
  onError: (error: unknown) => Response,
  onListen: () => void,
) => { finished: Promise<void>; shutdown(): Promise<void> };

/** Serves HTTP/1.1 on a connection and owns it from here on. Only for a runtime that `canServeConnections`. */
export function serveConnection(connection: Deno.Conn, handler: ConnectionHandler): ConnectionServer {
  const controller = new AbortController();
  const server = findRuntimeServe()!(
    connection,
    controller.signal,
    (request, info) => handler(request, info.completed),
    () => new Response(null, { status: 500 }),
    () => {},
  );
  // The runtime gives its handle away on either, and fails on a second one.
  let isEnding = false;
  const endOnce = (end: () => void) => () => {
    if (isEnding) return;
    isEnding = true;
    end();
  };
  return {
    // It rejects when a connection ends in the middle of a message, which is none of our failures.
    finished: server.finished.catch(() => {}).then(() => void (isEnding = true)),
    shutdown: endOnce(() => void server.shutdown().catch(() => {})),
    abort: endOnce(() => controller.abort()),
  };
}

/** Whether this runtime has the function that `serveConnection` needs. */
export function canServeConnections(): boolean {
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
