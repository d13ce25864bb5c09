/** The calls about notifications on other devices. */
import type { ApiClient } from "./client.ts";
import type { NotifyServer, PushDevice } from "./types.ts";

/** What a browser gives for a subscription, with a name. */
export interface PushSubscriptionBody {
  endpoint: string;
  keys: { p256dh: string; auth: string };
  label: string;
}

/** What a page says of itself. */
export interface PagePresence {
  /** A random id of the page. */
  page: string;
  visible: boolean;
  /** Someone typed, clicked or scrolled in the last half minute. */
  used: boolean;
}

/** Calls throw `ApiError` as the client does. */
export interface PushApi {
  getPublicKey(): Promise<string>;
  listDevices(): Promise<PushDevice[]>;
  putDevice(id: string, subscription: PushSubscriptionBody): Promise<PushDevice>;
  removeDevice(id: string): Promise<void>;
  /** Says whether a page of the device is visible and used. */
  notePresence(id: string, presence: PagePresence): Promise<void>;
  /** Says the same of a page without a subscription. @returns Whether the server needs to know. */
  notePage(presence: PagePresence): Promise<boolean>;
  getServer(): Promise<NotifyServer>;
  /** @param url `null` removes the server. */
  putServer(server: { kind: NotifyServer["kind"]; url: string | null; token?: string }): Promise<NotifyServer>;
  testServer(): Promise<void>;
}

/** Binds the calls to one client. */
export function pushApi(client: ApiClient): PushApi {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    await (await client.send(method, `/api/push/${path}`, { body })).json();
  const done = async (method: string, path: string, body?: unknown, keepalive = false): Promise<void> => {
    const response = await client.send(method, `/api/push/${path}`, { body, keepalive });
    await response.body?.cancel();
  };
  const device = (id: string) => `subscriptions/${encodeURIComponent(id)}`;
  return {
    getPublicKey: async () => (await call<{ public_key: string }>("GET", "key")).public_key,
    listDevices: () => call("GET", "subscriptions"),
    putDevice: (id, subscription) => call("PUT", device(id), subscription),
    removeDevice: (id) => done("DELETE", device(id)),
    notePresence: (id, presence) => done("PUT", `${device(id)}/presence`, presence, true),
    notePage: async (presence) => {
      const response = await client.send("PUT", "/api/push/presence", { body: presence, keepalive: true });
      return (await response.json() as { needed: boolean }).needed;
    },
    getServer: () => call("GET", "server"),
    putServer: (server) => call("PUT", "server", server),
    testServer: () => done("POST", "server/test", {}),
  };
}
