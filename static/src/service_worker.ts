/**
 * Caches the page on the device, so that it opens offline and an open page always finds its files.
 *
 * The cache has the files of one build, all or none, and never responses of the API: nothing that a user reads is
 * cached. What a user made and the server didn't get waits in the outbox; the worker sends it when the browser wakes it.
 * A new build waits until no page of the old one is open.
 */
import { guardFetch } from "./api/proxy_sign_in.ts";
import { OUTBOX_SYNC, sendEntries } from "./state/app/outbox_store.ts";
import type { ReloadNotice } from "./state/app/browser_parts.ts";
import { keepShare } from "./state/app/shared_content.ts";

/** Set by the build: the list of files, and a name that changes with any of them. */
declare const SHELL_FILES: readonly string[];
declare const SHELL_VERSION: string;

const PREFIX = "parlor-shell-";
const CACHE = PREFIX + SHELL_VERSION;
/** Cache with the push subscription that the server has; state/app/push.ts writes it, too. */
const PUSH_CACHE = "parlor-push";
const CACHED_DEVICE = "/push/device";
/** How long to wait for the server before the cached page is used. */
const PAGE_TIMEOUT_MS = 4000;
/** The same while a page is loaded again for its new code, which only the server has. The old one is still shown. */
const RELOAD_TIMEOUT_MS = 30_000;
/** A page that said so may find that somebody types, and stay. */
const ANNOUNCED_MS = 10_000;
/** Statuses from a proxy whose upstream server is down. */
const GATEWAY_ERRORS = [502, 503, 504];

/** The part of `ServiceWorkerGlobalScope` that is used. The compiler only has the types of a page. */
interface WorkerScope {
  readonly location: Location;
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<WindowClient[]>;
    openWindow(path: string): Promise<unknown>;
  };
  readonly registration: ServiceWorkerRegistration;
  addEventListener(type: "install", listener: (event: InstallEvent) => void): void;
  addEventListener(type: "activate", listener: (event: LifeEvent) => void): void;
  addEventListener(type: "push", listener: (event: PushMessageEvent) => void): void;
  addEventListener(type: "pushsubscriptionchange", listener: (event: SubscriptionChange) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationClick) => void): void;
  addEventListener(type: "fetch", listener: (event: RequestEvent) => void): void;
  addEventListener(type: "sync", listener: (event: SyncEvent) => void): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ReloadNotice>) => void): void;
}

/** Of background synchronization: if the work fails, the browser repeats the event later. */
interface SyncEvent extends LifeEvent {
  readonly tag: string;
}

interface LifeEvent {
  waitUntil(work: Promise<unknown>): void;
}

/** An open page. */
interface WindowClient {
  focus(): Promise<unknown>;
  navigate(path: string): Promise<unknown>;
}

interface PushMessageEvent extends LifeEvent {
  readonly data: { json(): unknown } | null;
}

interface SubscriptionChange extends LifeEvent {
  readonly newSubscription?: PushSubscription | null;
}

interface NotificationClick extends LifeEvent {
  readonly notification: Notification;
}

interface InstallEvent extends LifeEvent {
  /** Lets the browser answer some requests without the worker (Chromium). */
  addRoutes?(rules: { condition: { urlPattern: string }; source: "network" }[]): Promise<void>;
}

interface RequestEvent extends LifeEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

const worker = self as unknown as WorkerScope;

worker.addEventListener("install", (event) => event.waitUntil(Promise.all([cacheShell(), bypassApi(event)])));
worker.addEventListener("activate", (event) => event.waitUntil(deleteOldCaches().then(() => worker.clients.claim())));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== worker.location.origin || url.pathname.startsWith("/api/")) return;
  if (request.method === "POST" && url.pathname === "/share") return event.respondWith(receiveShared(request));
  if (request.method !== "GET") return;
  if (url.pathname.startsWith("/assets/")) event.respondWith(respondWithAsset(request));
  else if (request.mode === "navigate") event.respondWith(respondWithPage(request));
});

/** When pages said that they are about to be loaded again for their new code, by URL. */
const announced = new Map<string, number>();
worker.addEventListener("message", ({ data, ports }) => {
  announced.set(withoutHash(data.reload), Date.now());
  ports[0]?.postMessage("heard");
});

worker.addEventListener("push", (event) => event.waitUntil(showReply(event)));
worker.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renewSubscription(event)));
worker.addEventListener("notificationclick", (event) => event.waitUntil(openReply(event.notification)));

worker.addEventListener("sync", (event) => {
  if (event.tag === OUTBOX_SYNC) event.waitUntil(sendOutbox());
});

/** @throws {Error} if something has to wait longer, so that the browser repeats it */
async function sendOutbox(): Promise<void> {
  const isDone = await sendEntries({ fetch: guardFetch((...request) => fetch(...request)) });
  if (!isDone) throw new Error("The server doesn't respond yet");
}

/** All that a notification says, in the languages of the page. */
const REPLY_READY: Record<string, string> = {
  en: "A reply is ready",
  de: "Eine Antwort ist fertig",
  ja: "返信が完了しました",
};
const REPLY_WAITS: Record<string, string> = {
  en: "A reply needs you",
  de: "Eine Antwort braucht Sie",
  ja: "返信があなたの判断を待っています",
};

const DATA_DAMAGED: Record<string, string> = {
  en: "Stored data is damaged or missing",
  de: "Gespeicherte Daten sind beschädigt oder fehlen",
  ja: "保存されたデータが壊れているか、ありません",
};

