/** `/api/models/…`: models on the hub and on disk, downloads, and the local model server. `GET /api/models` is in health.ts. */
import type { Services } from "../services/services.ts";
import { getClientSignal } from "../middleware/env.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/models.ts";

/** Routes of models. */
export function modelRoutes(services: Services) {
  return createRouter().route("/", libraryRoutes(services)).route("/", runnerRoutes(services));
}

/** Routes of the hub, downloads, and models on disk. */
function libraryRoutes(services: Services) {
  return createRouter()
    .openapi(schema.browseRoute, async (c) => {
      const models = await services.models();
      const { q, format, cursor } = c.req.valid("query");
      const { items, nextCursor } = await models.search({ query: q.trim(), format, cursor }, getClientSignal(c));
      return c.json({ items: items.map(schema.toFoundJson), next_cursor: nextCursor }, 200);
    })
    .openapi(schema.filesRoute, async (c) => {
      const models = await services.models();
      const { repo, format } = c.req.valid("query");
      return c.json(schema.toListingJson(await models.listFiles(repo, format, getClientSignal(c))), 200);
    })
    .openapi(schema.recommendedRoute, async (c) => {
      const models = await services.models();
      return c.json(schema.toRecommendedJson(await models.recommend()), 200);
    })
    .openapi(schema.downloadRoute, async (c) => {
      const models = await services.models();
      const { repo, format, file } = c.req.valid("json");
      const download = await models.downloads.start({ repo, format, file: file ?? undefined }, getClientSignal(c));
      return c.json(schema.toDownloadJson(download), 202);
    })
    .openapi(schema.downloadsRoute, async (c) => {
      const models = await services.models();
      return c.json(models.downloads.list().map(schema.toDownloadJson), 200);
    })
    .openapi(schema.cancelRoute, async (c) => {
      const models = await services.models();
      return c.json(schema.toDownloadJson(await models.downloads.cancel(c.req.valid("param").id)), 200);
    })
    .openapi(schema.localRoute, async (c) => {
      const models = await services.models();
      return c.json((await models.local.list()).map(schema.toLocalModelJson), 200);
    })
    .openapi(schema.deleteLocalRoute, async (c) => {
      const models = await services.models();
      await models.remove(c.req.valid("query").path);
      return c.body(null, 204);
    });
}

/** Routes of the model server that Parlor runs. */
function runnerRoutes(services: Services) {
  return createRouter()
    .openapi(schema.runRoute, async (c) => {
      const models = await services.models();
      const body = c.req.valid("json");
      const status = await models.runner.run(schema.toRunRequest(body), { activate: body.activate ?? false });
      return c.json(schema.toRunnerJson(status), 202);
    })
    .openapi(schema.stopRunnerRoute, async (c) => {
      const models = await services.models();
      return c.json(schema.toRunnerJson(await models.runner.stop()), 200);
    })
    .openapi(schema.runnerRoute, async (c) => {
      const models = await services.models();
      const { path } = c.req.valid("query");
      const command = path === undefined ? undefined : await models.runner.createCommand(path);
      return c.json(schema.toRunnerJson(await models.runner.getStatus(), command), 200);
    });
}
