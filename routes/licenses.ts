/** `/api/licences`: whose work is inside, and under which terms. */
import { licenceNotices } from "../services/diagnostics/license_notices.ts";
import { newRouter } from "./http/router.ts";
import { licencesRoute } from "./schemas/data.ts";

/** Routes of the licences. */
export function licenceRoutes() {
  return newRouter().openapi(licencesRoute, async (c) => c.json(await licenceNotices(), 200));
}
