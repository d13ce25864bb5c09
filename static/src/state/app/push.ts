/** Notifications on this device while no page of it is open: the browser's subscription, and which page is visible. */
import { ApiError } from "../../api/client.ts";
import type { PushApi } from "../../api/push.ts";
import { newId } from "./ids.ts";

/** Where this device keeps the id of its subscription. */
const KEY = "parlor.push";
/** The server counts a page as visible, or used, for 75 s. */
const RENEW_MS = 30_000;
/** Events of someone who uses the page. */
const INPUTS = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"];

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
  reportPresence(api, storage, id);
}

/** Ends the subscription of this device. */
export async function unsubscribe(api: PushApi, storage: Storage | undefined): Promise<void> {
  const id = findPushId(storage);
  const registration = await globalThis.navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  storage?.removeItem(KEY);
  if (reporting) reporting.id = undefined;
  if (id === undefined) return;
  await api.removeDevice(id).catch((thrown) => {
    if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
  });
}

/** What this page reports as. */
interface Reporting {
  /** Id of this device's subscription, if it has one. */
  id: string | undefined;
  /** False once the server needs no reports: nothing is notified. */
  isNeeded: boolean;
  tell(): void;
}

let reporting: Reporting | undefined;

/**
 * Tells the server while this page is visible, so that a device that shows Parlor isn't notified, and while it's used, so
 * that no other device is.
 *
 * @param id Of this device's subscription, if it has one.
 */
export function reportPresence(api: PushApi, storage: Storage | undefined, id: string | undefined): void {
  if (reporting !== undefined) {
    Object.assign(reporting, { id, isNeeded: true });
    return reporting.tell();
  }
  const page = newId();
  let usedAtMs = Date.now();
  let toldAtMs = 0;
  const report = (visible: boolean) => {
    toldAtMs = Date.now();
    const presence = { page, visible, used: visible && toldAtMs - usedAtMs < RENEW_MS };
    // A lost report only means one notification too many or too few.
    if (own.id !== undefined) {
      const reported = own.id;
      api.notePresence(reported, presence).catch((thrown) => {
        // It was removed on another device, or the browser ended the subscription.
        const isGone = thrown instanceof ApiError && thrown.status === 404 && own.id === reported;
        if (isGone) unsubscribe(api, storage).catch(() => {});
      });
    } else if (own.isNeeded) {
      api.notePage(presence).then((isNeeded) => own.isNeeded = isNeeded, () => {});
    }
  };
  const own: Reporting = { id, isNeeded: true, tell: () => report(document.visibilityState === "visible") };
  reporting = own;
  document.addEventListener("visibilitychange", own.tell);
  globalThis.addEventListener("pagehide", () => report(false));
  for (const input of INPUTS) {
    globalThis.addEventListener(input, () => {
      usedAtMs = Date.now();
      if (usedAtMs - toldAtMs >= RENEW_MS) own.tell();
    }, { passive: true, capture: true });
  }
  setInterval(() => own.id !== undefined && document.visibilityState === "visible" && own.tell(), RENEW_MS);
  own.tell();
}
