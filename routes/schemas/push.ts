/** Notifications on devices and by the owner's notification server. */
import { createRoute, z } from "@hono/zod-openapi";
import { NOTIFY_KINDS, type NotifyServer } from "../../services/push/notify_server.ts";
import type { Presence, PushDevice } from "../../services/push/push.ts";
import { ApiKey, ERRORS, IdParams, IfMatch, json, jsonBody, Time } from "./common.ts";

const Device = z.object({
  id: z.string(),
  label: z.string(),
  vendor: z.string().openapi({
    description: "Host of the push service of the browser's vendor, which delivers the notifications",
    example: "fcm.googleapis.com",
  }),
  created_at: Time,
}).openapi("PushDevice");

const SubscriptionBody = z.object({
  endpoint: z.url().max(2000).openapi({ description: "An https address of a push service" }),
  keys: z.object({ p256dh: z.string().max(200), auth: z.string().max(100) }),
  label: z.string().trim().min(1).max(100).openapi({
    description: "Name of the device",
    example: "Firefox on Android",
  }),
}).openapi("PushSubscription", { description: "The result of PushManager.subscribe(), with a label" });

/** A browser's push subscription, with the name of the device. */
export type PushSubscriptionJson = z.input<typeof SubscriptionBody>;

const PresenceBody = z.object({
  page: z.string().min(1).max(64).openapi({ description: "A random id of the page" }),
  visible: z.boolean(),
  used: z.boolean().default(false).openapi({
    description: "Someone typed, clicked or scrolled in the last half minute: no device is notified for 75 s",
  }),
}).openapi("PushPresence");

/** A presence report of a page. */
export type PagePresenceJson = z.input<typeof PresenceBody>;

const ServerResponse = z.object({
  kind: z.enum(NOTIFY_KINDS),
  url: z.string().nullable().openapi({ description: "With ntfy, the URL of the topic; null without a server" }),
  has_token: z.boolean(),
  held: z.boolean().optional().openapi({ description: "True if it came with an import: not used until it's saved" }),
}).openapi("NotifyServer");

const ServerBody = z.object({
  kind: z.enum(NOTIFY_KINDS),
  url: z.string().max(2000).nullable().openapi({ description: "null removes the server" }),
  token: ApiKey.nullish().openapi({
    description: "Write-only. Absent keeps it while the origin stays; null removes it",
  }),
}).openapi("NotifyServerPut");

/** Converts a device to its JSON form. */
export function toDeviceJson({ id, label, vendor, createdAt: created_at }: PushDevice): z.infer<typeof Device> {
  return { id, label, vendor, created_at };
}

/** Converts a presence report. */
export function toPresence({ page, visible, used }: z.infer<typeof PresenceBody>): Presence {
  return { page, isVisible: visible, isUsed: used };
}

/** Converts the notification server to its JSON form. */
export function toPushServerJson(server: NotifyServer | null): z.infer<typeof ServerResponse> {
  const { kind = "ntfy", url = null, token, isHeld: held } = server ?? {};
  return { kind, url, has_token: token !== undefined, held };
}

const tags = ["Notifications"];
const path = "/api/push";

/** The public key. */
export const keyRoute = createRoute({
  method: "get",
  path: `${path}/key`,
  tags,
  summary: "Public key that browsers subscribe with (applicationServerKey)",
  responses: { 200: json(z.object({ public_key: z.string() }), "P-256, uncompressed, base64url"), ...ERRORS },
});

/** The devices. */
export const listRoute = createRoute({
  method: "get",
  path: `${path}/subscriptions`,
  tags,
  summary: "List the devices that are notified when a reply is ready, newest first",
  responses: { 200: json(z.array(Device), "The devices"), ...ERRORS },
});

/** Subscribe a device. */
export const putRoute = createRoute({
  method: "put",
  path: `${path}/subscriptions/{id}`,
  tags,
  summary: "Turn notifications on for a device, or renew its subscription",
  request: { params: IdParams, body: jsonBody(SubscriptionBody) },
  responses: { 200: json(Device, "The device"), ...ERRORS },
});

/** Remove a device. */
export const deleteRoute = createRoute({
  method: "delete",
  path: `${path}/subscriptions/{id}`,
  tags,
  summary: "Turn notifications off for a device",
  request: { params: IdParams },
  responses: { 204: { description: "Notifications are off" }, ...ERRORS },
});

/** Report a visible page. */
export const presenceRoute = createRoute({
  method: "put",
  path: `${path}/subscriptions/{id}/presence`,
  tags,
  summary:
    "Report whether a page of the device is visible. A report is valid for 75 s, and a device with a visible page isn't notified",
  request: { params: IdParams, body: jsonBody(PresenceBody) },
  responses: { 204: { description: "Presence recorded" }, ...ERRORS },
});

/** Report a used page of a device without notifications. */
export const pageRoute = createRoute({
  method: "put",
  path: `${path}/presence`,
  tags,
  summary: "Report whether a page of a device without notifications is used. A report is valid for 75 s",
  request: { body: jsonBody(PresenceBody) },
  responses: {
    200: json(
      z.object({
        needed: z.boolean().openapi({
          description: "True while notifications are on. Otherwise, pages can stop reporting",
        }),
      }),
      "Presence recorded",
    ),
    ...ERRORS,
  },
});

/** The notification server. */
export const getServerRoute = createRoute({
  method: "get",
  path: `${path}/server`,
  tags,
  summary: "The owner's ntfy or Gotify server",
  responses: {
    200: json(ServerResponse, "The server; the ETag is the version of the notification settings"),
    ...ERRORS,
  },
});

/** Set the notification server. */
export const putServerRoute = createRoute({
  method: "put",
  path: `${path}/server`,
  tags,
  summary: "Set or remove the ntfy or Gotify server",
  request: { headers: IfMatch, body: jsonBody(ServerBody) },
  responses: { 200: json(ServerResponse, "The server as it is now"), ...ERRORS },
});

/** Test the notification server. */
export const testServerRoute = createRoute({
  method: "post",
  path: `${path}/server/test`,
  tags,
  summary: "Send a test notification through the stored server",
  responses: { 204: { description: "Sent" }, ...ERRORS },
});

/** A device with notifications. */
export type PushDeviceJson = z.output<typeof Device>;

/** The notification server. */
export type NotifyServerJson = z.output<typeof ServerResponse>;
