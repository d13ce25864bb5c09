/** `/api/v1/responses`: the Responses API. */
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import type { ResponseEvent } from "../services/openai_api/response_output.ts";
import type { ResponseCaller } from "../services/openai_api/response_store.ts";
import { createOpenAiError } from "./errors.ts";
import { createEventStream, EVENT_STREAM_HEADERS } from "./http/event_stream.ts";
import { findAllowance } from "./openai_api.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/responses.ts";

/** Routes of the Responses API. */
export function responseRoutes(services: Services) {
  return createRouter()
    .openapi(schema.createResponseRoute, async (c) => {
      const [models, { stateless }, responses] = [
        await services.openAiModels(),
        await services.chat(),
        await services.responses(),
      ];
      const body = c.req.valid("json");
      const signal = getClientSignal(c);
      const model = await models.resolve(body.model, signal, findAllowance(c));
      const previous = await responses.findReply(body.previous_response_id, getCaller(c));
      const opened = responses.open(body, getCaller(c), previous);
      const reply = await stateless.stream(schema.toResponseChatRequest(opened, model, findAllowance(c)), signal);
      let failure: unknown;
      let isCancelled = false;
      const events = responses.run(opened, {
        ...reply,
        describeError(thrown) {
          failure = thrown;
          const { code, message } = createOpenAiError(thrown).body.error;
          return { code, message };
        },
        isCancelled: () => isCancelled || signal.aborted,
      });
      if (body.stream === true) {
        return streamEvents(c, events, () => {
          isCancelled = true;
          reply.cancel();
        });
      }
      for await (const _ of events);
      if (failure !== undefined) throw failure;
      return c.json(schema.toResponseJson(opened.writer.response), 200);
    })
    .openapi(schema.getResponseRoute, async (c) => {
      const responses = await services.responses();
      const { id } = c.req.valid("param");
      const reply = await responses.findReply(id, getCaller(c));
      const response = reply === undefined ? responses.get(id, getCaller(c)) : responses.toResponse(reply);
      return c.json(schema.toResponseJson(response), 200);
    })
    .openapi(schema.deleteResponseRoute, async (c) => {
      const { id } = c.req.valid("param");
      await (await services.responses()).delete(id, getCaller(c));
      return c.json({ id, object: "response" as const, deleted: true as const }, 200);
    });
}

/** Returns whose responses the caller may read. */
function getCaller(c: AppContext): ResponseCaller {
  const { identity } = c.var;
  if (identity.method !== "token" || identity.scope !== "openai") return {};
  return { tokenId: identity.tokenId, readsChats: identity.allow?.write === true };
}

function streamEvents(c: AppContext, events: AsyncGenerator<ResponseEvent[]>, cancel: () => void): never {
  const encoder = new TextEncoder();
  const next = async () => {
    const { done, value } = await events.next();
    return done ? undefined : encoder.encode(schema.toResponseFrames(value));
  };
  const close = () => {
    cancel();
    void events.return(undefined);
  };
  return passRawResponse(c.body(createEventStream({ next, close }), 200, EVENT_STREAM_HEADERS));
}
