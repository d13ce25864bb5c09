/** `/api/usage`: what models answered, how fast and at what cost, per day and per chat. */
import type { Services } from "../services/services.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/usage.ts";

/** Routes of usage. */
export function usageRoutes(services: Services) {
  return createRouter()
    .openapi(schema.getRoute, async (c) => {
      const usage = await services.usage();
      const { days, time_zone: timeZone } = c.req.valid("query");
      return c.json(schema.toUsageJson(await usage.report({ days, timeZone }), usage.listPrices()), 200);
    })
    .openapi(schema.clearRoute, async (c) => {
      await (await services.usage()).clear();
      return c.body(null, 204);
    })
    .openapi(schema.pricesRoute, async (c) => {
      return c.json((await services.usage()).listPrices(), 200);
    })
    .openapi(schema.setPriceRoute, async (c) => {
      const { connection_id, model, price } = c.req.valid("json");
      return c.json(await (await services.usage()).setPrice({ connection_id, model }, price), 200);
    })
    .openapi(schema.chatRoute, async (c) => {
      const { id } = c.req.valid("param");
      (await services.conversations()).store.get(id);
      const usage = await services.usage();
      return c.json(schema.toChatUsageJson(await usage.readChat(id), usage.listPrices()), 200);
    });
}
