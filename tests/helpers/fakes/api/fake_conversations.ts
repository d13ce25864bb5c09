/** The fake API for one conversation: pages, edits, deletion and restoring, copies. */
import type { Conversation, Message } from "../../../../static/src/api/types.ts";
import type { FakeApi, Handler } from "./fake_api.ts";

type Route = [method: string, pattern: RegExp, handler: Handler];

/** Creates the routes. */
export function conversationRoutes(api: FakeApi): Route[] {
  const at = (pattern: string) => new RegExp(`^/api/conversations/([^/]+)${pattern}$`);
  const on = (
    method: string,
    pattern: string,
    answer: (conversation: Conversation, ...more: [Parameters<Handler>[0], string | undefined]) => Response,
  ): Route => [method, at(pattern), (request, [, id, mid]) => {
    const conversation = api.conversations.get(id!);
    return conversation ? answer(conversation, request, mid) : gone("conversation");
  }];
  const changed = (conversation: Conversation) => {
    conversation.updated_at = new Date().toISOString();
    api.publish("conversation", conversation.id, ++conversation.revision);
  };
  const isStale = (conversation: Conversation, headers: Headers) => {
    const wanted = headers.get("if-match");
    return wanted !== null && wanted !== `"${conversation.revision}"`;
  };

  return [
    on("GET", "", (conversation, { query }) => {
      const view = query.get("view");
      if (view !== "head" && view !== "recent") return Response.json(conversation);
      const { messages, ...head } = conversation;
      const page = pageOf(messages, messages.length, query);
      const recent = view === "recent" ? { messages: page.items, next_cursor: page.next_cursor } : {};
      return Response.json({ ...head, message_count: messages.length, ...recent });
    }),
    ["PUT", at(""), (request, [, id]) => {
      const { messages: _, ...fields } = request.body as Conversation;
      const conversation = Object.assign(api.addConversation(id!, ""), fields);
      changed(conversation);
      return Response.json(conversation, { status: 201 });
    }],
    on("PATCH", "", (conversation, { body }) => {
      const fields = Object.entries(body as Record<string, unknown>);
      for (const [field, value] of fields) Object.assign(conversation, { [field]: value ?? undefined });
      changed(conversation);
      const { messages, ...head } = conversation;
      return Response.json({ ...head, message_count: messages.length });
    }),
    ["DELETE", at(""), (_, [, id]) => {
      api.conversations.delete(id!);
      api.publish("conversation", id!);
      return new Response(null, { status: 204 });
    }],
    on("GET", "/messages", ({ messages }, { query }) => {
      const before = query.get("before");
      const end = before === null ? messages.length : messages.findIndex(({ id }) => id === before);
      return end < 0 ? gone("message") : Response.json(pageOf(messages, end, query));
    }),
    on("GET", "/messages/([^/]+)", ({ messages }, _, mid) => {
      const message = messages.find(({ id }) => id === mid);
      return message ? Response.json(message) : gone("message");
    }),
    // The fake has no change log, so the page reloads everything it shows.
    on("GET", "/changes", () => failure(410, "gone", "The changes since that revision are no longer known")),
    on("GET", "/messages/([^/]+)/variants", ({ messages }, _, mid) => {
      const message = messages.find(({ id }) => id === mid);
      if (!message) return gone("message");
      const { active_variant = 0, model, created_at } = message;
      const all = [...api.variants.get(mid!) ?? []];
      all[active_variant] = String(message.content);
      return Response.json(all.map((content, n) => ({ n, content, model, created_at })));
    }),
    on("PATCH", "/messages/([^/]+)", (conversation, { body, headers }, mid) => {
      const message = conversation.messages.find(({ id }) => id === mid);
      if (!message) return gone("message");
      if (isStale(conversation, headers)) return failure(412, "revision_mismatch", "The conversation has changed");
      const { active_variant: wanted, ...fields } = body as Partial<Message>;
      const versions = api.continuations.get(message.id);
      if (wanted !== undefined && versions) {
        const following = conversation.messages.splice(conversation.messages.indexOf(message) + 1);
        versions[message.active_variant ?? 0] = { content: message.content, following };
        Object.assign(message, { content: versions[wanted]!.content, active_variant: wanted });
        conversation.messages.push(...versions[wanted]!.following);
      } else if (wanted !== undefined) {
        const texts = api.variants.get(message.id)!;
        texts[message.active_variant ?? 0] = String(message.content);
        Object.assign(message, { content: texts[wanted], active_variant: wanted });
      }
      Object.assign(message, fields, { updated_at: new Date().toISOString() });
      changed(conversation);
      return Response.json(message);
    }),
    on("DELETE", "/messages/([^/]+)", (conversation, { query }, mid) => {
      const place = conversation.messages.findIndex(({ id }) => id === mid);
      if (place < 0) return gone("message");
      const count = query.get("following") === "true" ? conversation.messages.length : 1;
      const removed = conversation.messages.splice(place, count);
      const trashId = crypto.randomUUID();
      api.house.restores.set(trashId, () => {
        conversation.messages.splice(place, 0, ...removed);
        changed(conversation);
      });
      changed(conversation);
      return new Response(null, { status: 204, headers: { "x-parlor-trash-id": trashId } });
    }),
    on("POST", "/fork", (conversation, { body }) => {
      const { message_id: mid } = body as { message_id: string };
      const end = conversation.messages.findIndex(({ id }) => id === mid) + 1;
      const id = `${conversation.id}-fork`;
      const copies = conversation.messages.slice(0, end).map((message) => ({ ...message, id: `${message.id}-copy` }));
      const copy = api.addConversation(id, conversation.title, copies);
      copy.forked_from = { conversation_id: conversation.id, message_id: mid };
      api.publish("conversation", id, copy.revision);
      return Response.json(copy, { status: 201 });
    }),
    on("GET", "/branches", (conversation) => {
      const branch = (of: Conversation | undefined, mid: string) =>
        of && {
          conversation_id: of.id,
          message_id: mid,
          title: of.title,
          updated_at: of.updated_at,
          message_count: of.messages.length,
        };
      const from = conversation.forked_from;
      const forks = [...api.conversations.values()].filter((each) =>
        each.forked_from?.conversation_id === conversation.id
      );
      return Response.json({
        origin: (from && branch(api.conversations.get(from.conversation_id), from.message_id)) ?? null,
        forks: forks.map((each) => branch(each, each.forked_from!.message_id)),
      });
    }),
  ];
}

function gone(what: string): Response {
  return failure(404, "not_found", `There is no such ${what}`);
}

function failure(status: number, code: string, message: string): Response {
  return Response.json({ error: { code, message, request_id: "req-1" } }, { status });
}

function pageOf(messages: readonly Message[], end: number, query: URLSearchParams) {
  const begin = Math.max(0, end - Number(query.get("limit") ?? 50));
  return { items: messages.slice(begin, end), next_cursor: begin > 0 ? messages[begin]!.id : null };
}
