/** `/api/memories` and `/api/recall`: notes for chats, proposed notes, and passages of other chats. */
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import type { Memory } from "../services/memories/memory.ts";
import type { Services } from "../services/services.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/memories.ts";
import { passRawResponse } from "./http/raw_response.ts";

/** Routes of notes. */
export function memoryRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const { memories } = await services.memory();
      const { scope: kind, id } = c.req.valid("query");
      return c.json(memories.list({ kind, id }).map(schema.toMemoryJson), 200);
    })
    .openapi(schema.proposalsRoute, async (c) => {
      const { proposals } = await services.memory();
      return c.json(proposals.list().map(schema.toProposalJson), 200);
    })
    .openapi(schema.decideRoute, async (c) => {
      const { proposals } = await services.memory();
      const memory = await proposals.decide(c.req.valid("param").id, schema.toDecision(c.req.valid("json")));
      return memory === undefined ? c.body(null, 204) : respond(c, memory, 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const { memories } = await services.memory();
      return respond(c, await memories.get(c.req.valid("param").id), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const { memories } = await services.memory();
      const expected = parsePrecondition(c.req.valid("header"));
      const saved = await memories.put(c.req.valid("param").id, schema.toMemoryInput(c.req.valid("json")), expected);
      return respond(c, saved, saved.isNew ? 201 : 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const { memories } = await services.memory();
      await memories.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.versionsRoute, async (c) => {
      const { memories } = await services.memory();
      return c.json((await memories.listVersions(c.req.valid("param").id)).map(schema.toMemoryVersionJson), 200);
    })
    .openapi(schema.restoreVersionRoute, async (c) => {
      const { memories } = await services.memory();
      const { id, n } = c.req.valid("param");
      return respond(c, await memories.restoreVersion(id, n, parsePrecondition(c.req.valid("header"))), 200);
    })
    .openapi(schema.recallRoute, async (c) => {
      const [search, { recall }] = await Promise.all([
        services.search(),
        import("../services/conversations/search/search.ts"),
      ]);
      const { q: query, conversation_id: conversationId } = c.req.valid("query");
      const client = getClientSignal(c);
      try {
        const found = await recall(search, { query, conversationId }, client);
        return c.json({ ...found, next_cursor: null }, 200);
      } catch (error) {
        // While the owner types, only the last search matters.
        if (client.aborted) return c.json({ items: [], next_cursor: null }, 200);
        throw error;
      }
    });
}

function respond(c: AppContext, memory: Memory, status: 200 | 201): never {
  return passRawResponse(c.json(schema.toMemoryJson(memory), status, { ETag: formatEtag(memory.version) }));
}
