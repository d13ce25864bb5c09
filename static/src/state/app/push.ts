/** Notifications on this device while no page of it is open: the browser's subscription, and which page is visible. */
import { ApiError } from "../../api/client.ts";
import type { PushApi } from "../../api/push.ts";
import { newId } from "./ids.ts";

/** Where this device keeps the id of its subscription. main.tsx reads it, too. */
const KEY = "parlor.push";
/** The server counts a page as visible for 75 s. */
const RENEW_MS = 30_000;

/** Returns whether this browser supports Web Push here. On an iPhone only the app on the home screen does. */
export function canPush(window: Window): boolean {
  return window.isSecureContext && "serviceWorker" in window.navigator && "PushManager" in window;
}

/** Returns the id of this device's subscription. */
export function findPushId(storage: Storage | undefined): string | undefined {
  return storage?.getItem(KEY) ?? undefined;
}

/**
 * Subscribes this device. The permission for notifications must have been granted.
 *
 * @throws {ApiError} of the server; what the browser rejects with
 */
export async function subscribe(api: PushApi, storage: Storage | undefined, label: string): Promise<void> {
  const { serviceWorker } = globalThis.navigator;
  await serviceWorker.register("/service_worker.js");
  const { pushManager } = await serviceWorker.ready;
  // One made with another key, such as that of an earlier installation, can't be used.
  await (await pushManager.getSubscription())?.unsubscribe();
  const applicationServerKey = await api.getPublicKey();
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  const { endpoint, keys } = subscription.toJSON() as { endpoint: string; keys: { p256dh: string; auth: string } };
  const id = findPushId(storage) ?? newId();
  await api.putDevice(id, { endpoint, keys, label });
  storage?.setItem(KEY, id);
  reportPresence(api, id);
}

/** Ends the subscription of this device. */
export async function unsubscribe(api: PushApi, storage: Storage | undefined): Promise<void> {
  const id = findPushId(storage);
  const registration = await globalThis.navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  storage?.removeItem(KEY);
  if (id === undefined) return;
  await api.removeDevice(id).catch((thrown) => {
    if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
  });
}

let reported: string | undefined;

/** Tells the server while this page is visible, so that a device that shows Parlor isn't notified. */
export function reportPresence(api: PushApi, id: string): void {
  if (reported === id) return;
  reported = id;
  const page = newId();
  const tell = () => {
    // A lost report only means one notification too many or too few.
    api.notePresence(id, page, document.visibilityState === "visible").catch(() => {});
  };
  document.addEventListener("visibilitychange", tell);
  globalThis.addEventListener("pagehide", () => api.notePresence(id, page, false).catch(() => {}));
  setInterval(() => document.visibilityState === "visible" && tell(), RENEW_MS);
  tell();
}
