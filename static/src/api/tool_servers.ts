/** The calls about tool servers. */
import type { ApiClient } from "./client.ts";
import type { ServerTool, ToolServer, ToolServerBody, ToolServerImport } from "./types.ts";

/** The calls about tool servers. They throw `ApiError` as the client does. */
export interface ToolServersApi {
  list(): Promise<ToolServer[]>;
  put(id: string, body: ToolServerBody): Promise<ToolServer>;
  remove(id: string): Promise<void>;
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
    remove: async (id) => void await client.send("DELETE", path(id)),
    test: (id) => json("POST", path(id, "/test")),
    importList: (list) => json("POST", "/api/tools/servers/import", list),
    setPermission: (id, tool, permission) =>
      json("PATCH", path(id, `/tools/${encodeURIComponent(tool)}`), { permission }),
    startSignIn: async (id) => (await json<{ auth_url: string }>("POST", path(id, "/sign-in"))).auth_url,
    signOut: async (id) => void await client.send("DELETE", path(id, "/sign-in")),
  };
}
