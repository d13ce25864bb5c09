/** ComfyUI's workflows on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import type { WorkflowEntry } from "../../services/image_generation/comfyui/workflows.ts";
import { ERRORS, Id, IdParams, IfMatch, json, jsonBody, Time } from "./common.ts";
import { restoreVersionRouteOf, VersionNumber, versionRouteOf, versionsRouteOf } from "./versions.ts";

const Workflow = z.record(z.string(), z.unknown()).openapi("Workflow", {
  description: "ComfyUI's API format: nodes by id",
});

const WorkflowListed = z.object({
  id: Id,
  name: z.string(),
  updated_at: Time.optional(),
  placeholders: z.array(z.string()),
  problem: z.string().optional().openapi({ description: "Why it cannot be used" }),
  builtin: z.boolean().optional(),
}).openapi("WorkflowListed");

/** Gives an entry of the list of workflows its form on the wire. */
export function listedOf(entry: WorkflowEntry): z.infer<typeof WorkflowListed> {
  const { id, name, updatedAtMs, placeholders, problem } = entry;
  if (updatedAtMs === undefined) return { id, name, placeholders, problem, builtin: true };
  return { id, name, placeholders, problem, updated_at: new Date(updatedAtMs).toISOString() };
}

const path = "/api/image/workflows";
const tags = ["Images"];

/** All workflows. */
export const workflowsRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "The workflows in <datadir>/workflows, and the starter",
  responses: { 200: json(z.array(WorkflowListed), "By name"), ...ERRORS },
});

/** One workflow. */
export const workflowRoute = createRoute({
  method: "get",
  path: `${path}/{id}`,
  tags,
  summary: "One workflow",
  request: { params: IdParams },
  responses: { 200: json(Workflow, "The workflow; the ETag is its version"), ...ERRORS },
});

/** Save a workflow. */
export const putWorkflowRoute = createRoute({
  method: "put",
  path: `${path}/{id}`,
  tags,
  summary: "Save a workflow in API format",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(z.unknown()) },
  responses: { 200: json(Workflow, "Saved"), 201: json(Workflow, "Created"), ...ERRORS },
});

/** Remove a workflow. */
export const deleteWorkflowRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Move a workflow to the trash",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

const versioned = {
  path: `${path}/{id}`,
  what: "a workflow",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  answer: Workflow,
};

/** Earlier versions. */
export const workflowVersionsRoute = versionsRouteOf(versioned);

/** One of them. */
export const workflowVersionRoute = versionRouteOf(versioned, Workflow);

/** Restore one. */
export const restoreWorkflowVersionRoute = restoreVersionRouteOf(versioned);

/** A ComfyUI workflow in the list. */
export type WorkflowJson = z.output<typeof WorkflowListed>;
