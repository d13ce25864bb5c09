/** Second middleware: logs one line per request. Logs the route's pattern, and no ids, query strings, content or tokens. */
import type { MiddlewareHandler } from "hono";
import type { Log } from "../services/log.ts";
import type { Env } from "./env.ts";
import type { RouteTable } from "./route_table.ts";

/** Methods to log as they are. Other words are text from the client. */
const KNOWN_METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]);
/** Asked by a health check every few seconds, for as long as the server runs. */
const HEALTH_CHECK = "/healthz";

/**
 * Logs method, route pattern, status, milliseconds until the answer's head, and request id; a health check that found all
 * well at level debug, since it would be most of the log.
 *
 * @param options.routes `undefined` until the router is complete.
 */
export function requestLog(options: {
  log: Log;
  isEnabled: boolean;
  routes: () => RouteTable;
  now: () => number;
}): MiddlewareHandler<Env> {
  const { log, isEnabled, routes, now } = options;
  if (!isEnabled) return (_c, next) => next();
  return async (c, next) => {
    const startedAt = now();
    await next();
    const method = KNOWN_METHODS.has(c.req.method) ? c.req.method : "other";
    const route = routes().patternOf(c.req.path) ?? (c.req.path.startsWith("/api/") ? "/api/*" : "/*");
    log(route === HEALTH_CHECK && c.res.ok ? "debug" : "info", `${method} ${route}`, {
      status: c.res.status,
      ms: Math.round(now() - startedAt),
      request_id: c.var.requestId,
    });
  };
}
