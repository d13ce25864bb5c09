/** `GET /healthz`: for health checks of containers and proxies; it says that the process answers, and nothing else. */
import { createRoute } from "@hono/zod-openapi";
import { newRouter } from "./router.ts";

const healthzRoute = createRoute({
  method: "get",
  path: "/healthz",
  tags: ["health"],
  summary: "Whether the process answers; open to everyone",
  responses: { 204: { description: "It does" } },
});

/** The route, outside /api and therefore outside authentication and the host allowlist. */
export function healthzRoutes() {
  return newRouter().openapi(healthzRoute, (c) => c.body(null, 204));
}
