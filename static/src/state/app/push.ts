/** Push notifications on this device: the browser's subscription, and presence reports of open pages. */
import type { PagePresence } from "../../api/types.ts";
import { ApiError } from "../../api/client.ts";
import type { PushApi } from "../../api/push.ts";
import { registerServiceWorker } from "../../trusted_types.ts";
import { newId } from "./ids.ts";
import { findServiceWorker } from "./browser_parts.ts";

/** localStorage key of this device's subscription id. */
const KEY = "parlor.push";
/** Cache with the subscription that the server has; service_worker.ts reads it, too, and replaces it. */
const CACHE = "parlor-push";
const CACHED_DEVICE = "/push/device";
/** Interval of presence reports. The server keeps a report for 75 s. */
const RENEW_MS = 30_000;
/** Events that count as use of the page. */
const INPUT_EVENTS = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"];

/** Returns whether Web Push works here. On an iPhone, it works only in the installed app. */
export function canPush(window: Window): boolean {
  return window.isSecureContext && findServiceWorker(window.navigator) !== undefined && "PushManager" in window;
}

/** Returns the id of this device's subscription. */
export function findPushId(storage: Storage | undefined): string | undefined {
  return storage?.getItem(KEY) ?? undefined;
}

/**
 * Subscribes this device. The permission for notifications must have been granted.
 *
 * @throws {ApiError} @throws {DOMException} if the browser refuses the subscription
 */
export async function subscribe(api: PushApi, storage: Storage | undefined, label: string): Promise<void> {
  const { serviceWorker } = globalThis.navigator;
  await registerServiceWorker(serviceWorker);
  const { pushManager } = await serviceWorker.ready;
  // An earlier subscription may have another key, for example of an earlier installation.
  await (await pushManager.getSubscription())?.unsubscribe();
  const applicationServerKey = await api.getPublicKey();
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  const { endpoint, keys } = subscription.toJSON() as { endpoint: string; keys: { p256dh: string; auth: string } };
  const id = findPushId(storage) ?? newId();
  await api.putDevice(id, { endpoint, keys, label });
  storage?.setItem(KEY, id);
  await (await caches.open(CACHE)).put(CACHED_DEVICE, Response.json({ id, endpoint }));
  reportPresence(api, storage, id);
}

/** Subscribes this device again if the browser has replaced or lost its subscription, and the server still has it. */
export async function renewSubscription(api: PushApi, storage: Storage | undefined): Promise<void> {
  const id = findPushId(storage);
  if (id === undefined || !canPush(globalThis.window) || Notification.permission !== "granted") return;
  const registration = await globalThis.navigator.serviceWorker.getRegistration();
  const current = await registration?.pushManager.getSubscription();
  const sent: { endpoint: string } | undefined = await (await caches.match(CACHED_DEVICE))?.json();
  if (current && current.endpoint === sent?.endpoint) return;
  const device = (await api.listDevices()).find((each) => each.id === id);
  if (device) await subscribe(api, storage, device.label);
}

/** Ends the subscription of this device. */
export async function unsubscribe(api: PushApi, storage: Storage | undefined): Promise<void> {
  const id = findPushId(storage);
  const registration = await globalThis.navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  storage?.removeItem(KEY);
  await caches.delete(CACHE);
  if (reporter) reporter.id = undefined;
  if (id === undefined) return;
  await api.removeDevice(id).catch((thrown) => {
    if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
  });
}

/** The presence reports of this page. */
interface PresenceReporter {
  /** Id of this device's subscription, if any. */
  id: string | undefined;
  /** False once the server wants no further reports because notifications are off. */
  isNeeded: boolean;
  onRemoved?: () => void;
  report(): void;
}

let reporter: PresenceReporter | undefined;

/**
 * Reports to the server while this page is visible, so that this device isn't notified, and while it's in use, so that
 * no other device is notified.
 *
 * @param id Id of this device's subscription, if any.
 * @param onRemoved Called if the server no longer has the subscription.
 */
export function reportPresence(
  api: PushApi,
  storage: Storage | undefined,
  id: string | undefined,
  onRemoved?: () => void,
): void {
  if (reporter !== undefined) {
    Object.assign(reporter, { id, isNeeded: true }, onRemoved && { onRemoved });
    return reporter.report();
  }
  const page = newId();
  let usedAtMs = Date.now();
  let reportedAtMs = 0;
  const send = (visible: boolean) => {
    reportedAtMs = Date.now();
    const presence = { page, visible, used: visible && reportedAtMs - usedAtMs < RENEW_MS } satisfies PagePresence;
    // If a report is lost, there is one notification too many or too few.
    if (current.id !== undefined) {
      const reportedId = current.id;
      api.reportPresence(reportedId, presence).catch((thrown) => {
        // The subscription was removed on another device or ended by the browser.
        const isGone = thrown instanceof ApiError && thrown.status === 404 && current.id === reportedId;
        if (!isGone) return;
        unsubscribe(api, storage).catch(() => {});
        current.onRemoved?.();
      });
    } else if (current.isNeeded) {
      api.reportPagePresence(presence).then((isNeeded) => current.isNeeded = isNeeded, () => {});
    }
  };
  const current: PresenceReporter = {
    id,
    isNeeded: true,
    onRemoved,
    report: () => send(document.visibilityState === "visible"),
  };
  reporter = current;
  document.addEventListener("visibilitychange", current.report);
  globalThis.addEventListener("pagehide", () => send(false));
  for (const input of INPUT_EVENTS) {
    globalThis.addEventListener(input, () => {
      usedAtMs = Date.now();
      if (usedAtMs - reportedAtMs >= RENEW_MS) current.report();
    }, { passive: true, capture: true });
  }
  setInterval(() => current.id !== undefined && document.visibilityState === "visible" && current.report(), RENEW_MS);
  current.report();
}
