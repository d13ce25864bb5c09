/**
 * The listener over `Deno.serve`, for a runtime without the internal function that listener.ts uses. `Deno.serve` has no
 * limits on connections and speaks HTTP/2 over TLS; docs/decisions/0004 lists what that costs.
 */
import { delay } from "../../services/async/delay.ts";
import type { ClientConnection } from "../../middleware/env.ts";
import { getErrorMessage } from "../../services/errors.ts";
import type { Listener, ListenerOptions } from "./listener.ts";

/** Pause before `Deno.serve` is restarted after it ended, as it does when descriptors run out. */
const RESTART_DELAY_MS = 100;

/** Hosts that a runtime puts into the URL of a request that names none. */
const PLACEHOLDER_HOSTS = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"];

const WARNING =
  "Can't limit connections: this version of Deno lacks serveHttpOnConnection, so Parlor uses Deno.serve. " +
  "Idle connections stay open, their number has no limit, and TLS offers HTTP/2, which needs a host name other than localhost";

/** Opens a listener; throws what `Deno.serve` throws. @param getUrl Returns the address to show for a port. */
export function openServeListener(
  options: ListenerOptions,
  { closeMs, getUrl }: { closeMs: number; getUrl(port: number): string },
): Listener {
  const { host, tls, handler, log, name = "main" } = options;
  const hostname = host.replace(/^\[(.*)\]$/, "$1");
  const closing = new AbortController();
  /** Ends the running server. Aborting one that has already ended would end the process. */
  let end: AbortController;
  let activeRequests = 0;
  let drained = () => {};
  let isEnding = false;

  function respond(request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>): Response | Promise<Response> {
    // `Deno.serve` can't stop accepting and still be aborted later, so it runs until every response has been sent.
    if (closing.signal.aborted) return new Response(null, { status: 503, headers: { Connection: "close" } });
    activeRequests++;
    const ended = () => {
      if (--activeRequests === 0) drained();
    };
    info.completed.then(ended, ended);
    const from: ClientConnection = { peerAddress: info.remoteAddr.hostname, listener: name, closing: closing.signal };
    return handler(tls === undefined ? request : withHost(request), from);
  }

  function serve(port: number): Deno.HttpServer<Deno.NetAddr> {
    end = new AbortController();
    return Deno.serve({
      hostname,
      port,
      ...tls,
      signal: end.signal,
      onListen() {},
      onError: () => new Response(null, { status: 500 }),
    }, respond);
  }

  async function close(): Promise<void> {
    closing.abort();
    let limit: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<void>((resolve) => limit = setTimeout(resolve, closeMs));
    await Promise.race([timeout, new Promise<void>((resolve) => activeRequests === 0 ? resolve() : drained = resolve)]);
    isEnding = true;
    // A shutdown still sends what a slow reader hasn't taken yet, but can't be aborted any more.
    if (activeRequests > 0) {
      end.abort();
      await serving;
    } else {
      running.shutdown().catch(() => {});
      await Promise.race([timeout, serving]);
    }
    clearTimeout(limit);
  }

  /** Serves until the listener is closed, restarting `Deno.serve` if it ends before. */
  async function serveOn(): Promise<void> {
    for (;;) {
      await running.finished.catch(() => {});
      while (!isEnding) {
        log(
          "warn",
          "Can't accept connections: Deno.serve ended, probably because file descriptors ran out. Restarting it",
        );
        await delay(RESTART_DELAY_MS);
        try {
          if (!isEnding) running = serve(port);
          break;
        } catch (error) {
          log("warn", `Can't listen on ${host}, port ${port}: ${getErrorMessage(error)}`);
        }
      }
      if (isEnding) return;
    }
  }

  let closed: Promise<void> | undefined;
  let running = serve(options.port);
  const { port } = running.addr;
  const serving = serveOn();
  log("warn", WARNING);
  return {
    url: getUrl(port),
    port,
    get connectionCount() {
      return activeRequests;
    },
    close: () => closed ??= close(),
  };
}

/**
 * Adds the `Host` that an HTTP/2 request has in `:authority` instead (RFC 9113, section 8.3.1). If a request has
 * neither, its URL contains the runtime's stand-in; it gets no `Host` and is rejected.
 */
function withHost(request: Request): Request {
  if (request.headers.has("host")) return request;
  const { host, hostname } = new URL(request.url);
  if (PLACEHOLDER_HOSTS.includes(hostname)) return request;
  return new Request(request, { headers: [...request.headers, ["host", host]] });
}
