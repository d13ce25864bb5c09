/**
 * Second middleware: logs one line per request, and counts requests. Logs the route's pattern, but no IDs, query
 * strings, content or tokens.
 */
import type { MiddlewareHandler } from "hono";
import type { Log } from "../services/log.ts";
import type { Metrics } from "../services/metrics/metrics.ts";
import type { Env } from "./env.ts";
import type { RouteTable } from "./route_table.ts";

/** Methods to log as they are. Other words are text from the client. */
const KNOWN_METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]);
/** Statuses of requests that are rejected because of who sends them or how often. */
const REFUSALS = new Set([401, 403, 429]);
/** Health checks request this path every few seconds, for as long as the server runs. */
const HEALTH_CHECK = "/healthz";

/**
 * Logs method, route pattern, status, milliseconds until the response headers, and request ID. For rejected requests,
 * also logs the client's address, so that a firewall can act on it. Successful health checks are logged at level debug,
 * because they would be most of the log.
 *
 * @param options.routes `undefined` until the router is complete
 */
export function requestLog(options: {
  log: Log;
  isEnabled: boolean;
  /** Whether to add the caller to each line. */
  isDebug: boolean;
  /** Counts all requests, including those that aren't logged. */
  metrics?: Pick<Metrics, "countRequest">;
  routes: () => RouteTable;
  now: () => number;
}): MiddlewareHandler<Env> {
  const { log, isEnabled, isDebug, metrics, routes, now } = options;
  if (!isEnabled && metrics === undefined) return (_c, next) => next();
  return async (c, next) => {
    const startedAt = now();
    await next();
    const method = KNOWN_METHODS.has(c.req.method) ? c.req.method : "other";
    const route = routes().findPattern(c.req.path) ?? (c.req.path.startsWith("/api/") ? "/api/*" : "/*");
    const { status } = c.res;
    const ms = now() - startedAt;
    metrics?.countRequest({ method, route, status, seconds: ms / 1000 });
    if (!isEnabled) return;
    log(route === HEALTH_CHECK && c.res.ok ? "debug" : "info", `${method} ${route}`, {
      // The address comes before all values that a client can choose.
      ...(isDebug || REFUSALS.has(status) ? { client: c.var.facts.clientAddress } : {}),
      status,
      ms: Math.round(ms),
      request_id: c.var.requestId,
      ...(isDebug && c.var.facts.untrustedProxy && { forwarding_header: c.var.facts.forwardingHeader }),
      ...(isDebug && { signed_in_by: c.var.identity?.method ?? c.var.identity?.bypass ?? null }),
    });
  };
}
