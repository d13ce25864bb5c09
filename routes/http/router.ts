/** The router every resource builds on: a request that fails its schema becomes an AppError before the handler runs. */
import { OpenAPIHono, type z } from "@hono/zod-openapi";
import type { Env } from "../../middleware/env.ts";
import { AppError, type ErrorIssue } from "../../services/errors.ts";

/** Issues named in one answer; a body of a million wrong items needs no million sentences. */
const MAX_ISSUES = 20;

/** Where the part of a request that failed came from, by Hono's name for it. */
const PART_NAMES: Record<string, string> = {
  json: "body",
  form: "body",
  query: "query",
  param: "path",
  header: "headers",
  cookie: "cookies",
};

/** The router of one resource, or of all. */
export type Router = OpenAPIHono<Env>;

/**
 * Makes an empty router.
 *
 * Declare paths whole (`"/api/connections/{id}"`) and bodies `required: true`: an optional body without a content type
 * is not checked at all. Larger body limits than the default are in routes/body_limits.ts.
 */
export function createRouter(): Router {
  return new OpenAPIHono<Env>({
    defaultHook: (result) => {
      if (!result.success) throw createSchemaError(result.target, result.error.issues);
    },
  });
}

/** Turns the reasons zod gives into the error a client sees. */
export function createSchemaError(target: string, issues: readonly z.core.$ZodIssue[]): AppError {
  const list: ErrorIssue[] = issues.slice(0, MAX_ISSUES).map(({ path, message }) => ({
    path: path.map(String).join("."),
    message,
  }));
  const part = PART_NAMES[target] ?? target;
  const first = list[0];
  const detail = first === undefined ? "" : `: ${first.path === "" ? "" : `${first.path}: `}${first.message}`;
  return new AppError("invalid_request", `The ${part} of the request doesn't match the API${detail}`, {
    issues: list,
  });
}
