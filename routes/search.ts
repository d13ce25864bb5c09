/** `/api/search`: finding messages and titles. */
import type { Services } from "../services/services.ts";
import { clientSignal } from "../middleware/env.ts";
import { newRouter } from "./http/router.ts";
import { searchRoute } from "./schemas/search.ts";

/** Route of the search. */
export function searchRoutes(services: Services) {
  return newRouter().openapi(searchRoute, async (c) => {
    const search = await services.search();
    const { q, conversation_id: conversationId, character_id: characterId, cursor } = c.req.valid("query");
    const client = clientSignal(c);
    try {
      return c.json(await search.search({ query: q, conversationId, characterId, cursor }, client), 200);
    } catch (error) {
      // Typing on cancels the search before, so nobody reads this response.
      if (client.aborted) return c.json({ items: [], next_cursor: null }, 200);
      throw error;
    }
  });
}
