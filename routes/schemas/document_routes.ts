/** What the routes of every document with a version and a file form have in common: lorebooks and presets. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, IdParams, IfMatch, json, jsonBody, namedFile } from "./common.ts";

/** How a document is spoken of in the API document. */
export interface DocumentWords<Path extends string> {
  /** Without a slash at its end: `/api/presets`. */
  path: Path;
  tags: string[];
  /** "preset". */
  noun: string;
  /** What a PUT does where there is one already. */
  change: "change" | "replace";
  /** What files are taken in. */
  importSummary: string;
}

/** Describes fetching, saving, removing and taking in one document. */
export function documentRoutes<Path extends string, Answer extends z.ZodType, Body extends z.ZodType>(
  { path, tags, noun, change, importSummary }: DocumentWords<Path>,
  { answer, body }: { answer: Answer; body: Body },
) {
  const one = `${path}/{id}` as const;
  return {
    getRoute: createRoute({
      method: "get",
      path: one,
      tags,
      summary: `Fetch one ${noun}`,
      request: { params: IdParams },
      responses: { 200: json(answer, `The ${noun}; its ETag is its version`), ...ERRORS },
    }),
    putRoute: createRoute({
      method: "put",
      path: one,
      tags,
      summary: `Create or ${change} a ${noun}`,
      request: { params: IdParams, headers: IfMatch, body: jsonBody(body) },
      responses: { 200: json(answer, "Saved"), 201: json(answer, "Created"), ...ERRORS },
    }),
    deleteRoute: createRoute({
      method: "delete",
      path: one,
      tags,
      summary: `Move a ${noun} to the trash`,
      request: { params: IdParams, headers: IfMatch },
      responses: { 204: { description: "Removed" }, ...ERRORS },
    }),
    importRoute: createRoute({
      method: "post",
      path: `${path}/import` as const,
      tags,
      summary: importSummary,
      request: { body: namedFile },
      responses: { 201: json(answer, "Imported"), ...ERRORS },
    }),
  };
}

/** A document as a file of some other program's. */
export const documentFile = json(z.record(z.string(), z.unknown()), "The file");
