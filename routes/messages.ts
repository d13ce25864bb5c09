/** `/api/conversations/{id}/messages`: the messages of a conversation, in pages and one by one. */
import type { AppContext } from "../middleware/env.ts";
import type { Messages } from "../services/conversations/messages.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { rawAnswer } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/messages.ts";

/** Routes of messages and their texts. */
export function messageRoutes(messages: Messages) {
  /** Messages bear the revision of their conversation, which is what their If-Match demands. */
  const tagged = (c: AppContext, revision: number) => c.header("ETag", etag(revision));
  return newRouter()
    .openapi(schema.pageRoute, async (c) => {
      const { id } = c.req.valid("param");
      const { before, limit, variants } = c.req.valid("query");
      const page = messages.page(id, limit, before);
      tagged(c, messages.revisionOf(id));
      return rawAnswer(c.json(variants === "1" ? await messages.withVariants(id, page) : page, 200));
    })
    .openapi(schema.changesRoute, (c) => {
      const changes = messages.changesSince(c.req.valid("param").id, c.req.valid("query").since);
      tagged(c, changes.revision);
      return c.json(changes, 200);
    })
    .openapi(schema.addRoute, async (c) => {
      const { message: given, after } = c.req.valid("json");
      const options = { after: after ?? undefined, expected: preconditionOf(c.req.valid("header")) };
      const { message, revision } = await messages.add(c.req.valid("param").id, given, options);
      tagged(c, revision);
      return rawAnswer(c.json(message, 201));
    })
    .openapi(schema.greetRoute, async (c) => {
      return rawAnswer(c.json(await messages.greet(c.req.valid("param").id, c.req.valid("json").character_id), 201));
    })
    .openapi(schema.getMessageRoute, async (c) => {
      const { id, mid } = c.req.valid("param");
      const page = { items: [messages.get(id, mid)], next_cursor: null };
      tagged(c, messages.revisionOf(id));
      const { items } = c.req.valid("query").variants === "1" ? await messages.withVariants(id, page) : page;
      return rawAnswer(c.json(items[0]!, 200));
    })
    .openapi(schema.patchMessageRoute, async (c) => {
      const { id, mid } = c.req.valid("param");
      const demanded = preconditionOf(c.req.valid("header"));
      const { message, revision } = await messages.patch(id, mid, c.req.valid("json"), demanded);
      tagged(c, revision);
      return rawAnswer(c.json(message, 200));
    })
    .openapi(schema.deleteMessageRoute, async (c) => {
      const { id, mid } = c.req.valid("param");
      const demanded = preconditionOf(c.req.valid("header"));
      const isAll = c.req.valid("query").following === "true";
      const removing = isAll ? messages.removeFrom(id, mid, demanded) : messages.remove(id, mid, demanded);
      const { trashId, revision } = await removing;
      tagged(c, revision);
      return c.body(null, 204, trashId === undefined ? {} : { "X-Parlor-Trash-Id": trashId });
    })
    .openapi(schema.variantsRoute, (c) => {
      const { id, mid } = c.req.valid("param");
      return rawAnswer(c.json(messages.variantsOf(id, mid), 200));
    });
}
