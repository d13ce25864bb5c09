/**
 * Accepts requests from the tailnet on a separate listener that only the node's serve reaches. The node forwards
 * connections for which it has no serve configuration to 127.0.0.1, so this listener uses another address. Because
 * every local process can connect to it, requests need a path prefix that only the node knows.
 */
import type { ClientConnection } from "../../middleware/env.ts";
import { randomToken } from "../../services/crypto/random.ts";
import { AppError } from "../../services/errors.ts";
import type { OwnListeners } from "../../services/http/own_listeners.ts";
import type { Log } from "../../services/log.ts";
import type { NodeListener } from "../../services/tailnet/tailnet.ts";
import { createErrorBody } from "../errors.ts";
import { openListener } from "./listener.ts";

/** Linux has all of 127.0.0.0/8, and containers there may lack IPv6. Other systems have only 127.0.0.1. */
const HOST = Deno.build.os === "linux" ? "127.0.0.2" : "::1";

/**
 * Opens the listener on a free port, with its own secret.
 *
 * @param options.nodeUrl URL at which the node is reachable: `"https://parlor.fox-owl.ts.net"`; `null` while it isn't.
 * @throws {AppError} `not_available` if it can't listen on the address.
 */
export function openTailnetListener(options: {
  handler(request: Request, connection: ClientConnection): Response | Promise<Response>;
  nodeUrl: () => string | null;
  log: Log;
  ownListeners?: OwnListeners;
}): NodeListener {
  const { handler, nodeUrl, log, ownListeners } = options;
  const prefix = `/${randomToken(32)}`;
  const listener = openListener({
    host: HOST,
    port: 0,
    name: "tailnet",
    log,
    ownListeners,
    handler(request, connection) {
      const unprefixed = removePrefix(prefix, request);
      if (unprefixed === undefined) return new Response(null, { status: 404 });
      return refuseForeignRequest(unprefixed, nodeUrl()) ?? handler(unprefixed, connection);
    },
  });
  const host = HOST.includes(":") ? `[${HOST}]` : HOST;
  return { target: `http://${host}:${listener.port}${prefix}`, close: () => listener.close() };
}

/**
 * Removes the secret from the path, or returns `undefined` if it isn't there. Checked after parsing, because serve
 * passes on `..` unchanged.
 */
function removePrefix(prefix: string, request: Request): Request | undefined {
  if (!URL.canParse(request.url)) return undefined;
  const url = new URL(request.url);
  if (!url.pathname.startsWith(`${prefix}/`)) return undefined;
  url.pathname = url.pathname.slice(prefix.length);
  return new Request(url, request);
}

/**
 * Returns the response to requests that no route may see: from the internet, and with addresses that lead to the node
 * but aren't its own.
 */
function refuseForeignRequest({ url, method, headers }: Request, nodeUrl: string | null): Response | undefined {
  if (headers.has("tailscale-funnel-request")) return createRefusal("This server isn't reachable from the internet");
  const { host, pathname, search } = new URL(url);
  const scheme = headers.get("x-forwarded-proto") === "https" ? "https" : "http";
  if (nodeUrl === null || new URL(`${scheme}://${host}`).origin === nodeUrl) return undefined;
  if (method !== "GET" && method !== "HEAD") return createRefusal(`This server's address is ${nodeUrl}`);
  return new Response(null, { status: 307, headers: { location: nodeUrl + pathname + search } });
}

function createRefusal(message: string): Response {
  return Response.json(createErrorBody(new AppError("host_not_allowed", message), "none"), { status: 403 });
}
