/** `/api/push`: devices that get a notification when a reply is ready, and the owner's notification server. */
import { getClientSignal } from "../middleware/env.ts";
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
      return c.json(push.list().map(schema.toDeviceJson), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const push = await services.push();
      const { id } = c.req.valid("param");
      return c.json(schema.toDeviceJson(await push.put(id, c.req.valid("json"))), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const push = await services.push();
      await push.remove(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.presenceRoute, async (c) => {
      const push = await services.push();
      const { page, visible } = c.req.valid("json");
      push.notePresence(c.req.valid("param").id, page, visible);
      return c.body(null, 204);
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