/**
 * Shows that a reply is ready or waits for a decision, or that stored data is damaged. The push message is encrypted and only has the ID of the chat;
 * the reply stays on the server.
 */
async function showReply({ data }: PushMessageEvent): Promise<void> {
  const message = (data?.json() ?? {}) as {
    kind?: unknown;
    conversation_id?: unknown;
    language?: unknown;
  };
  const isDamage = message.kind === "damage";
  const bodies = isDamage ? DATA_DAMAGED : message.kind === "approval" ? REPLY_WAITS : REPLY_READY;
  const language = (typeof message.language === "string" ? message.language : navigator.language).split("-")[0]!;
  const id = typeof message.conversation_id === "string" ? message.conversation_id : undefined;
  // Without renotify, a second reply in a chat would replace the first notification in silence.
  const options: NotificationOptions & { renotify: boolean } = {
    body: bodies[language] ?? bodies.en!,
    icon: SHELL_FILES.find((path) => path.includes("icon-192")),
    tag: isDamage ? "damage" : id ?? "reply",
    renotify: true,
    data: { path: isDamage ? "/settings/data" : id === undefined ? "/" : `/c/${encodeURIComponent(id)}` },
  };
  await worker.registration.showNotification("Parlor", options);
}

/**
 * Sends the server the subscription that replaces one the browser has ended, unless the device was removed there. If
 * that fails, the page sends it when it's opened next.
 */
async function renewSubscription({ newSubscription }: SubscriptionChange): Promise<void> {
  const cached: { id: string } | undefined = await (await caches.match(CACHED_DEVICE))?.json();
  if (cached === undefined) return;
  const devices = await callPushApi<{ id: string; label: string }[]>("subscriptions");
  const device = devices.find(({ id }) => id === cached.id);
  if (device === undefined) return;
  const subscription = newSubscription ?? await worker.registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: (await callPushApi<{ public_key: string }>("key")).public_key,
  });
  const { endpoint, keys } = subscription.toJSON();
  await callPushApi(`subscriptions/${encodeURIComponent(device.id)}`, {
    method: "PUT",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ endpoint, keys, label: device.label }),
  });
  await (await caches.open(PUSH_CACHE)).put(CACHED_DEVICE, Response.json({ id: device.id, endpoint }));
}

/** @throws {Error} if the server refuses, for example because the page signs in with a token, which the worker doesn't have */
async function callPushApi<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(`/api/push/${path}`, init);
  if (!response.ok) throw new Error(`Notifications can't be renewed: the server responded with ${response.status}`);
  return await response.json();
}

/** Opens the chat in an open page, else in a new one. */
async function openReply(notification: Notification): Promise<void> {
  notification.close();
  const { path } = notification.data as { path: string };
  const [open] = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (open === undefined) return void await worker.clients.openWindow(path);
  await open.focus().catch(() => {}); // a browser that doesn't count this as a click still shows the chat
  await open.navigate(path);
}

/** Caches one file at a time, because the open page's own requests go first. */
async function cacheShell(): Promise<void> {
  const cache = await caches.open(CACHE);
  try {
    for (const path of SHELL_FILES) {
      // The page has one URL for every build, so the browser's cached copy may be old.
      const isPage = path === "/";
      const cached = isPage ? undefined : await caches.match(path);
      if (cached) await cache.put(path, cached);
      else {
        // Behind a redirect is the sign-in page of a proxy.
        const options: RequestInit = { priority: "low", redirect: "error" };
        await cache.add(new Request(path, { ...options, ...isPage ? { cache: "reload" } : {} }));
      }
    }
  } catch (error) {
    await caches.delete(CACHE);
    throw error;
  }
}

/** Lets API requests bypass the worker, which would cost each of them a message to it and back. */
async function bypassApi(event: InstallEvent): Promise<void> {
  await event.addRoutes?.([{ condition: { urlPattern: "/api/*" }, source: "network" }]);
}

async function deleteOldCaches(): Promise<void> {
  const older = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(older.map((name) => caches.delete(name)));
}

/** Responds with a file. Its name has a hash of its content, so a copy from any build is right. */
async function respondWithAsset(request: Request): Promise<Response> {
  return await caches.match(request.url) ?? await fetch(request);
}

/** Responds with the newest page if the server responds in time, otherwise with the cached one. */
async function respondWithPage(request: Request): Promise<Response> {
  const getCached = async () => await (await caches.open(CACHE)).match("/");
  const url = withoutHash(request.url);
  const isAnnounced = Date.now() - (announced.get(url) ?? 0) < ANNOUNCED_MS;
  announced.delete(url);
  const timeoutMs = isAnnounced ? RELOAD_TIMEOUT_MS : PAGE_TIMEOUT_MS;
  const timeout = new Promise<undefined>((resolve) => setTimeout(resolve, timeoutMs));
  const pending = fetch(request);
  const response = await Promise.race([pending, timeout]).catch(() => undefined);
  if (response !== undefined && !GATEWAY_ERRORS.includes(response.status)) return response;
  return await getCached() ?? response ?? await pending;
}

function withoutHash(url: string): string {
  return url.split("#")[0]!;
}

/** Keeps what was shared until the owner decides on the share screen, and opens it. Nothing is sent. */
async function receiveShared(request: Request): Promise<Response> {
  const problem = await keepShare(await request.formData());
  return Response.redirect(problem === undefined ? "/share" : `/share?problem=${problem}`, 303);
}
