/** `/api/tailnet`: the optional node in the owner's private network. */
import type { Tailnet } from "../services/tailnet/tailnet.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/tailnet.ts";

/** Routes of the node. */
export function tailnetRoutes(tailnet: Tailnet) {
  return newRouter()
    .openapi(schema.statusRoute, (c) => c.json(schema.toStatusJson(tailnet.status()), 200))
    .openapi(schema.enableRoute, async (c) => {
      const { hostname } = c.req.valid("json") ?? {};
      return c.json(schema.toStatusJson(await tailnet.enable(hostname ?? undefined)), 200);
    })
    .openapi(schema.disableRoute, async (c) => c.json(schema.toStatusJson(await tailnet.disable()), 200));
}
