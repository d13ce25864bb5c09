/** `GET /healthz`: for health checks of containers and proxies; it says that the process answers, and nothing else. */
import { newRouter } from "./router.ts";

/** The route, outside /api and therefore outside authentication and the host allowlist. */
export function healthzRoutes() {
  const router = newRouter();
  router.get("/healthz", (c) => c.body(null, 204));
  return router;
}
