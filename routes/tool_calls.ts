/** `/api/tools/calls`: what tools were called with, and who allowed it. */
import type { Services } from "../services/services.ts";
import { newRouter } from "./http/router.ts";
import { rawAnswer } from "./server/raw_response.ts";
import { callListRoute, toListedCallJson } from "./schemas/tool_calls.ts";

/** Routes of the list of calls. */
export function toolCallRoutes(services: Services) {
  return newRouter().openapi(callListRoute, async (c) => {
    const { items, nextCursor } = (await services.toolCalls()).list(c.req.valid("query").cursor);
    const next_cursor = nextCursor === undefined ? null : String(nextCursor);
    return rawAnswer(c.json({ items: items.map(toListedCallJson), next_cursor }, 200));
  });
}
