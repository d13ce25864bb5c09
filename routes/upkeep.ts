/** `/api/data` and `/api/findings`: room, backups, and what is wrong with the installation. */
import type { Upkeep } from "../services/upkeep/upkeep.ts";
import { newRouter } from "./router.ts";
import { dataOf, dataRoute, findingsRoute } from "./schemas/upkeep.ts";

/** Routes of upkeep. */
export function upkeepRoutes(upkeep: Upkeep) {
  return newRouter()
    .openapi(dataRoute, async (c) => c.json(dataOf(await upkeep.data()), 200))
    .openapi(findingsRoute, async (c) => c.json(await upkeep.findings(), 200));
}
