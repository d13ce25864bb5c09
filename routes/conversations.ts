/** `/api/conversations`: conversations whole, their fields and their drafts. */
import { type AppContext, clientSignal } from "../middleware/env.ts";
import type { Conversations } from "../services/conversations/conversations.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { rawAnswer, startedStream } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/conversations.ts";

/** Routes of conversations and their drafts. */
export function conversationRoutes(conversations: Conversations) {
  const { reader } = conversations;
  return newRouter()
    .openapi(schema.listRoute, async (c) => {
      const { view, limit, cursor, variants } = c.req.valid("query");
      const body = view === "full"
        ? await startedStream(c, reader.list({ hasVariants: variants === "1" }, clientSignal(c)))
        : reader.summaries(limit, cursor);
      return rawAnswer(c.body(body as ReadableStream, 200, { "Content-Type": "application/json" }));
    })
    .openapi(schema.getRoute, async (c) => {
      const { id } = c.req.valid("param");
      const { view, limit, variants } = c.req.valid("query");
      if (view === "head") return wholeAnswer(c, reader.head(id), 200);
      if (view === "recent") return wholeAnswer(c, reader.recent(id, limit), 200);
      return await openAnswer(
        c,
        await reader.open(id, { hasVariants: variants === "1", signal: clientSignal(c) }),
        200,
      );
    })
    .openapi(schema.putRoute, async (c) => {
      const { id } = c.req.valid("param");
      const saved = await conversations.put(id, c.req.valid("json"), preconditionOf(c.req.valid("header")));
      return await openAnswer(c, saved, saved.isNew ? 201 : 200);
    })
    .openapi(schema.createConversationRoute, async (c) => {
      const { character_ids: characterIds, persona_id, greeting } = c.req.valid("json");
      const participants = (characterIds ?? []).map((character_id) => ({ character_id }));
      const { id } = await conversations.create({ participants, persona_id }, greeting ?? undefined);
      return wholeAnswer(c, await reader.read(id), 201);
    })
    .openapi(schema.patchRoute, async (c) => {
      const { id } = c.req.valid("param");
      await conversations.patch(id, c.req.valid("json"), preconditionOf(c.req.valid("header")));
      return wholeAnswer(c, reader.head(id), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      await conversations.remove(c.req.valid("param").id, preconditionOf(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.patchDraftRoute, async (c) => {
      const { draft } = c.req.valid("json");
      const version = await conversations.saveDraft(
        c.req.valid("param").id,
        draft ?? "",
        preconditionOf(c.req.valid("header")),
      );
      return c.body(null, 204, { ETag: etag(version) });
    });
}

/** Answers with a conversation as JSON, which is a stream if it is large. */
export async function openAnswer(
  c: AppContext,
  { revision, json }: { revision: number; json: Uint8Array | AsyncGenerator<Uint8Array> },
  status: 200 | 201,
): Promise<never> {
  if (json instanceof Uint8Array) return wholeAnswer(c, { revision, json }, status);
  const headers = { "Content-Type": "application/json", ETag: etag(revision) };
  return rawAnswer(c.body(await startedStream(c, json), status, headers));
}

/** Answers with a conversation as JSON. */
export function wholeAnswer(
  c: AppContext,
  { revision, json }: { revision: number; json: Uint8Array },
  status: 200 | 201,
): never {
  return rawAnswer(
    c.body(json as Uint8Array<ArrayBuffer>, status, { "Content-Type": "application/json", ETag: etag(revision) }),
  );
}
