/** `/api/conversations/{id}/queue`: messages that wait for the end of a reply. */
import type { z } from "@hono/zod-openapi";
import type { Services } from "../services/services.ts";
import { toQueuedJson, toQueueJson } from "../services/conversations/conversation_store.ts";
import type { QueueChange, QueueInput } from "../services/conversations/message_queues.ts";
import { withoutNulls } from "../services/conversations/message.ts";
import { createRouter } from "./http/router.ts";
import { passRawResponse } from "./http/raw_response.ts";
import * as schema from "./schemas/chat/message_queue.ts";

/** Routes of queues. */
export function queueRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listQueueRoute, async (c) => {
      const { queues } = await services.conversations();
      return passRawResponse(c.json(toQueueJson(queues.get(c.req.valid("param").id)), 200));
    })
    .openapi(schema.addQueuedRoute, async (c) => {
      const { queue } = await services.chat();
      const { message, assistant_message_id, names, time_zone } = c.req.valid("json");
      const item = await queue.add(
        c.req.valid("param").id,
        {
          message: { ...toMessage(message), id: message.id ?? undefined },
          assistantMessageId: assistant_message_id ?? undefined,
          names: names ?? undefined,
          timeZone: time_zone ?? undefined,
        } satisfies QueueInput,
      );
      return passRawResponse(c.json(toQueuedJson(item), 201));
    })
    .openapi(schema.changeQueuedRoute, async (c) => {
      const { queue } = await services.chat();
      const { id, n } = c.req.valid("param");
      const { message, names, position } = c.req.valid("json");
      const change = { message: message && toMessage(message), names, position } satisfies QueueChange;
      return passRawResponse(c.json(toQueuedJson(await queue.change(id, n, change)), 200));
    })
    .openapi(schema.removeQueuedRoute, async (c) => {
      const { queues } = await services.conversations();
      const { id, n } = c.req.valid("param");
      await queues.remove(id, n);
      return c.body(null, 204);
    });
}

type MessageBody = NonNullable<
  z.output<typeof schema.changeQueuedRoute.request.body.content["application/json"]["schema"]>["message"]
>;

function toMessage(body: MessageBody) {
  return { ...withoutNulls(body), role: body.role, content: (body.content ?? "") as QueueInput["message"]["content"] };
}
