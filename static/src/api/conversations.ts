/** The calls about one conversation: its head, its messages in pages, and what can be done to them. */
import { type ApiClient, ApiError, type RequestOptions } from "./client.ts";
import type {
  Branches,
  ChatPreview,
  Conversation,
  ConversationChanges,
  ConversationHead,
  ConversationPatch,
  DamagedPart,
  Message,
  Page,
  RecentConversation,
  RequestMessage,
  SearchHit,
} from "./types.ts";

/** What a change of messages may demand. */
export interface ChangeOptions {
  /** Revision the conversation has to have; refused with 412 otherwise. */
  revision?: number;
}

/** Calls about one conversation. Every one throws `ApiError` as the client does. */
export interface ConversationApi {
  /** All of it but its messages. */
  getHead(id: string): Promise<ConversationHead>;
  /** All of it but the messages before the last ones. `limit` is at most 500. */
  getRecent(id: string, limit: number): Promise<RecentConversation>;
  createConversation(id: string, fields: ConversationPatch): Promise<void>;
  changeConversation(id: string, changes: ConversationPatch): Promise<ConversationHead>;
  /** The last messages, or those before one; oldest first. `limit` is at most 500. */
  listMessages(
    id: string,
    limit: number,
    before?: string,
    signal?: AbortSignal,
  ): Promise<Page<Message> & { damaged?: DamagedPart[] }>;
  getMessage(id: string, messageId: string): Promise<Message>;
  /** What changed since a revision; undefined if the server no longer knows. */
  getChanges(id: string, since: number): Promise<ConversationChanges | undefined>;
  changeMessage(
    id: string,
    messageId: string,
    changes: Partial<Message>,
    options?: ChangeOptions,
  ): Promise<Message>;
  /** Gives the trash's id of what was removed. `isFollowing`: all behind it too. */
  deleteMessage(id: string, messageId: string, isFollowing: boolean): Promise<string | undefined>;
  /** Stores a picture; gives its address. */
  putAttachment(name: string, picture: Blob): Promise<string>;
  restoreFromTrash(trashId: string): Promise<void>;
  /** Copies the conversation up to a message; gives the copy. */
  forkConversation(id: string, messageId: string): Promise<Conversation>;
  getBranches(id: string): Promise<Branches>;
  /** Tells what the model would be sent with these turns behind the conversation. @param userMessageId Of a turn that is stored. */
  previewChat(id: string, turns: RequestMessage[], signal: AbortSignal, userMessageId?: string): Promise<ChatPreview>;
  searchMessages(
    conversationId: string,
    query: string,
    cursor?: string,
    signal?: AbortSignal,
  ): Promise<Page<SearchHit>>;
}

/** Gives the zone in which dates are told. */
export function timeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Binds the calls to one client. */
export function conversationApi(client: ApiClient): ConversationApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    const response = await client.send(method, path, options);
    return await response.json() as T;
  }
  async function done(method: string, path: string, options?: RequestOptions): Promise<Response> {
    const response = await client.send(method, path, options);
    await response.body?.cancel();
    return response;
  }
  const conversation = (id: string) => `/api/conversations/${encodeURIComponent(id)}`;
  const message = (id: string, messageId: string) => `${conversation(id)}/messages/${encodeURIComponent(messageId)}`;

  return {
    getHead: (id) => json("GET", `${conversation(id)}?view=head`),
    getRecent: (id, limit) => json("GET", `${conversation(id)}?view=recent&limit=${limit}`),
    async createConversation(id, fields) {
      await done("PUT", conversation(id), { body: { ...fields, messages: [] } });
    },
    changeConversation: (id, changes) => json("PATCH", conversation(id), { body: changes }),
    listMessages(id, limit, before, signal) {
      const query = new URLSearchParams({ limit: String(limit) });
      if (before !== undefined) query.set("before", before);
      return json("GET", `${conversation(id)}/messages?${query}`, { signal });
    },
    getMessage: (id, messageId) => json("GET", message(id, messageId)),
    async getChanges(id, since) {
      try {
        return await json("GET", `${conversation(id)}/changes?since=${since}`);
      } catch (thrown) {
        if (thrown instanceof ApiError && thrown.status === 410) return undefined;
        throw thrown;
      }
    },
    changeMessage(id, messageId, changes, { revision } = {}) {
      const headers = revision === undefined ? undefined : { "if-match": `"${revision}"` };
      return json("PATCH", message(id, messageId), { body: changes, headers });
    },
    async deleteMessage(id, messageId, isFollowing) {
      const response = await done("DELETE", message(id, messageId) + (isFollowing ? "?following=true" : ""));
      return response.headers.get("x-parlor-trash-id") ?? undefined;
    },
    async putAttachment(name, picture) {
      const path = `/api/attachments/${encodeURIComponent(name)}`;
      return (await json<{ url: string }>("PUT", path, { blob: picture })).url;
    },
    async restoreFromTrash(trashId) {
      await done("POST", `/api/trash/${encodeURIComponent(trashId)}/restore`, { body: {} });
    },
    forkConversation: (id, messageId) => json("POST", `${conversation(id)}/fork`, { body: { message_id: messageId } }),
    getBranches: (id) => json("GET", `${conversation(id)}/branches`),
    previewChat: (id, messages, signal, user_message_id) =>
      json("POST", "/api/chat/preview", {
        body: { conversation_id: id, user_message_id, context: "server", messages, time_zone: timeZone() },
        signal,
      }),
    searchMessages(conversationId, query, cursor, signal) {
      const params = new URLSearchParams({ q: query, conversation_id: conversationId });
      if (cursor !== undefined) params.set("cursor", cursor);
      return json("GET", `/api/search?${params}`, { signal });
    },
  };
}

/** Lets a character who takes part in a chat say a greeting at its end. @throws {ApiError} */
export async function greet(client: ApiClient, conversationId: string, characterId: string): Promise<void> {
  const path = `/api/conversations/${encodeURIComponent(conversationId)}/greeting`;
  await (await client.send("POST", path, { body: { character_id: characterId } })).body?.cancel();
}
