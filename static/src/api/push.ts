/** API calls for notifications on other devices. */
import type { ApiClient } from "./client.ts";
import type { NotifyServer, PagePresence, PushDevice, PushSubscriptionBody } from "./types.ts";

/** Manages push subscriptions. All methods throw `ApiError`. */
export interface PushApi {
  getPublicKey(): Promise<string>;
  listDevices(): Promise<PushDevice[]>;
  putDevice(id: string, subscription: PushSubscriptionBody): Promise<PushDevice>;
  removeDevice(id: string): Promise<void>;
  /** Reports whether a page of the device is visible and in use. */
  reportPresence(id: string, presence: PagePresence): Promise<void>;
  /** Reports the presence of a page without a subscription. @returns Whether the server wants further reports. */
  reportPagePresence(presence: PagePresence): Promise<boolean>;
  getServer(): Promise<NotifyServer>;
  /** @param url `null` removes the server. */
  putServer(server: { kind: NotifyServer["kind"]; url: string | null; token?: string }): Promise<NotifyServer>;
  testServer(): Promise<void>;
}

/** Returns the calls, bound to a client. */
export function pushApi(client: ApiClient): PushApi {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    await (await client.send(method, `/api/push/${path}`, { body })).json();
  const run = async (method: string, path: string, body?: unknown, keepalive = false): Promise<void> => {
    const response = await client.send(method, `/api/push/${path}`, { body, keepalive });
    await response.body?.cancel();
  };
  const device = (id: string) => `subscriptions/${encodeURIComponent(id)}`;
  return {
    getPublicKey: async () => (await call<{ public_key: string }>("GET", "key")).public_key,
    listDevices: () => call("GET", "subscriptions"),
    putDevice: (id, subscription) => call("PUT", device(id), subscription),
    removeDevice: (id) => run("DELETE", device(id)),
    reportPresence: (id, presence) => run("PUT", `${device(id)}/presence`, presence, true),
    reportPagePresence: async (presence) => {
      const response = await client.send("PUT", "/api/push/presence", { body: presence, keepalive: true });
      return (await response.json() as { needed: boolean }).needed;
    },
    getServer: () => call("GET", "server"),
    putServer: (server) => call("PUT", "server", server),
    testServer: () => run("POST", "server/test", {}),
  };
}
