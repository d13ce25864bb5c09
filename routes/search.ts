/** `/api/search`: finding messages and titles. */
import { clientSignal } from "../middleware/env.ts";
import type { Search } from "../services/conversations/search/search.ts";
import { newRouter } from "./http/router.ts";
import { searchRoute } from "./schemas/search.ts";

/** Route of the search. */
export function searchRoutes(search: Search) {
  return newRouter().openapi(searchRoute, async (c) => {
    const { q, conversation_id: conversationId, character_id: characterId, cursor } = c.req.valid("query");
    const client = clientSignal(c);
    try {
      return c.json(await search.search({ query: q, conversationId, characterId, cursor }, client), 200);
    } catch (error) {
      // Whoever types on leaves every search but the last: that is no defect, and nobody reads this answer.
      if (client.aborted) return c.json({ items: [], next_cursor: null }, 200);
      throw error;
    }
  });
}
