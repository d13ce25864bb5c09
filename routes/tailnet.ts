/** `/api/tailnet`: the optional node in the owner's private network (tailnet). */
import type { Services } from "../services/services.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/tailnet.ts";

/** Routes of the node. */
export function tailnetRoutes(services: Services) {
  return createRouter()
    .openapi(schema.statusRoute, async (c) => {
      const tailnet = await services.tailnet();
      return c.json(schema.toStatusJson(tailnet.getStatus()), 200);
    })
    .openapi(schema.enableRoute, async (c) => {
      const tailnet = await services.tailnet();
      const { hostname } = c.req.valid("json") ?? {};
      return c.json(schema.toStatusJson(await tailnet.enable(hostname ?? undefined)), 200);
    })
    .openapi(schema.disableRoute, async (c) => {
      const tailnet = await services.tailnet();
      return c.json(schema.toStatusJson(await tailnet.disable()), 200);
    });
}
