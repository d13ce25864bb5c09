/** `/api/trash`: what was removed in the last days and can come back. */
import type { Services } from "../services/services.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/trash.ts";

/** Routes of the trash. */
export function trashRoutes({ trash }: Services) {
  return newRouter()
    .openapi(schema.listRoute, (c) => c.json(trash.list(), 200))
    .openapi(schema.restoreRoute, async (c) => {
      await trash.restore(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.emptyRoute, async (c) => {
      await trash.empty();
      return c.body(null, 204);
    });
}
