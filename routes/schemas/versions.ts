/**
 * Routes that several resources share: earlier versions, and documents with a version and a file format (lorebooks,
 * presets).
 */
import { createRoute, z } from "@hono/zod-openapi";
import { type Version, VERSION_CAUSES } from "../../services/storage/versions.ts";
import { ERRORS, IdParams, IfMatch, json, jsonBody, namedFile, Time } from "./common.ts";

const VersionResponse = z.object({
  n: z.number().int().min(1),
  created_at: Time.openapi({ description: "When this version was replaced" }),
  cause: z.enum(VERSION_CAUSES).openapi({ description: "Kind of change that replaced this version" }),
}).openapi("Version");

/** Number of a version in a path. */
export const VersionNumber = z.coerce.number().int().min(1);

/** Converts a version to its JSON form. */
export function toVersionJson({ n, createdAtMs, cause }: Version): z.infer<typeof VersionResponse> {
  return { n, created_at: new Date(createdAtMs).toISOString(), cause };
}

/** Properties of one resource for the shared routes. */
interface Resource<Params extends z.ZodObject, Numbered extends z.ZodObject, Output extends z.ZodType> {
  /** Path with parameters: `/api/personas/{id}`. */
  path: string;
  /** Noun with its article: "a persona". */
  what: string;
  tags: string[];
  params: Params;
  /** `params` and the number `n` of a version. */
  numbered: Numbered;
  response: Output;
}

/** Describes the route that lists the earlier versions of a resource. */
export function createVersionsRoute<Params extends z.ZodObject>(
  { path, what, tags, params }: Resource<Params, z.ZodObject, z.ZodType>,
) {
  return createRoute({
    method: "get",
    path: `${path}/versions`,
    tags,
    summary: `List the earlier versions of ${what}, newest first`,
    request: { params },
    responses: { 200: json(z.array(VersionResponse), "At most 50, from the last 30 days"), ...ERRORS },
  });
}

/** Describes the route of one earlier version. @param detail Schema of its content */
export function createVersionRoute<Numbered extends z.ZodObject, Detail extends z.ZodType>(
  { path, what, tags, numbered }: Resource<z.ZodObject, Numbered, z.ZodType>,
  detail: Detail,
) {
  return createRoute({
    method: "get",
    path: `${path}/versions/{n}`,
    tags,
    summary: `Get an earlier version of ${what}`,
    request: { params: numbered },
    responses: { 200: json(detail, "The version"), ...ERRORS },
  });
}

/** Describes the route of the image of an earlier version. */
export function createVersionAvatarRoute<Numbered extends z.ZodObject>(
  { path, what, tags, numbered }: Resource<z.ZodObject, Numbered, z.ZodType>,
) {
  return createRoute({
    method: "get",
    path: `${path}/versions/{n}/avatar`,
    tags,
    summary: `Get the image of an earlier version of ${what}`,
    request: {
      params: numbered,
      query: z.object({
        w: z.coerce.number().int().min(16).max(2048).optional().openapi({
          description: "Width in pixels; a smaller image isn't enlarged",
        }),
      }),
    },
    responses: {
      200: {
        description: "The image",
        content: { "image/png": { schema: z.string().openapi({ format: "binary" }) } },
      },
      ...ERRORS,
    },
  });
}

/** Describes the route that restores an earlier version. */
export function createRestoreVersionRoute<Numbered extends z.ZodObject, Output extends z.ZodType>(
  { path, what, tags, numbered, response }: Resource<z.ZodObject, Numbered, Output>,
) {
  return createRoute({
    method: "post",
    path: `${path}/versions/{n}/restore`,
    tags,
    summary: `Restore an earlier version of ${what}; the replaced state becomes a version`,
    request: { params: numbered, headers: IfMatch },
    responses: { 200: json(response, "The restored resource; the ETag is its version"), ...ERRORS },
  });
}

/** An earlier version of a resource. */
export type VersionJson = z.output<typeof VersionResponse>;

/** Words for a document in the API document. */
export interface DocumentWords<Path extends string> {
  /** Path without a slash at its end: `/api/presets`. */
  path: Path;
  tags: string[];
  /** "preset". */
  noun: string;
  /** What a PUT does if the document exists. */
  change: "change" | "replace";
  /** Summary of the import, which says which files it reads. */
  importSummary: string;
}

/** Describes the routes that fetch, save, delete and import documents. */
export function versionedDocumentRoutes<Path extends string, Output extends z.ZodType, Body extends z.ZodType>(
  { path, tags, noun, change, importSummary }: DocumentWords<Path>,
  { response, body }: { response: Output; body: Body },
) {
  const one = `${path}/{id}` as const;
  return {
    getRoute: createRoute({
      method: "get",
      path: one,
      tags,
      summary: `Get a ${noun}`,
      request: { params: IdParams },
      responses: { 200: json(response, `The ${noun}; its ETag is its version`), ...ERRORS },
    }),
    putRoute: createRoute({
      method: "put",
      path: one,
      tags,
      summary: `Create or ${change} a ${noun}`,
      request: { params: IdParams, headers: IfMatch, body: jsonBody(body) },
      responses: { 200: json(response, "Saved"), 201: json(response, "Created"), ...ERRORS },
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
      responses: { 201: json(response, "Imported"), ...ERRORS },
    }),
  };
}

/** A document in the file format of another program. */
export const documentFile = json(z.record(z.string(), z.unknown()), "The file");
