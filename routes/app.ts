/**
 * Answers HTTP requests: runs the middleware in order, then serves the page (ui.ts) or the API (api.ts lists all
 * resources).
 *
 * The API is loaded with its first request or shortly after startup, whichever comes first, so that startup doesn't
 * wait for its schemas.
 */
import { Hono, type MiddlewareHandler } from "hono";
import { getPath } from "hono/utils/url";
import { authentication } from "../middleware/authentication.ts";
import { bodyLimit } from "../middleware/body_limit.ts";
import { callLimit } from "../middleware/call_limit.ts";
import { conditionalGet } from "../middleware/conditional_get.ts";
import { cors } from "../middleware/cors.ts";
import type { AppContext, ClientConnection, Env } from "../middleware/env.ts";
import { hostAllowlist } from "../middleware/host_allowlist.ts";
import { noStore } from "../middleware/no_store.ts";
import { securityHeaders } from "../middleware/security_headers.ts";
import { requestLog } from "../middleware/request_log.ts";
import { createRouteTable, type RouteFacts } from "../middleware/route_table.ts";
import { trustedProxies } from "../middleware/trusted_proxies.ts";
import { AppError, getErrorTrace } from "../services/errors.ts";
import { getErrorFields } from "../services/http/upstream_error.ts";
import type { Log } from "../services/log.ts";
import type { Services } from "../services/services.ts";
import { createErrorBody, createErrorResponse, getStatus, isDefect, toAppError } from "./errors.ts";
import { getBodyLimits, getRouteFacts } from "./http/route_facts.ts";
import type { Router } from "./http/router.ts";
import { METRICS_PATH, metricsFacts, metricsRoutes } from "./server/metrics.ts";
import { HEALTHZ_PATH, healthzFacts, readBuildName, uiRoutes } from "./ui.ts";

/** Answers a request. Never rejects. */
type Handler = (request: Request, connection: ClientConnection) => Promise<Response>;

/** Handles the requests of a listener. */
export interface App {
  /** Answers a request. Never rejects. */
  fetch: Handler;
  /** Loads the API, so that its first request doesn't have to wait. */
  loadApi(): Promise<Router>;
}

/** Creates the HTTP application for the opened services. @param options.uiFolder Folder that contains the built page */
export function createApp(services: Services, { uiFolder }: { uiFolder: string }): App {
  const { config, log } = services;
  const limits = getBodyLimits(config);
  const pages = new Hono<Env>().route("/", metricsRoutes(services.metrics)).route("/", uiRoutes(uiFolder));
  const handlePage = withMiddleware(services, pages, [healthzFacts(limits), metricsFacts(limits)]);
  let api: Promise<{ router: Router; handle: Handler }> | undefined;
  const openApi = () =>
    api ??= Promise.all([import("./api.ts"), readBuildName(uiFolder)]).then(([{ createApi }, build]) => {
      const router = createApi(services, build);
      return { router, handle: withMiddleware(services, router, getRouteFacts(router, limits)) };
    });
  let isWarm = false;

  /** Opens the services that the page needs next, after its first request. */
  async function warmUpAfter(response: Promise<Response>): Promise<void> {
    isWarm = true;
    await response;
    setTimeout(() => {
      Promise.all([openApi(), services.warmUp()]).catch((error) => {
        // Stopping the server isn't a defect. Later requests retry opening what failed now.
        if (isDefect(error)) log("error", "Can't load what the page needs", { error: getErrorTrace(error) });
      });
    });
  }

  return {
    loadApi: async () => (await openApi()).router,
    fetch(request, connection) {
      const path = getPath(request);
      const response = path.startsWith("/api/")
        ? openApi().then(({ handle }) => handle(request, connection))
        : handlePage(request, connection);
      if (!isWarm && path !== HEALTHZ_PATH && path !== METRICS_PATH) warmUpAfter(response);
      return response;
    },
  };
}

/**
 * Adds the middleware to routes.
 *
 * @param facts Facts about the routes for the middleware; a path without facts gets a 404 response
 */
