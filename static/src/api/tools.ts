/** API calls for tools: decisions, the list of calls, web search, tool servers. */
import type { ApiClient } from "./client.ts";
import type {
  Page,
  ServerTool,
  ToolServer,
  ToolServerBody,
  ToolServerImport,
  WebTools,
  WebToolsPatch,
  WebToolsTest,
} from "./types.ts";
import type {
  ListedToolCallJson as ListedToolCall,
  ToolCallJson,
  ToolDecisionJson as ToolDecision,
} from "../../../routes/schemas/tools.ts";

export type { ListedToolCall, ToolDecision };

/** A tool call. `state` is absent if the client answered the call itself. */
export type ToolCall = Omit<ToolCallJson, "state" | "message_id"> & Partial<Pick<ToolCallJson, "state" | "message_id">>;

/** Identifies a call. */
export interface CallAddress {
  conversationId: string;
  replyId: string;
  callId: string;
}

/** API calls for tools. All calls throw `ApiError`. */
interface ToolsApi {
  decide(at: CallAddress, decision: ToolDecision): Promise<ToolCall>;
  /** Returns a call with its whole result. */
  getCall(at: CallAddress): Promise<ToolCall>;
  listCalls(cursor?: string): Promise<Page<ListedToolCall>>;
  getWeb(): Promise<WebTools>;
  changeWeb(changes: WebToolsPatch): Promise<WebTools>;
  testWeb(searchUrl: string): Promise<WebToolsTest>;
  setWebPermission(name: string, permission: "ask" | "allow" | "deny"): Promise<void>;
}

/** Returns the calls, bound to a client. */
export function toolsApi(client: ApiClient): ToolsApi {
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return await (await client.send(method, path, { body })).json() as T;
  }
  const callPath = ({ conversationId, replyId, callId }: CallAddress) =>
    `/api/chat/replies/${encodeURIComponent(replyId)}/tool_calls/${encodeURIComponent(callId)}?conversation_id=${
      encodeURIComponent(conversationId)
    }`;
  return {
    decide: (at, decision) => json("POST", callPath(at), decision),
    getCall: (at) => json("GET", callPath(at)),
    listCalls: (cursor) =>
      json("GET", `/api/tools/calls${cursor === undefined ? "" : `?cursor=${encodeURIComponent(cursor)}`}`),
    getWeb: () => json("GET", "/api/tools/web"),
    changeWeb: (changes) => json("PUT", "/api/tools/web", changes),
    testWeb: (search_url) => json("POST", "/api/tools/web/test", { search_url }),
    async setWebPermission(name, permission) {
      await json("PATCH", `/api/tools/web/tools/${encodeURIComponent(name)}`, { permission });
    },
  };
}

/** API calls for tool servers. All calls throw `ApiError`. */
interface ToolServersApi {
  list(): Promise<ToolServer[]>;
  put(id: string, body: ToolServerBody): Promise<ToolServer>;
  /** @param options.keepalive Finishes although the page closes. */
  remove(id: string, options?: { keepalive?: boolean }): Promise<void>;
  test(id: string): Promise<ToolServer>;
  /** Adds the servers of another client's JSON. */
  importList(json: Record<string, unknown>): Promise<ToolServerImport>;
  setPermission(id: string, tool: string, permission: ServerTool["permission"]): Promise<ServerTool>;
  /** Returns the page where the owner signs in. */
  startSignIn(id: string): Promise<string>;
  signOut(id: string): Promise<void>;
}

/** Returns the calls, bound to a client. */
export function toolServersApi(client: ApiClient): ToolServersApi {
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return await (await client.send(method, path, { body })).json() as T;
  }
  const path = (id: string, rest = "") => `/api/tools/servers/${encodeURIComponent(id)}${rest}`;
  return {
    list: () => json("GET", "/api/tools/servers"),
    put: (id, body) => json("PUT", path(id), body),
    remove: async (id, options) => void await client.send("DELETE", path(id), options),
    test: (id) => json("POST", path(id, "/test")),
    importList: (list) => json("POST", "/api/tools/servers/import", list),
    setPermission: (id, tool, permission) =>
      json("PATCH", path(id, `/tools/${encodeURIComponent(tool)}`), { permission }),
    startSignIn: async (id) => (await json<{ auth_url: string }>("POST", path(id, "/sign-in"))).auth_url,
    signOut: async (id) => void await client.send("DELETE", path(id, "/sign-in")),
  };
}
