/**
 * The way in from the tailnet: a listener of its own, where the node's serve and nothing else reaches it. The node hands
 * whatever its serve-config does not know raw to 127.0.0.1, so this one listens elsewhere; and every local process can
 * connect to it, so requests have to come below a path that only the node was told.
 */
import type { ClientConnection } from "../../middleware/env.ts";
import { randomToken } from "../../services/crypto/random.ts";
import { AppError } from "../../services/errors.ts";
import type { Log } from "../../services/log.ts";
import type { NodeListener } from "../../services/tailnet/tailnet.ts";
import { createErrorBody } from "../errors.ts";
import { openListener } from "./listener.ts";

/** Linux has the whole of 127.0.0.0/8 and containers there may lack IPv6; other systems have 127.0.0.1 alone. */
const HOST = Deno.build.os === "linux" ? "127.0.0.2" : "::1";

/**
 * Opens it on a free port, under a secret of its own.
 *
 * @param options.nodeUrl Under which the node is reached: `"https://parlor.fox-owl.ts.net"`; `null` while it isn't.
 * @throws {AppError} `not_available` if it can't listen on the address.
 */
export function openTailnetListener(options: {
  handler(request: Request, connection: ClientConnection): Response | Promise<Response>;
  nodeUrl: () => string | null;
  log: Log;
}): NodeListener {
  const { handler, nodeUrl, log } = options;
  const prefix = `/${randomToken(32)}`;
  const listener = openListener({
    host: HOST,
    port: 0,
    name: "tailnet",
    log,
    handler(request, connection) {
      const unprefixed = removePrefix(prefix, request);
      if (unprefixed === undefined) return new Response(null, { status: 404 });
      return refuseForeignRequest(unprefixed, nodeUrl()) ?? handler(unprefixed, connection);
    },
  });
  const host = HOST.includes(":") ? `[${HOST}]` : HOST;
  return { target: `http://${host}:${listener.port}${prefix}`, close: () => listener.close() };
}

/** Takes the secret off the path. It is looked for after parsing, since serve passes on `..` as it came. */
function removePrefix(prefix: string, request: Request): Request | undefined {
  if (!URL.canParse(request.url)) return undefined;
  const url = new URL(request.url);
  if (!url.pathname.startsWith(`${prefix}/`)) return undefined;
  url.pathname = url.pathname.slice(prefix.length);
  return new Request(url, request);
}

/** Answers what no route is to see: the internet, and the addresses that lead to the node but are not its own. */
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
