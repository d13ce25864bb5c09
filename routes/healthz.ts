/** `GET /healthz`: for health checks of containers and proxies; it says that the process answers, and nothing else. */
import { Hono } from "hono";
import type { Env } from "../middleware/env.ts";
import type { RouteFacts } from "../middleware/route_table.ts";
import type { BodyLimits } from "./http/route_facts.ts";

/** As the API document has it. Without a schema, so that a first answer waits for nothing that reads schemas. */
export const healthzRoute = {
  method: "get" as const,
  path: "/healthz",
  tags: ["health"],
  summary: "Whether the process answers; open to everyone",
  responses: { 204: { description: "It does" } },
};

/** The route, outside /api and therefore outside authentication and the host allowlist. */
export function healthzRoutes(): Hono<Env> {
  return new Hono<Env>().get(healthzRoute.path, (c) => c.body(null, 204));
}

/** What the chain has to know of it. */
export function healthzFacts(limits: BodyLimits): RouteFacts[] {
  const { path: pattern } = healthzRoute;
  return [{
    method: "GET",
    pattern,
    bodyTypes: [],
    isBodyRequired: false,
    bodyLimitBytes: limits.default,
    isBodyStreamed: false,
  }];
}
