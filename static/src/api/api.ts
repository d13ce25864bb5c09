/** The API client: one method per call, one request per method. */
import { type CharacterApi, characterApi } from "./characters.ts";
import type { OutboxEntry } from "../state/app/outbox_store.ts";
import type { ApiClient, RequestOptions } from "./client.ts";
import { type ConversationApi, conversationApi } from "./conversations.ts";
import { type ModelApi, modelApi } from "./models.ts";
import type {
  ChatRequest,
  Connection,
  ConnectionInput,
  ConnectionTest,
  ConversationSummary,
  DocumentHit,
  FoundServers,
  Health,
  Job,
  Page,
  RunningReply,
  SearchHit,
  Settings,
  SetupStatus,
  TrashItem,
} from "./types.ts";

/** Calls that belong to no single screen. All calls throw `ApiError`. */
/** Which messages a search finds. */
export interface SearchFilters {
  character_id?: string;
  role?: string;
  /** ISO 8601. */
  since?: string;
}

interface ActivityApi {
  /** Searches messages and titles of all conversations, then documents. A page can be short and still have a next one. */
  search(
    query: string,
    cursor: string | undefined,
    signal: AbortSignal,
    filters?: SearchFilters,
  ): Promise<Page<SearchHit | DocumentHit>>;
  listTrash(): Promise<TrashItem[]>;
  emptyTrash(): Promise<void>;
  /** Lists jobs. Arrays and objects are left out of each `detail`. */
  listJobs(): Promise<Job[]>;
  /** Returns a job with its whole `detail`. */
  readJob(id: string): Promise<Job>;
  /** Returns the job after it has cleaned up. */
  cancelJob(id: string): Promise<Job>;
}

/** Returns the calls, bound to a client. */
function activityApi(client: ApiClient): ActivityApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    const response = await client.send(method, path, options);
    return await response.json() as T;
  }
  async function sendOnly(method: string, path: string, options?: RequestOptions): Promise<void> {
    const response = await client.send(method, path, options);
    await response.body?.cancel();
  }
  return {
    search(query, cursor, signal, filters) {
      const params = new URLSearchParams({ q: query, ...filters });
      if (cursor !== undefined) params.set("cursor", cursor);
      return json("GET", `/api/search?${params}`, { signal });
    },
    listTrash: () => json("GET", "/api/trash"),
    emptyTrash: () => sendOnly("DELETE", "/api/trash"),
    listJobs: () => json("GET", "/api/jobs"),
    readJob: (id) => json("GET", `/api/jobs/${encodeURIComponent(id)}`),
    cancelJob: (id) => json("POST", `/api/jobs/${encodeURIComponent(id)}/cancel`, { body: {} }),
  };
}

/** Conversations of the list's first page: enough to fill any screen, few enough to arrive at once. */
const FIRST_PAGE_SIZE = 60;
/** Conversations of every further page: the server's maximum. */
const NEXT_PAGE_SIZE = 500;

