/** `/api/jobs`: listing and canceling background jobs of all kinds. */
import type { Services } from "../services/services.ts";
import { createRouter } from "./http/router.ts";
import { cancelRoute, getRoute, listRoute, toJobJson, toListedJobJson } from "./schemas/jobs.ts";

/** Routes of all jobs. */
export function jobRoutes({ jobs }: Services) {
  return createRouter()
    .openapi(listRoute, (c) => c.json(jobs.list().map(toListedJobJson), 200))
    .openapi(getRoute, (c) => c.json(toJobJson(jobs.get(c.req.valid("param").id)), 200))
    .openapi(cancelRoute, async (c) => c.json(toJobJson(await jobs.cancel(c.req.valid("param").id)), 200));
}
