/** `/api/models/…`: the hub's models, their downloads, and those on disk. `GET /api/models` itself is in health.ts. */
import { clientSignal } from "../middleware/env.ts";
import type { Models } from "../services/models/models.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/models.ts";

/** Routes of the model browser. */
export function modelRoutes(models: Models) {
  return newRouter()
    .openapi(schema.browseRoute, async (c) => {
      const { q, format, cursor } = c.req.valid("query");
      const { items, nextCursor } = await models.search({ query: q.trim(), format, cursor }, clientSignal(c));
      return c.json({ items: items.map(schema.toFoundJson), next_cursor: nextCursor }, 200);
    })
    .openapi(schema.filesRoute, async (c) => {
      const { repo, format } = c.req.valid("query");
      return c.json(schema.toListingJson(await models.files(repo, format, clientSignal(c))), 200);
    })
    .openapi(schema.downloadRoute, async (c) => {
      const { repo, format, file } = c.req.valid("json");
      const download = await models.downloads.start({ repo, format, file: file ?? undefined }, clientSignal(c));
      return c.json(schema.toDownloadJson(download), 202);
    })
    .openapi(schema.downloadsRoute, (c) => c.json(models.downloads.list().map(schema.toDownloadJson), 200))
    .openapi(
      schema.cancelRoute,
      async (c) => c.json(schema.toDownloadJson(await models.downloads.cancel(c.req.valid("param").id)), 200),
    )
    .openapi(schema.localRoute, async (c) => c.json((await models.local.list()).map(schema.toLocalModelJson), 200))
    .openapi(schema.deleteLocalRoute, async (c) => {
      await models.remove(c.req.valid("query").path);
      return c.body(null, 204);
    });
}
