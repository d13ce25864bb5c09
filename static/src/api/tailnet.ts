/** The calls about the node in the owner's tailnet. */
import type { TailnetStatus } from "./types.ts";
import type { ApiClient } from "./client.ts";

/** The calls. Every one throws `ApiError` as the client does. */
export interface TailnetApi {
  getTailnet(): Promise<TailnetStatus>;
  /** Switches it on, renames it, or starts it again. */
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
