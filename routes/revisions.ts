/** `/api/conversations/{id}/revisions`: what conversations were before their changes. */
import type { ConversationReader } from "../services/conversations/conversation_reader.ts";
import type { Revisions } from "../services/conversations/revisions/revisions.ts";
import { wholeAnswer } from "./conversations.ts";
import { preconditionOf } from "./http/etag.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/conversations.ts";

/** Routes of revisions. */
export function revisionRoutes(revisions: Revisions, reader: ConversationReader) {
  return newRouter()
    .openapi(schema.listRevisionsRoute, (c) => c.json(revisions.list(c.req.valid("param").id), 200))
    .openapi(schema.compareRevisionRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      return c.json(await revisions.compare(id, n), 200);
    })
    .openapi(schema.restoreRevisionRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      await revisions.restore(id, n, preconditionOf(c.req.valid("header")));
      return wholeAnswer(c, await reader.read(id), 200);
    });
}
