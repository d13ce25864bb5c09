/** The tailnet node in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import { HOST_LABEL } from "../../services/config/config_values.ts";
import { TAILNET_STATES, type TailnetStatus } from "../../services/tailnet/node_state.ts";
import { ERRORS, json, optionalJsonBody } from "./common.ts";

const Status = z.object({
  enabled: z.boolean(),
  mode: z.enum(["off", "userspace"]),
  state: z.enum(TAILNET_STATES),
  hostname: z.string().openapi({ description: "The requested name; the tailnet may assign another" }),
  fqdn: z.string().nullable().openapi({ description: "Its assigned name; null until it has one" }),
  port: z.number().int().nullable(),
  url: z.string().nullable().openapi({ description: "URL of the node; http if it has no certificate" }),
  auth_url: z.string().nullable().openapi({ description: "With needs_auth: the URL for signing in the node" }),
  error: z.string().nullable().openapi({ description: "With running: why HTTPS isn't available" }),
}).openapi("TailnetStatus");

const EnableBody = z.object({
  hostname: z.string().regex(HOST_LABEL, "expected 1 to 63 lower-case letters, digits or hyphens").nullish(),
}).openapi("TailnetRequest");

/** Converts the status to its JSON form. */
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
  summary: "Get the status of the node; changes are announced as events of kind tailnet",
  responses: { 200: json(Status, "The state"), ...ERRORS },
});

/** `POST /api/tailnet/enable` */
export const enableRoute = createRoute({
  method: "post",
  path: "/api/tailnet/enable",
  tags,
  summary: "Turn the node on, rename it, or restart a failed one",
  request: { body: optionalJsonBody(EnableBody) },
  responses: { 200: json(Status, "The node is starting; 503 explains how to install tailscaled"), ...ERRORS },
});

/** `POST /api/tailnet/disable` */
export const disableRoute = createRoute({
  method: "post",
  path: "/api/tailnet/disable",
  tags,
  summary: "Stop the node and delete its state; the next one must sign in again",
  request: { body: optionalJsonBody(z.object({})) },
  responses: { 200: json(Status, "The node is stopping"), ...ERRORS },
});

/** The state of the tailnet node. */
export type TailnetStatusJson = z.output<typeof Status>;
