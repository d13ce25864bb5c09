/**
 * `/api/conversations` and `/api/search`: conversations, their messages, drafts, revisions and forks, and the search.
 */
import type { Services } from "../services/services.ts";
import { hashJson } from "../services/storage/idempotency.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/chat/conversations.ts";
import * as messageSchema from "./schemas/chat/messages.ts";
import { openResponseStream, passRawResponse } from "./http/raw_response.ts";

/** Routes of conversations. */
export function conversationRoutes(services: Services) {
  return createRouter()
    .route("/", conversationResourceRoutes(services))
    .route("/", messageRoutes(services))
    .route("/", revisionRoutes(services))
    .route("/", forkRoutes(services));
}

/** Routes of whole conversations, their fields and their drafts. */
function conversationResourceRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const { streams, summaries } = await services.conversations();
      const { view, limit, cursor, variants } = c.req.valid("query");
      const body = view === "full"
        ? await openResponseStream(c, streams.list({ hasVariants: variants === "1" }, getClientSignal(c)))
        : await summaries.list(limit, cursor);
      return passRawResponse(c.body(body as ReadableStream, 200, { "Content-Type": "application/json" }));
    })
    .openapi(schema.getRoute, async (c) => {
      const { reader, streams } = await services.conversations();
      const { id } = c.req.valid("param");
      const { view, limit, variants } = c.req.valid("query");
      if (view === "head") return sendWholeConversation(c, reader.readHead(id), 200);
      if (view === "recent") return sendWholeConversation(c, reader.readRecent(id, limit), 200);
      return await sendConversation(
        c,
        await streams.open(id, { hasVariants: variants === "1", signal: getClientSignal(c) }),
        200,
      );
    })
    .openapi(schema.putRoute, async (c) => {
      const { conversations } = await services.conversations();
      const { id } = c.req.valid("param");
      const saved = await conversations.put(id, c.req.valid("json"), parsePrecondition(c.req.valid("header")));
      return await sendConversation(c, saved, saved.isNew ? 201 : 200);
    })
    .openapi(schema.createConversationRoute, async (c) => {
      const { conversations, reader, store } = await services.conversations();
      const { character_ids: characterIds, persona_id, greeting } = c.req.valid("json");
      const participants = (characterIds ?? []).map((character_id) => ({ character_id }));
      const readFingerprint = () => Promise.resolve(hashJson(c.req.valid("json")));
      const id = await services.idempotency.run({
        kind: "conversation",
        key: c.req.valid("header")["idempotency-key"],
        exists: (id) => store.exists(id),
        async make(id) {
          await conversations.create({ participants, persona_id }, greeting ?? undefined, id);
          return await readFingerprint();
        },
        readFingerprint,
      });
      return sendWholeConversation(c, await reader.read(id), 201);
    })
    .openapi(schema.patchRoute, async (c) => {
      const { conversations, reader } = await services.conversations();
      const { id } = c.req.valid("param");
      await conversations.patch(id, c.req.valid("json"), parsePrecondition(c.req.valid("header")));
      return sendWholeConversation(c, reader.readHead(id), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const { conversationTrash } = await services.conversations();
      await conversationTrash.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.readRoute, async (c) => {
      const { conversationWriter } = await services.conversations();
      await conversationWriter.markRead(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.patchDraftRoute, async (c) => {
      const { drafts } = await services.conversations();
      const { draft } = c.req.valid("json");
      const version = await drafts.save(
        c.req.valid("param").id,
        draft ?? "",
        parsePrecondition(c.req.valid("header")),
      );
      return c.body(null, 204, { ETag: formatEtag(version) });
    });
}

/** Responds with a conversation as JSON, which is streamed if it is large. */
async function sendConversation(
  c: AppContext,
  { revision, json }: { revision: number; json: Uint8Array | AsyncGenerator<Uint8Array> },
  status: 200 | 201,
): Promise<never> {
  if (json instanceof Uint8Array) return sendWholeConversation(c, { revision, json }, status);
  const headers = { "Content-Type": "application/json", ETag: formatEtag(revision) };
  return passRawResponse(c.body(await openResponseStream(c, json), status, headers));
}

/** Responds with a conversation as JSON. */
function sendWholeConversation(
  c: AppContext,
  { revision, json }: { revision: number; json: Uint8Array },
  status: 200 | 201,
): never {
  return passRawResponse(
    c.body(json as Uint8Array<ArrayBuffer>, status, { "Content-Type": "application/json", ETag: formatEtag(revision) }),
  );
}

function messageRoutes(services: Services) {
  /** The ETag of a message is the revision of its conversation, which its If-Match is compared to. */
  const setEtag = (c: AppContext, revision: number) => c.header("ETag", formatEtag(revision));
  return createRouter()
    .openapi(messageSchema.pageRoute, async (c) => {
      const { reader } = await services.conversations();
      const { id } = c.req.valid("param");
      const { before, limit, variants } = c.req.valid("query");
      const page = reader.readPage(id, limit, before);
      setEtag(c, reader.getRevision(id));
      return passRawResponse(c.json(variants === "1" ? await reader.addVariants(id, page) : page, 200));
    })
    .openapi(messageSchema.changesRoute, async (c) => {
      const { reader, changes } = await services.conversations();
      const { id } = c.req.valid("param");
      const list = changes.list(id, c.req.valid("query").since, reader.getRevision(id));
      setEtag(c, list.revision);
      return c.json(list, 200);
    })
    .openapi(messageSchema.addRoute, async (c) => {
      const { messages } = await services.conversations();
      const { message: input, after } = c.req.valid("json");
      const options = {
        after: after ?? undefined,
        expected: parsePrecondition(c.req.valid("header")),
      } satisfies Parameters<
        typeof messages.add
      >[2];
      const { message, revision } = await messages.add(c.req.valid("param").id, input, options);
      setEtag(c, revision);
      return passRawResponse(c.json(message, 201));
    })
    .openapi(messageSchema.greetRoute, async (c) => {
      const { messages } = await services.conversations();
      return passRawResponse(
        c.json(await messages.greet(c.req.valid("param").id, c.req.valid("json").character_id), 201),
      );
    })
    .openapi(messageSchema.getMessageRoute, async (c) => {
      const { reader } = await services.conversations();
      const { id, mid } = c.req.valid("param");
      const page = { items: [reader.readMessage(id, mid)], next_cursor: null };
      setEtag(c, reader.getRevision(id));
      const { items } = c.req.valid("query").variants === "1" ? await reader.addVariants(id, page) : page;
      return passRawResponse(c.json(items[0]!, 200));
    })
    .openapi(messageSchema.patchMessageRoute, async (c) => {
      const { messages } = await services.conversations();
      const { id, mid } = c.req.valid("param");
      const demanded = parsePrecondition(c.req.valid("header"));
      const { message, revision } = await messages.patch(id, mid, c.req.valid("json"), demanded);
      setEtag(c, revision);
      return passRawResponse(c.json(message, 200));
    })
    .openapi(messageSchema.deleteMessageRoute, async (c) => {
      const { messages } = await services.conversations();
      const { id, mid } = c.req.valid("param");
      const demanded = parsePrecondition(c.req.valid("header"));
      const isAll = c.req.valid("query").following === "true";
      const removing = isAll ? messages.removeFrom(id, mid, demanded) : messages.remove(id, mid, demanded);
      const { trashId, revision } = await removing;
      setEtag(c, revision);
      return c.body(null, 204, trashId === undefined ? {} : { "X-Parlor-Trash-Id": trashId });
    })
    .openapi(messageSchema.variantsRoute, async (c) => {
      const { reader } = await services.conversations();
      const { id, mid } = c.req.valid("param");
      return passRawResponse(c.json(reader.listVariants(id, mid), 200));
    });
}

function revisionRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRevisionsRoute, async (c) => {
      const { revisions } = await services.conversations();
      return c.json(revisions.list(c.req.valid("param").id), 200);
    })
    .openapi(schema.compareRevisionRoute, async (c) => {
      const { revisions } = await services.conversations();
      const { id, n } = c.req.valid("param");
      return c.json(await revisions.compare(id, n), 200);
    })
    .openapi(schema.restoreRevisionRoute, async (c) => {
      const { revisions, reader } = await services.conversations();
      const { id, n } = c.req.valid("param");
      await revisions.restore(id, n, parsePrecondition(c.req.valid("header")));
      return sendWholeConversation(c, await reader.read(id), 200);
    });
}

function forkRoutes(services: Services) {
  return createRouter()
    .openapi(schema.forkRoute, async (c) => {
      const { forks, reader, store } = await services.conversations();
      const { id: originId } = c.req.valid("param");
      const { message_id } = c.req.valid("json");
      const readFingerprint = () => Promise.resolve(hashJson([originId, message_id]));
      const id = await services.idempotency.run({
        kind: "fork",
        key: c.req.valid("header")["idempotency-key"],
        exists: (id) => store.exists(id),
        async make(id) {
          await forks.fork(originId, message_id, id);
          return await readFingerprint();
        },
        readFingerprint,
      });
      return sendWholeConversation(c, await reader.read(id), 201);
    })
    .openapi(schema.branchesRoute, async (c) => {
      const { forks } = await services.conversations();
      return c.json(await forks.listBranches(c.req.valid("param").id), 200);
    });
}

/** Route of the search. */
export function searchRoutes(services: Services) {
  return createRouter().openapi(schema.searchRoute, async (c) => {
    const search = await services.search();
    const { q, conversation_id: conversationId, character_id: characterId, ...rest } = c.req.valid("query");
    const client = getClientSignal(c);
    try {
      return c.json(await search.search({ query: q, conversationId, characterId, ...rest }, client), 200);
    } catch (error) {
      // The user typed on, which canceled this search. No one reads the response.
      if (client.aborted) return c.json({ items: [], next_cursor: null }, 200);
      throw error;
    }
  });
}