/** All calls of the page. They throw `ApiError`. */
export interface Api extends ConversationApi, ActivityApi, ModelApi, CharacterApi {
  /** For calls of screens that load on demand. */
  readonly client: ApiClient;
  /** Returns the newest conversations, or those after a cursor. */
  listConversations(cursor?: string): Promise<Page<ConversationSummary>>;
  deleteConversation(id: string, options?: RequestOptions): Promise<void>;
  /**
   * Returns the new draft version. With `knownVersion`, the server refuses (412) if the draft was changed elsewhere.
   */
  saveDraft(id: string, draft: string, knownVersion?: number, options?: RequestOptions): Promise<number>;
  /**
   * Returns the event stream of the reply.
   *
   * @param key The same for each repetition, so that a reply isn't regenerated or continued twice.
   * @param next What follows if the outbox sends it.
   */
  startChat(request: ChatRequest, signal: AbortSignal, key?: string, next?: OutboxEntry["next"]): Promise<Response>;
  listReplies(): Promise<RunningReply[]>;
  /** Returns the event stream of a running or recently ended reply, after `lastEventId` or from its start. */
  attachReply(messageId: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Response>;
  stopReply(messageId: string, conversationId?: string): Promise<void>;
  openEvents(signal: AbortSignal): Promise<Response>;
  listConnections(): Promise<Connection[]>;
  saveConnection(input: ConnectionInput): Promise<Connection>;
  deleteConnection(id: string, options?: RequestOptions): Promise<void>;
  clearConnectionKey(id: string): Promise<void>;
  activateConnection(id: string): Promise<Connection>;
  testConnection(input: ConnectionInput): Promise<ConnectionTest>;
  discoverServers(): Promise<FoundServers>;
  getSettings(): Promise<Settings>;
  /** Returns all settings after the change. */
  changeSettings(changes: Partial<Settings>): Promise<Settings>;
  getHealth(): Promise<Health>;
  getSetupStatus(): Promise<SetupStatus>;
  completeSetup(): Promise<void>;
}

/** Returns the calls, bound to a client. */
export function createApi(client: ApiClient): Api {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    const response = await client.send(method, path, options);
    return await response.json() as T;
  }
  async function done(method: string, path: string, options?: RequestOptions): Promise<void> {
    const response = await client.send(method, path, options);
    await response.body?.cancel();
  }
  const conversation = (id: string) => `/api/conversations/${encodeURIComponent(id)}`;
  const reply = (messageId: string) => `/api/chat/replies/${encodeURIComponent(messageId)}`;
  const connection = (id: string) => `/api/connections/${encodeURIComponent(id)}`;
  const asStream = { accept: "text/event-stream" };

  return {
    client,
    ...conversationApi(client),
    ...activityApi(client),
    ...modelApi(client),
    ...characterApi(client),
    listConversations(cursor) {
      const limit = cursor === undefined ? FIRST_PAGE_SIZE : NEXT_PAGE_SIZE;
      const query = new URLSearchParams({ view: "summary", limit: String(limit) });
      if (cursor !== undefined) query.set("cursor", cursor);
      return json("GET", `/api/conversations?${query}`);
    },
    deleteConversation: (id, options) => done("DELETE", conversation(id), options),
    async saveDraft(id, draft, knownVersion, options = {}) {
      const headers: Record<string, string> = {};
      if (knownVersion !== undefined) headers["if-match"] = `"${knownVersion}"`;
      const response = await client.send("PATCH", `${conversation(id)}/draft`, {
        ...options,
        headers,
        body: { draft },
      });
      await response.body?.cancel();
      const version = Number((response.headers.get("etag") ?? "").replace(/^W\//, "").replaceAll('"', ""));
      return Number.isInteger(version) ? version : (knownVersion ?? 0) + 1;
    },
    startChat: (request, signal, key, next) => {
      const headers: Record<string, string> = { ...asStream };
      if (key !== undefined) headers["idempotency-key"] = key;
      return client.send("POST", "/api/chat", { body: request, headers, signal, outbox: { next } });
    },
    listReplies: () => json("GET", "/api/chat/replies"),
    attachReply(messageId, lastEventId, signal) {
      const headers: Record<string, string> = { ...asStream };
      if (lastEventId !== undefined) headers["last-event-id"] = lastEventId;
      return client.send("GET", reply(messageId), { headers, signal });
    },
    stopReply(messageId, conversationId) {
      const query = conversationId === undefined ? "" : `?conversation_id=${encodeURIComponent(conversationId)}`;
      return done("POST", `${reply(messageId)}/stop${query}`, { body: {} });
    },
    openEvents: (signal) => client.send("GET", "/api/events", { headers: asStream, signal }),
    listConnections: () => json("GET", "/api/connections"),
    saveConnection: (input) => json("PUT", "/api/connections", { body: input }),
    deleteConnection: (id, options) => done("DELETE", connection(id), options),
    clearConnectionKey: (id) => done("DELETE", `${connection(id)}/key`),
    activateConnection: (id) => json("POST", `${connection(id)}/activate`, { body: {} }),
    testConnection: (input) => json("POST", "/api/connections/test", { body: input }),
    discoverServers: () => json("POST", "/api/discover", { body: {} }),
    getSettings: () => json("GET", "/api/settings"),
    changeSettings: (changes) => json("PATCH", "/api/settings", { body: changes }),
    getHealth: () => json("GET", "/api/health"),
    getSetupStatus: () => json("GET", "/api/setup/status"),
    completeSetup: () => done("POST", "/api/setup/complete", { body: {} }),
  };
}
