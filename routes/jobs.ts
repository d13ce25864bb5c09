/** `/api/jobs`: seeing and cancelling what runs in the background, whatever its kind. */
import type { JobRunner } from "../services/jobs/job_runner.ts";
import { newRouter } from "./http/router.ts";
import { cancelRoute, getRoute, jobAnswer, listedJob, listRoute } from "./schemas/jobs.ts";

/** Routes of all jobs. */
export function jobRoutes(jobs: JobRunner) {
  return newRouter()
    .openapi(listRoute, (c) => c.json(jobs.list().map(listedJob), 200))
    .openapi(getRoute, (c) => c.json(jobAnswer(jobs.get(c.req.valid("param").id)), 200))
    .openapi(cancelRoute, async (c) => c.json(jobAnswer(await jobs.cancel(c.req.valid("param").id)), 200));
}
