/** API calls for one conversation and its messages. */
import { noteImageSizes } from "../state/chat/image_sizes.ts";
import { type ApiClient, ApiError, type RequestOptions } from "./client.ts";
import type {
  Branches,
  ChatPreview,
  ChatRequest,
  Conversation,
  ConversationChanges,
  ConversationHead,
  ConversationPatch,
  Message,
  MessageQueue,
  NewQueuedMessage,
  Page,
  RecentConversation,
  RequestMessage,
  SearchHit,
} from "./types.ts";

/** Conditions of a change of messages. */
export interface ChangeOptions {
  /** Revision that the conversation must have; otherwise the server refuses with 412. */
  revision?: number;
  /** The content that the message has now. */
  base?: Message["content"];
}

/** API calls for one conversation. All calls throw `ApiError`. */
export interface ConversationApi {
  /** Returns the conversation without its messages. */
  getHead(id: string): Promise<ConversationHead>;
  /** Returns the conversation with its last messages. `limit` is at most 500. */
  getRecent(id: string, limit: number): Promise<RecentConversation>;
  /** Makes a conversation, unless it exists. */
  createConversation(id: string, fields: ConversationPatch): Promise<void>;
  changeConversation(id: string, changes: ConversationPatch): Promise<ConversationHead>;
  /** Marks all replies as read. */
  markRead(id: string): Promise<void>;
  /** Returns the last messages, or those before another one, oldest first. `limit` is at most 500. */
  listMessages(
    id: string,
    limit: number,
    before?: string,
    signal?: AbortSignal,
  ): Promise<Page<Message> & Pick<RecentConversation, "damaged" | "image_sizes">>;
  getMessage(id: string, messageId: string): Promise<Message>;
  /** Returns the messages that wait for the end of a reply. */
  getQueue(id: string): Promise<MessageQueue>;
  /** Queues a message. */
  addQueued(id: string, message: NewQueuedMessage): Promise<void>;
  /** Moves a queued message, by its number, to a place from 0. */
  moveQueued(id: string, n: number, position: number): Promise<void>;
  /** Removes a queued message by its number. */
  removeQueued(id: string, n: number): Promise<void>;
  /** Returns what changed since a revision; undefined if the server no longer knows. */
  getChanges(id: string, since: number): Promise<ConversationChanges | undefined>;
  changeMessage(
    id: string,
    messageId: string,
    changes: Partial<Message>,
    options?: ChangeOptions,
  ): Promise<Message>;
  /** Returns the trash id of what was deleted. @param isFollowing Also deletes all messages after it. */
  deleteMessage(id: string, messageId: string, isFollowing: boolean): Promise<string | undefined>;
  /** Stores an image and returns its URL. */
  putAttachment(name: string, image: Blob, conversationId?: string): Promise<string>;
  restoreFromTrash(trashId: string): Promise<void>;
  /** Copies the conversation up to a message and returns the copy. */
  forkConversation(id: string, messageId: string): Promise<Conversation>;
  getBranches(id: string): Promise<Branches>;
  /**
   * Returns the prompt for these messages after the conversation. @param more With the ID of a message that is already
   * stored, or the model of a conversation that isn't.
   */
  previewChat(
    id: string,
    turns: RequestMessage[],
    signal: AbortSignal,
    more?: Partial<Pick<ChatRequest, "user_message_id" | "connection_id" | "model">>,
  ): Promise<ChatPreview>;
  searchMessages(
    conversationId: string,
    query: string,
    cursor?: string,
    signal?: AbortSignal,
  ): Promise<Page<SearchHit>>;
}

