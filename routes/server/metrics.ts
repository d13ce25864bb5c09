/** `GET /metrics`: metrics for Prometheus, if `metrics` is on. */
import { Hono } from "hono";
import type { Env } from "../../middleware/env.ts";
import type { RouteFacts } from "../../middleware/route_table.ts";
import { AppError } from "../../services/errors.ts";
import { EXPOSITION_TYPE, type Metrics } from "../../services/metrics/metrics.ts";
import type { BodyLimits } from "../http/route_facts.ts";

/** Path that Prometheus scrapes by default. */
export const METRICS_PATH = "/metrics";

/** The metrics in the OpenAPI document. */
export const metricsRoute = {
  method: "get" as const,
  path: METRICS_PATH,
  tags: ["health"],
  summary: "Get metrics for Prometheus, if metrics is on; other machines need a token",
  responses: {
    200: { description: "Text format 0.0.4", content: { "text/plain": { schema: { type: "string" as const } } } },
    404: { description: "Metrics are off" },
  },
};

/** Returns what the middleware needs to know about the route. */
export function metricsFacts(limits: BodyLimits): RouteFacts {
  return {
    method: "GET",
    pattern: METRICS_PATH,
    bodyTypes: [],
    isBodyRequired: false,
    bodyLimitBytes: limits.default,
    isBodyStreamed: false,
  };
}

/** Responds with the metrics, or with 404 if they are off. */
export function metricsRoutes(metrics: Metrics | undefined): Hono<Env> {
  const router = new Hono<Env>();
  router.get(METRICS_PATH, async (c) => {
    if (metrics === undefined) {
      throw new AppError("not_found", "Can't read metrics: they are off. Set metrics = true to turn them on");
    }
    const { identity, facts } = c.var;
    // Other machines don't get metrics through grace or because sign-in is off.
    const isOwn = identity.method === null && identity.bypass !== "grace" && identity.bypass !== null && facts.isLocal;
    if (identity.method === null && !isOwn) {
      throw new AppError("unauthenticated", "Send a bearer token: from other machines, metrics require one");
    }
    return c.body(await metrics.render(), 200, { "Content-Type": EXPOSITION_TYPE, "Cache-Control": "no-store" });
  });
  return router;
}
