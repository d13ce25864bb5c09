/** How the server and its model stand, on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, json } from "./common.ts";

const Health = z.object({
  status: z.enum(["ok", "degraded", "unconfigured"]),
  version: z.string(),
  refused_sign_ins: z.int().describe("Sign-ins refused in the last 24 hours, or since the start if that is later"),
  connection: z.object({
    id: z.string(),
    name: z.string(),
    kind: z.string(),
    base_url: z.string(),
    model: z.string().optional(),
    reachable: z.boolean(),
    latency_ms: z.number(),
    error: z.string().optional(),
  }).nullable(),
}).openapi("Health");

/** Upstream reachability. */
export const healthRoute = createRoute({
  method: "get",
  path: "/api/health",
  tags: ["Chat"],
  summary: "Upstream reachability and a summary of the active connection",
  responses: { 200: json(Health, "Always 200; status says how things are"), ...ERRORS },
});

const Models = z.object({ object: z.literal("list"), data: z.array(z.looseObject({ id: z.string() })) }).openapi(
  "Models",
);

/** The upstream's models. */
export const modelsRoute = createRoute({
  method: "get",
  path: "/api/models",
  tags: ["Chat"],
  summary: "Models advertised by the active connection",
  responses: { 200: json(Models, "As the upstream's /v1/models"), ...ERRORS },
});

/** The state of the server and of its active connection. */
export type HealthJson = z.output<typeof Health>;
