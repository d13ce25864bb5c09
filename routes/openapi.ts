/** `GET /api/openapi.json`: the reference of the API, made from the very schemas that check its requests. */
import { createRoute, z } from "@hono/zod-openapi";
import { healthzRoute } from "./healthz.ts";
import { newRouter, type Router } from "./http/router.ts";
import { ERRORS, json } from "./schemas/common.ts";

const documentRoute = createRoute({
  method: "get",
  path: "/api/openapi.json",
  tags: ["document"],
  summary: "This document",
  responses: { 200: json(z.looseObject({ openapi: z.string() }), "OpenAPI 3.1"), ...ERRORS },
});

/**
 * @param all Gives the router that holds every route; those not asked for yet are loaded for it.
 * @param version Parlor's version.
 */
export function openapiRoutes(all: () => Promise<Router>, version: string) {
  let text: string | undefined;
  return newRouter().openapi(documentRoute, async (c) => {
    text ??= JSON.stringify(openapiDocument(await all(), version));
    return c.body(text, 200, { "Content-Type": "application/json" }) as never;
  });
}

/** Mounts the routes of all parts, and what is declared without a schema. */
export function allRoutes(routers: readonly Router[]): Router {
  const all = newRouter();
  all.openAPIRegistry.registerPath(healthzRoute);
  for (const router of routers) all.route("/", router);
  return all;
}

/** Makes the document of the routes mounted so far. */
function openapiDocument(router: Router, version: string) {
  return router.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Parlor", version, description: "A personal chat front end for language models." },
  });
}
