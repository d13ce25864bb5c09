/** `/api/licences`: whose work is inside, and under which terms. */
import { licenceNotices } from "../services/licence_notices.ts";
import { newRouter } from "./router.ts";
import { licencesRoute } from "./schemas/licences.ts";

/** Routes of the licences. */
export function licenceRoutes() {
  return newRouter().openapi(licencesRoute, async (c) => c.json(await licenceNotices(), 200));
}
