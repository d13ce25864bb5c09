/** Background jobs in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import type { JobSnapshot } from "../../services/jobs/job_runner.ts";
import { isJsonObject } from "../../services/json/type_guards.ts";
import { ERRORS, IdParams, json, Time } from "./common.ts";

/** A background job. */
export const Job = z.object({
  id: z.string(),
  kind: z.string(),
  title: z.string(),
  state: z.enum(["queued", "running", "verifying", "done", "failed", "cancelled"]),
  progress: z.object({
    done: z.number(),
    total: z.number().nullable().openapi({ description: "null while it is unknown" }),
    unit: z.string().openapi({ example: "bytes" }),
  }).nullable(),
  detail: z.unknown().optional().openapi({ description: "Details specific to the kind of job" }),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  created_at: Time,
  updated_at: Time,
}).openapi("Job");

/** `GET /api/jobs` */
export const listRoute = createRoute({
  method: "get",
  path: "/api/jobs",
  tags: ["jobs"],
  summary: "List background jobs, newest first",
  responses: {
    200: json(
      z.array(Job),
      "Running, waiting and recently ended jobs; `detail` contains only fields that aren't lists or objects",
    ),
    ...ERRORS,
  },
});

/** `GET /api/jobs/{id}` */
export const getRoute = createRoute({
  method: "get",
  path: "/api/jobs/{id}",
  tags: ["jobs"],
  summary: "Get a background job",
  request: { params: IdParams },
  responses: { 200: json(Job, "The job"), ...ERRORS },
});

/** `POST /api/jobs/{id}/cancel` */
export const cancelRoute = createRoute({
  method: "post",
  path: "/api/jobs/{id}/cancel",
  tags: ["jobs"],
  summary: "Cancel a job; responds after its cleanup; 409 if it has ended or its result is being verified",
  request: { params: IdParams },
  responses: { 200: json(Job, "The canceled job"), ...ERRORS },
});

/**
 * Converts a job to its JSON form in the list of jobs, where `detail` contains only simple values: the report of an
 * import has a thousand lines, and clients fetch the list with every progress of every job.
 */
export function toListedJobJson(job: JobSnapshot): z.infer<typeof Job> {
  const { detail, ...same } = toJobJson(job);
  if (!isJsonObject(detail)) return { ...same, detail };
  return {
    ...same,
    detail: Object.fromEntries(Object.entries(detail).filter(([, value]) => typeof value !== "object")),
  };
}

/** Converts a job to its JSON form. */
export function toJobJson(job: JobSnapshot): z.infer<typeof Job> {
  const { createdAtMs, updatedAtMs, key: _, ...same } = job;
  return {
    ...same,
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(updatedAtMs).toISOString(),
  };
}

/** A background job. */
export type JobJson = z.output<typeof Job>;
