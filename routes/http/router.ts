/** The router of all resources: a request that fails its schema becomes an AppError before the handler runs. */
import { OpenAPIHono, type z } from "@hono/zod-openapi";
import type { Env } from "../../middleware/env.ts";
import { AppError, type ErrorIssue } from "../../services/errors.ts";

/** Maximum number of issues in one error, because a body may have a million invalid items. */
const MAX_ISSUES = 20;

/** Names of request parts in messages, by Hono's name. */
const PART_NAMES: Record<string, string> = {
  json: "body",
  form: "body",
  query: "query",
  param: "path",
  header: "headers",
  cookie: "cookies",
};

/** The router of one resource or of the whole API. */
export type Router = OpenAPIHono<Env>;

/**
 * Creates an empty router.
 *
 * Declare full paths (`"/api/connections/{id}"`) and bodies with `required: true`: an optional body without a content
 * type isn't validated at all. Body limits above the default are in routes/http/route_facts.ts.
 */
export function createRouter(): Router {
  return new OpenAPIHono<Env>({
    defaultHook: (result) => {
      if (!result.success) throw createSchemaError(result.target, result.error.issues);
    },
  });
}

/** Checks a body that the router couldn't check because it was too long. @throws {AppError} `invalid_request` */
export function parseBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const { data, error } = schema.safeParse(body);
  if (error !== undefined) throw createSchemaError("json", error.issues);
  return data as z.output<T>;
}

/** Converts zod's issues to the error that a client gets. */
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
