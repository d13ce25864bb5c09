/** The calls about the tailnet node. */
import type { TailnetStatus } from "./types.ts";
import type { ApiClient } from "./client.ts";

/** Calls throw `ApiError` as the client does. */
export interface TailnetApi {
  getTailnet(): Promise<TailnetStatus>;
  /** Turns the node on, renames it, or restarts it. */
  enableTailnet(hostname?: string): Promise<TailnetStatus>;
  disableTailnet(): Promise<TailnetStatus>;
}

/** Binds the calls to one client. */
export function tailnetApi(client: ApiClient): TailnetApi {
  const call = async (method: string, verb: string, body?: unknown): Promise<TailnetStatus> =>
    await (await client.send(method, `/api/tailnet/${verb}`, { body })).json();
  return {
    getTailnet: () => call("GET", "status"),
    enableTailnet: (hostname) => call("POST", "enable", { hostname }),
    disableTailnet: () => call("POST", "disable", {}),
  };
}
