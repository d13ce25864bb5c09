/** `/api/push`: devices that get a notification when a reply is ready, and the owner's notification server. */
import { getClientSignal, type Identity } from "../middleware/env.ts";
import type { DeviceAccess } from "../services/push/push.ts";
import type { Services } from "../services/services.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/push.ts";

/** Routes of notifications. */
export function pushRoutes(services: Services) {
  return createRouter()
    .openapi(schema.keyRoute, async (c) => {
      const push = await services.push();
      return c.json({ public_key: await push.getPublicKey() }, 200);
    })
    .openapi(schema.listRoute, async (c) => {
      const push = await services.push();
      return c.json((await push.list()).map(schema.toDeviceJson), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const push = await services.push();
      const { id } = c.req.valid("param");
      const device = await push.put(id, c.req.valid("json"), toDeviceAccess(c.get("identity")));
      return c.json(schema.toDeviceJson(device), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const push = await services.push();
      await push.remove(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.presenceRoute, async (c) => {
      const push = await services.push();
      push.recordPresence(c.req.valid("param").id, schema.toPresence(c.req.valid("json")));
      return c.body(null, 204);
    })
    .openapi(schema.pageRoute, async (c) => {
      const push = await services.push();
      return c.json({ needed: push.recordPagePresence(schema.toPresence(c.req.valid("json"))) }, 200);
    })
    .openapi(schema.getServerRoute, async (c) => {
      const { server, version } = (await services.push()).getServer();
      c.header("ETag", formatEtag(version));
      return c.json(schema.toPushServerJson(server), 200);
    })
    .openapi(schema.putServerRoute, async (c) => {
      const push = await services.push();
      const { kind, url, token } = c.req.valid("json");
      const expected = parsePrecondition(c.req.valid("header"));
      await push.putServer(url === null ? null : { kind, url, token }, expected);
      const { server, version } = push.getServer();
      c.header("ETag", formatEtag(version));
      return c.json(schema.toPushServerJson(server), 200);
    })
    .openapi(schema.testServerRoute, async (c) => {
      await (await services.push()).testServer(getClientSignal(c));
      return c.body(null, 204);
    });
}

/** Revoking what a device signed in with ends its notifications, too. */
function toDeviceAccess(identity: Identity): DeviceAccess {
  if (identity.method === "session") return { credentialId: identity.credentialId };
  return identity.method === "token" ? { tokenId: identity.tokenId } : {};
}
