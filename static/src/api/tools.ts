/** Calls about tools: decisions, the list of calls, web search, tool servers. */
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

/** How far a call is. `unknown`: the server was killed while it ran. */
type ToolCallState = "pending" | "running" | "done" | "failed" | "denied" | "unknown";

/** A call of a tool. */
export interface ToolCall {
  id: string;
  /** The name that the model used. */
  name: string;
  /** A JSON object as text. */
  arguments: string;
  /** Absent for calls that a client answered itself. */
  state?: ToolCallState;
  /** The result as the model sees it. */
  result?: string;
  /** The whole result, if the model saw less of it. */
  result_full?: string;
  server_id?: string;
  server_name?: string;
  tool_name?: string;
  /** What the server says of the tool's effects. */
  hints?: { readOnly?: boolean; destructive?: boolean };
  decided_by?: string;
  duration_ms?: number;
  /** What the model wanted, if the owner changed the arguments. */
  proposed_arguments?: string;
}

/** Where a call is. */
export interface CallAddress {
  conversationId: string;
  replyId: string;
  callId: string;
}

/** The owner's decision on a call that waits. */
export interface ToolDecision {
  decision: "allow" | "deny";
  /** Changed arguments, as JSON. */
  arguments?: string;
  remember?: "chat" | "always";
}

/** One call in the list of all calls. */
export interface ListedToolCall {
  conversation_id: string;
  message_id: string;
  call: ToolCall;
  decided_by?: string | null;
  decided_at?: string | null;
  duration_ms?: number | null;
}

/** The calls about tools. They throw `ApiError` as the client does. */
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

/** Binds the calls to one client. */
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

/** The calls about tool servers. They throw `ApiError` as the client does. */
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

/** Binds the calls to one client. */
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
