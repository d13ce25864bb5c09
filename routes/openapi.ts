/** `GET /api/openapi.json`: the reference of the API, made from the very schemas that check its requests. */
import { createRoute, z } from "@hono/zod-openapi";
import { newRouter, type Router } from "./router.ts";
import { ERRORS, json } from "./schemas/common.ts";

const documentRoute = createRoute({
  method: "get",
  path: "/api/openapi.json",
  tags: ["document"],
  summary: "This document",
  responses: { 200: json(z.looseObject({ openapi: z.string() }), "OpenAPI 3.1"), ...ERRORS },
});

/**
 * @param all The router that holds every route once the first request comes.
 * @param version Parlor's version.
 */
export function openapiRoutes(all: () => Router, version: string) {
  let text: string | undefined;
  return newRouter().openapi(documentRoute, (c) => {
    text ??= JSON.stringify(openapiDocument(all(), version));
    return c.body(text, 200, { "Content-Type": "application/json" }) as never;
  });
}

/** Makes the document of the routes mounted so far. */
export function openapiDocument(router: Router, version: string) {
  return router.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Parlor", version, description: "A personal chat front end for language models." },
  });
}
