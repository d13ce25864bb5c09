/** The calls about notifications on other devices. */
import type { ApiClient } from "./client.ts";
import type { NotifyServer, PushDevice } from "./types.ts";

/** What a browser gives for a subscription, with a name. */
export interface PushSubscriptionBody {
  endpoint: string;
  keys: { p256dh: string; auth: string };
  label: string;
}

/** Calls throw `ApiError` as the client does. */
export interface PushApi {
  getPublicKey(): Promise<string>;
  listDevices(): Promise<PushDevice[]>;
  putDevice(id: string, subscription: PushSubscriptionBody): Promise<PushDevice>;
  removeDevice(id: string): Promise<void>;
  /** Says that a page of the device is visible, or no longer. */
  notePresence(id: string, page: string, isVisible: boolean): Promise<void>;
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
    notePresence: (id, page, visible) => done("PUT", `${device(id)}/presence`, { page, visible }, true),
    getServer: () => call("GET", "server"),
    putServer: (server) => call("PUT", "server", server),
    testServer: () => done("POST", "server/test", {}),
  };
}