/** Returns the time zone in which dates are shown. */
export function getTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Returns the calls, bound to a client. */
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
  async function noted<T extends Pick<RecentConversation, "image_sizes">>(reading: Promise<T>): Promise<T> {
    const page = await reading;
    noteImageSizes(page.image_sizes);
    return page;
  }
  const conversation = (id: string) => `/api/conversations/${encodeURIComponent(id)}`;
  const message = (id: string, messageId: string) => `${conversation(id)}/messages/${encodeURIComponent(messageId)}`;

  return {
    getHead: (id) => json("GET", `${conversation(id)}?view=head`),
    getRecent: (id, limit) => noted(json("GET", `${conversation(id)}?view=recent&limit=${limit}`)),
    async createConversation(id, fields) {
      try {
        await done("PUT", conversation(id), { body: { ...fields, messages: [] }, headers: { "if-none-match": "*" } });
      } catch (thrown) {
        // An earlier attempt made it.
        if (!(thrown instanceof ApiError) || thrown.status !== 412) throw thrown;
      }
    },
    changeConversation: (id, changes) => json("PATCH", conversation(id), { body: changes }),
    async markRead(id) {
      await done("POST", `${conversation(id)}/read`);
    },
    listMessages(id, limit, before, signal) {
      const query = new URLSearchParams({ limit: String(limit) });
      if (before !== undefined) query.set("before", before);
      return noted(json("GET", `${conversation(id)}/messages?${query}`, { signal }));
    },
    getMessage: (id, messageId) => json("GET", message(id, messageId)),
    getQueue: (id) => json("GET", `${conversation(id)}/queue`),
    async addQueued(id, body) {
      await done("POST", `${conversation(id)}/queue`, { body });
    },
    async moveQueued(id, n, position) {
      await done("PATCH", `${conversation(id)}/queue/${n}`, { body: { position } });
    },
    async removeQueued(id, n) {
      await done("DELETE", `${conversation(id)}/queue/${n}`);
    },
    async getChanges(id, since) {
      try {
        return await json("GET", `${conversation(id)}/changes?since=${since}`);
      } catch (thrown) {
        if (thrown instanceof ApiError && thrown.status === 410) return undefined;
        throw thrown;
      }
    },
    changeMessage(id, messageId, changes, { revision, base } = {}) {
      const headers = revision === undefined ? undefined : { "if-match": `"${revision}"` };
      return json("PATCH", message(id, messageId), { body: changes, headers, outbox: { base } });
    },
    async deleteMessage(id, messageId, isFollowing) {
      const response = await done("DELETE", message(id, messageId) + (isFollowing ? "?following=true" : ""));
      return response.headers.get("x-parlor-trash-id") ?? undefined;
    },
    async putAttachment(name, image, conversationId) {
      const path = `/api/attachments/${encodeURIComponent(name)}`;
      try {
        return (await json<{ url: string }>("PUT", path, { blob: image, outbox: { conversationId } })).url;
      } catch (thrown) {
        // It's sent before the message that shows it.
        if (thrown instanceof ApiError && thrown.isQueued) return path;
        throw thrown;
      }
    },
    async restoreFromTrash(trashId) {
      await done("POST", `/api/trash/${encodeURIComponent(trashId)}/restore`, { body: {} });
    },
    forkConversation: (id, messageId) => json("POST", `${conversation(id)}/fork`, { body: { message_id: messageId } }),
    getBranches: (id) => json("GET", `${conversation(id)}/branches`),
    previewChat: (id, messages, signal, more) =>
      json("POST", "/api/chat/preview", {
        body: { ...more, conversation_id: id, context: "server", messages, time_zone: getTimeZone() },
        signal,
      }),
    searchMessages(conversationId, query, cursor, signal) {
      const params = new URLSearchParams({ q: query, conversation_id: conversationId });
      if (cursor !== undefined) params.set("cursor", cursor);
      return json("GET", `/api/search?${params}`, { signal });
    },
  };
}

/** Adds a greeting of a participating character at the end of a chat. @throws {ApiError} */
export async function greet(client: ApiClient, conversationId: string, characterId: string): Promise<void> {
  const path = `/api/conversations/${encodeURIComponent(conversationId)}/greeting`;
  await (await client.send("POST", path, { body: { character_id: characterId } })).body?.cancel();
}
