/** Status of the server and its model in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, json } from "./common.ts";

const Health = z.object({
  status: z.enum(["ok", "degraded", "unconfigured"]),
  version: z.string(),
  refused_sign_ins: z.int().describe(
    "Number of sign-ins rejected in the last 24 hours, or since startup if that is later",
  ),
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

/** Reachability of the model server. */
export const healthRoute = createRoute({
  method: "get",
  path: "/api/health",
  tags: ["Chat"],
  summary: "Get the reachability of the model server and a summary of the active connection",
  responses: { 200: json(Health, "Always 200; the field status contains the result"), ...ERRORS },
});

/** `parlor stop` */
export const stopRoute = createRoute({
  method: "post",
  path: "/api/stop",
  tags: ["Maintenance"],
  summary: "Stop the server",
  description: "Only for `parlor stop`, which proves that it can read the data folder. Anyone else gets 403.",
  responses: {
    202: json(z.object({ pid: z.int() }).openapi("Stopping"), "The process that ends now"),
    ...ERRORS,
  },
});

const Models = z.object({ object: z.literal("list"), data: z.array(z.looseObject({ id: z.string() })) }).openapi(
  "Models",
);

/** Models of the model server. */
export const modelsRoute = createRoute({
  method: "get",
  path: "/api/models",
  tags: ["Chat"],
  summary: "List the models of the active connection",
  responses: { 200: json(Models, "In the format of the model server's /v1/models"), ...ERRORS },
});

/** The state of the server and of its active connection. */
export type HealthJson = z.output<typeof Health>;
