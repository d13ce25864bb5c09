/** `/api/setup`: the first-run flag. */
import type { Setup } from "../services/settings/setup.ts";
import { newRouter } from "./http/router.ts";
import { completeSetupRoute, setupStatusRoute } from "./schemas/settings.ts";

/** Routes of the first-run flag. */
export function setupRoutes(setup: Setup) {
  const status = () => ({
    completed: setup.isCompleted(),
    in_container: setup.environment.isContainer,
    discover_hosts: [...setup.environment.discoverHosts],
  });
  return newRouter()
    .openapi(setupStatusRoute, (c) => c.json(status(), 200))
    .openapi(completeSetupRoute, async (c) => {
      await setup.complete();
      return c.json(status(), 200);
    });
}
