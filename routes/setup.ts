/** `/api/setup`: the first-run flag. */
import type { Setup } from "../services/setup/setup.ts";
import { newRouter } from "./router.ts";
import { completeRoute, statusRoute } from "./schemas/setup.ts";

/** Routes of the first-run flag. */
export function setupRoutes(setup: Setup) {
  return newRouter()
    .openapi(statusRoute, (c) => c.json({ completed: setup.isCompleted() }, 200))
    .openapi(completeRoute, async (c) => {
      await setup.complete();
      return c.json({ completed: true }, 200);
    });
}
