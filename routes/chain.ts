/** The chain of middleware around every route. Its order is part of the API's contract. */
import { Hono } from "hono";
import { authentication } from "../middleware/authentication.ts";
import { bodyLimit } from "../middleware/body_limit.ts";
import { conditionalGet } from "../middleware/conditional_get.ts";
import { cors } from "../middleware/cors.ts";
import type { Connection, Env } from "../middleware/env.ts";
import { hostAllowlist } from "../middleware/host_allowlist.ts";
import { noStore } from "../middleware/no_store.ts";
import { requestLog } from "../middleware/request_log.ts";
import { createRouteTable, type RouteFacts } from "../middleware/route_table.ts";
import { securityHeaders } from "../middleware/security_headers.ts";
import { trustedProxies } from "../middleware/trusted_proxies.ts";
import { AppError, traceOf } from "../services/errors.ts";
import type { Services } from "../services/services.ts";
import { errorBody, errorResponse, isDefect } from "./errors.ts";

/** Answers a request; never rejects. */
export type Answering = (request: Request, connection: Connection) => Promise<Response>;

/** What the chain stands on. */
export type ChainServices = Pick<Services, "auth" | "budget" | "config" | "log">;

/**
 * Puts the chain around some routes.
 *
 * @param routers They are asked in this order.
 * @param facts What the chain has to know of their routes; a path without any is answered by 404.
 */
export function chained(services: ChainServices, routers: readonly Hono<Env>[], facts: RouteFacts[]): Answering {
  const { auth, budget, config, log } = services;
  const { hosts, pageOrigins } = auth;
  const table = createRouteTable(facts);
  const routes = () => table;
  const app = new Hono<Env>();

  app.use(securityHeaders(config.corsOrigins));
  app.use(trustedProxies(config.trustedProxies));
  app.use(requestLog({ log, isEnabled: config.logRequests, routes, now: () => performance.now() }));
  app.use("/api/*", noStore());
  app.use("/api/*", authentication({ access: auth.access, streams: auth.streams, pageOrigins }));
  app.use("/api/*", hostAllowlist({ hosts, corsOrigins: config.corsOrigins }));
  app.use("/api/*", cors({ corsOrigins: config.corsOrigins, routes }));
  app.use(bodyLimit({ routes, defaultLimitBytes: config.maxBodyBytes, budget }));
  app.use(conditionalGet());
  for (const router of routers) app.route("/", router);

  app.notFound((c) => {
    const allow = table.methodsOf(c.req.path);
    return errorResponse(
      allow.length > 0
        ? new AppError("method_not_allowed", "This path does not know the method of the request", { allow })
        : new AppError("not_found", "There is nothing under this path"),
      c,
    );
  });
  app.onError((error, c) => {
    if (isLeaving(error, c.req.raw.signal)) {
      log("info", "client_closed", { request_id: c.var.requestId });
    } else if (isDefect(error)) {
      log("error", "A request failed on a defect", { request_id: c.var.requestId, error: traceOf(error) });
    }
    return errorResponse(error, c);
  });
  return async (request, connection) => {
    try {
      const answer = await app.fetch(request, connection);
      // For an answer without body the runtime adds "Content-Length: 0", which isn't what GET says of a stream or an error.
      const isUnmeasured = request.method === "HEAD" && ![204, 304].includes(answer.status) &&
        !answer.headers.has("content-length");
      return isUnmeasured ? new Response(ReadableStream.from([]), answer) : answer;
    } catch (error) {
      // Only what is no Error gets past Hono's own handler.
      log("error", "A request failed on a defect", { error: traceOf(error) });
      return Response.json(errorBody(error, "none"), { status: 500 });
    }
  };
}

/** Tells whether a request failed because its client left: nobody reads the answer, and nothing is wrong here. */
function isLeaving(error: unknown, client: AbortSignal): boolean {
  return client.aborted && (error === client.reason || (error instanceof Error && error.name === "AbortError"));
}
