/** `/api/conversations/{id}/fork` and `…/branches`: copies of conversations. */
import type { ConversationReader } from "../services/conversations/conversation_reader.ts";
import type { Forks } from "../services/conversations/forks.ts";
import { wholeAnswer } from "./conversations.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/conversations.ts";

/** Routes of forks. */
export function forkRoutes(forks: Forks, reader: ConversationReader) {
  return newRouter()
    .openapi(schema.forkRoute, async (c) => {
      const id = await forks.fork(c.req.valid("param").id, c.req.valid("json").message_id);
      return wholeAnswer(c, await reader.read(id), 201);
    })
    .openapi(schema.branchesRoute, async (c) => c.json(await forks.branches(c.req.valid("param").id), 200));
}
