/** `/api/tools/web`: web search and page reading, built in as tools. */
import { clientSignal } from "../middleware/env.ts";
import type { Services } from "../services/services.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/web_tools.ts";

/** Routes of the built-in web tools. */
export function webToolRoutes(services: Services) {
  return newRouter()
    .openapi(schema.configRoute, async (c) => {
      const web = await services.webTools();
      const config = web.settings.get();
      c.header("ETag", etag(config.version));
      return c.json(schema.toWebConfigJson(config, web.list()), 200);
    })
    .openapi(schema.putConfigRoute, async (c) => {
      const web = await services.webTools();
      const expected = preconditionOf(c.req.valid("header"));
      const config = await web.settings.put(schema.toWebConfigInput(c.req.valid("json")), expected);
      c.header("ETag", etag(config.version));
      return c.json(schema.toWebConfigJson(config, web.list()), 200);
    })
    .openapi(schema.testRoute, async (c) => {
      const web = await services.webTools();
      const { search_url } = c.req.valid("json");
      return c.json(schema.toWebTestJson(await web.test(search_url, clientSignal(c))), 200);
    })
    .openapi(schema.permissionRoute, async (c) => {
      const web = await services.webTools();
      const { name } = c.req.valid("param");
      await web.changePermission(name, c.req.valid("json").permission);
      return c.json(schema.toWebToolJson(web.list().find(({ tool }) => tool.name === name)!), 200);
    });
}