export function withMiddleware(services: Services, router: Hono<Env>, facts: RouteFacts[]): Handler {
  const { auth, budget, config, log, metrics } = services;
  const table = createRouteTable(facts);
  const routes = () => table;
  const app = new Hono<Env>();

  app.use(securityHeaders(config.corsOrigins));
  app.use(trustedProxies(config.trustedProxies));
  const logOptions = { isEnabled: config.logRequests, isDebug: config.logLevel === "debug" };
  app.use(requestLog({ log, ...logOptions, metrics, routes, now: () => performance.now() }));
  app.use("/api/*", noStore());
  const gated = (link: MiddlewareHandler<Env>): MiddlewareHandler<Env> => (c, next) =>
    isGatedPath(c.req.path) ? link(c, next) : next();
  app.use(gated(authentication({ access: auth.access, streams: auth.streams, pageOrigins: auth.pageOrigins })));
  app.use(gated(hostAllowlist({ hosts: auth.hosts, corsOrigins: config.corsOrigins })));
  app.use(gated(cors({ corsOrigins: config.corsOrigins, routes })));
  app.use("/api/v1/*", callLimit());
  app.use(bodyLimit({ routes, defaultLimitBytes: config.maxBodyBytes, budget }));
  app.use(conditionalGet());
  app.route("/", router);

  app.notFound((c) => {
    const allow = table.listMethods(c.req.path);
    return createErrorResponse(
      allow.length > 0
        ? new AppError("method_not_allowed", "This path doesn't support the request's method", { allow })
        : new AppError("not_found", "Nothing exists at this path"),
      c,
    );
  });
  app.onError((error, c) => {
    logFailure(error, c, log);
    return createErrorResponse(error, c);
  });

  return async (request, connection) => {
    try {
      const response = await app.fetch(request, connection);
      // Without a body the runtime adds "Content-Length: 0", which differs from what GET would send for a stream or an
      // error.
      const needsNoLength = request.method === "HEAD" && ![204, 304].includes(response.status) &&
        !response.headers.has("content-length");
      return needsNoLength ? new Response(ReadableStream.from([]), response) : response;
    } catch (error) {
      // Hono's error handler doesn't catch thrown values that aren't an Error.
      log("error", "A request failed because of a defect", { error: getErrorTrace(error) });
      return Response.json(createErrorBody(error, "none"), { status: 500 });
    }
  };
}

/** Logs why a request failed if its own log line doesn't say so. */
function logFailure(error: unknown, c: AppContext, log: Log): void {
  const { requestId, facts } = c.var;
  const { code, upstream } = toAppError(error);
  if (isClientDisconnected(error, c.req.raw.signal)) {
    log("info", "client_closed", { request_id: requestId });
  } else if (isDefect(error)) {
    log("error", "A request failed because of a defect", { request_id: requestId, error: getErrorTrace(error) });
  } else if (facts === undefined) {
    // Rejected before the request is logged: its host or its proxy headers can't be read.
    log("warn", "Refused a request", { client: c.env.peerAddress, status: getStatus(code), request_id: requestId });
  } else if (code === "host_not_allowed") {
    const { clientAddress: client, host } = facts;
    log("warn", "Refused a host", { client, host: host.slice(0, 253), status: getStatus(code), request_id: requestId });
  } else if ((code === "upstream_error" || code === "upstream_timeout") && upstream === undefined) {
    // Calls to a model connection have their own log line.
    log("warn", "A server that a request needs failed", { request_id: requestId, ...getErrorFields(error) });
  }
}

/** Returns whether a path needs authentication. The page itself doesn't. */
function isGatedPath(path: string): boolean {
  return path.startsWith("/api/") || path === METRICS_PATH;
}

/** Returns whether a request failed because its client disconnected. */
function isClientDisconnected(error: unknown, client: AbortSignal): boolean {
  return client.aborted && (error === client.reason || (error instanceof Error && error.name === "AbortError"));
}
