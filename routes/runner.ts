/** `/api/models/local/run`, `stop` and `runner`: the model that Parlor itself runs. */
import type { Runner } from "../services/models/runner/runner.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/models.ts";

/** Routes of the runner. */
export function runnerRoutes(runner: Runner) {
  return newRouter()
    .openapi(schema.runRoute, async (c) => {
      const body = c.req.valid("json");
      const status = await runner.run(schema.toRunRequest(body), { activate: body.activate ?? false });
      return c.json(schema.toRunnerJson(status), 202);
    })
    .openapi(schema.stopRunnerRoute, async (c) => c.json(schema.toRunnerJson(await runner.stop()), 200))
    .openapi(schema.runnerRoute, async (c) => {
      const { path } = c.req.valid("query");
      const command = path === undefined ? undefined : await runner.commandFor(path);
      return c.json(schema.toRunnerJson(await runner.status(), command), 200);
    });
}
