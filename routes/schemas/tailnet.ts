/** The tailnet node on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import { HOST_LABEL } from "../../services/config/config_values.ts";
import { TAILNET_STATES, type TailnetStatus } from "../../services/tailnet/node_status.ts";
import { ERRORS, json, optionalJsonBody } from "./common.ts";

const Status = z.object({
  enabled: z.boolean(),
  mode: z.enum(["off", "userspace"]),
  state: z.enum(TAILNET_STATES),
  hostname: z.string().openapi({ description: "The wished name; the tailnet may give another one" }),
  fqdn: z.string().nullable().openapi({ description: "The name it has; null before it has one" }),
  port: z.number().int().nullable(),
  url: z.string().nullable().openapi({ description: "Where it is reached; http where there is no certificate" }),
  auth_url: z.string().nullable().openapi({ description: "With needs_auth: where a person signs it in" }),
  error: z.string().nullable().openapi({ description: "With running: why it is not HTTPS" }),
}).openapi("TailnetStatus");

const EnableBody = z.object({
  hostname: z.string().regex(HOST_LABEL, "expected 1 to 63 lower-case letters, digits or hyphens").nullish(),
}).openapi("TailnetRequest");

/** Gives the status its form on the wire. */
export function toStatusJson(status: TailnetStatus): z.infer<typeof Status> {
  const { enabled, mode, state, hostname, fqdn, port, url, authUrl, error } = status;
  return { enabled, mode, state, hostname, fqdn, port, url, auth_url: authUrl, error };
}

const tags = ["Tailnet"];

/** `GET /api/tailnet/status` */
export const statusRoute = createRoute({
  method: "get",
  path: "/api/tailnet/status",
  tags,
  summary: "How the node stands; an event of kind tailnet tells each change",
  responses: { 200: json(Status, "The state"), ...ERRORS },
});

/** `POST /api/tailnet/enable` */
export const enableRoute = createRoute({
  method: "post",
  path: "/api/tailnet/enable",
  tags,
  summary: "Switch the node on, give it another name, or start one again that failed",
  request: { body: optionalJsonBody(EnableBody) },
  responses: { 200: json(Status, "On its way; 503 says how to get tailscaled"), ...ERRORS },
});

/** `POST /api/tailnet/disable` */
export const disableRoute = createRoute({
  method: "post",
  path: "/api/tailnet/disable",
  tags,
  summary: "Stop the node and wipe its state; the next one has to be signed in again",
  request: { body: optionalJsonBody(z.object({})) },
  responses: { 200: json(Status, "On its way to disabled"), ...ERRORS },
});

/** The state of the tailnet node. */
export type TailnetStatusJson = z.output<typeof Status>;
