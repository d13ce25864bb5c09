/** `/api/conversations/{id}/messages`: the messages of a conversation, in pages and one by one. */
import type { Messages } from "../services/chat/messages.ts";
import { expected } from "./conversations.ts";
import { rawAnswer } from "./raw_answer.ts";
import { newRouter } from "./router.ts";
import * as schema from "./schemas/messages.ts";

/** Routes of messages and their texts. */
export function messageRoutes(messages: Messages) {
  return newRouter()
    .openapi(schema.pageRoute, async (c) => {
      const { before, limit, variants } = c.req.valid("query");
      const page = messages.page(c.req.valid("param").id, limit, before);
      return rawAnswer(c.json(variants === "1" ? await messages.withVariants(page) : page, 200));
    })
    .openapi(schema.addRoute, async (c) => {
      const { message, after } = c.req.valid("json");
      const options = { after: after ?? undefined, expected: expected(c.req.valid("header")) };
      return rawAnswer(c.json(await messages.add(c.req.valid("param").id, message, options), 201));
    })
    .openapi(schema.greetRoute, async (c) => {
      return rawAnswer(c.json(await messages.greet(c.req.valid("param").id, c.req.valid("json").character_id), 201));
    })
    .openapi(schema.getMessageRoute, async (c) => {
      const { id, mid } = c.req.valid("param");
      const page = { items: [messages.get(id, mid)], next_cursor: null };
      const { items } = c.req.valid("query").variants === "1" ? await messages.withVariants(page) : page;
      return rawAnswer(c.json(items[0]!, 200));
    })
    .openapi(schema.patchMessageRoute, async (c) => {
      const { id, mid } = c.req.valid("param");
      const message = await messages.patch(id, mid, c.req.valid("json"), expected(c.req.valid("header")));
      return rawAnswer(c.json(message, 200));
    })
    .openapi(schema.deleteMessageRoute, async (c) => {
      const { id, mid } = c.req.valid("param");
      const demanded = expected(c.req.valid("header"));
      const isAll = c.req.valid("query").following === "true";
      const trashId = await (isAll ? messages.removeFrom(id, mid, demanded) : messages.remove(id, mid, demanded));
      return c.body(null, 204, { "X-Parlor-Trash-Id": trashId });
    })
    .openapi(schema.variantsRoute, (c) => {
      const { id, mid } = c.req.valid("param");
      return rawAnswer(c.json(messages.variantsOf(id, mid), 200));
    });
}
