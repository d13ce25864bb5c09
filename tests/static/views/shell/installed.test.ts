/**
 * The page as an installed app: offline use, updates, and the share target.
 *
 * @slow A service worker stores the whole page before each change of it is tried.
 */
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage, openWatchedPage, type WatchedPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { eventually, sendMessage } from "../../../helpers/browser/ui_page.ts";
import { PUSH_KEYS } from "../../../helpers/files/push_keys.ts";

let browser: Browser;
let builtFolder: string;
/** Most tests share one server and one browser profile, because a worker that is new caches every file of the page. */
let app: TestApp;
let context: BrowserContext;
beforeAll(async () => {
  builtFolder = await builtUi();
  browser = await openBrowser([], "whole browser");
  app = await openTestApp({ config: { setupCompleted: true } });
  const kept = await openKept(app.url, "/new");
  context = kept.context;
  await kept.page.close();
});
afterAll(async () => {
  await browser.close();
  await app[Symbol.asyncDispose]();
});

/** Opens a page of the profile that the tests share. Disposing of it forgets what the page stored. */
async function openShared(path: string, initScript?: { content: string }): Promise<WatchedPage & AsyncDisposable> {
  const watched = await openWatchedPage(context, app.url);
  const { page } = watched;
  if (initScript) await page.addInitScript(initScript);
  await page.goto(app.url + path);
  return {
    ...watched,
    async [Symbol.asyncDispose]() {
      await page.evaluate(() => localStorage.clear());
      await page.close();
      await context.clearPermissions();
      for (const { id } of await (await app.get("/api/push/subscriptions")).json()) {
        await app.delete(`/api/push/subscriptions/${id}`);
      }
    },
  };
}

/** Opens a page and waits until the worker has cached everything and controls the page. */
async function openKept(url: string, path: string) {
  const watched = await openPage(browser, url, { serviceWorkers: "allow" });
  await watched.page.goto(url + path);
  await watched.page.evaluate(async () => void await navigator.serviceWorker.ready);
  await eventually(
    () => watched.page.evaluate(() => navigator.serviceWorker.controller?.state),
    (state) => state === "activated",
  );
  return watched;
}

const keptPaths = (page: Page) =>
  page.evaluate(async () => {
    const requests = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()));
    return requests.flat().map(({ url }) => new URL(url).pathname).sort();
  });

test("the manifest lists icons of the right sizes, and is revalidated like the worker", async () => {
  const answer = await app.get("/manifest.webmanifest");
  expect(answer.headers.get("content-type")).toBe("application/manifest+json");
  const manifest = await answer.json();
  expect(manifest).toMatchObject({ id: "/", name: "Parlor", start_url: "/", display: "standalone" });
  for (const { src, sizes } of manifest.icons) {
    const icon = new DataView(await (await app.get(src)).arrayBuffer());
    expect(`${icon.getUint32(16)}x${icon.getUint32(20)}`).toBe(sizes); // IHDR
  }
  const worker = await app.get("/service_worker.js");
  expect(worker.headers.get("cache-control")).toBe("no-cache");
  expect(worker.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  await worker.body?.cancel();
  const page = await (await app.get("/")).text();
  expect(page).toContain('<link rel="manifest" href="/manifest.webmanifest" crossorigin="use-credentials">');
});

test("caches the files of the build and the page, complete, and nothing of the API", async () => {
  await app.put("/api/conversations/kept", { title: "Kept", messages: [{ id: "m1", role: "user", content: "Hello" }] });
  await using opened = await openShared("/c/kept");
  const { page, errors, foreign } = opened;
  await page.getByRole("log").getByText("Hello").waitFor();
  const built = (await Array.fromAsync(Deno.readDir(`${builtFolder}/assets`), ({ name }) => name))
    .filter((name) => !/\.(br|gz)$/.test(name)).map((name) => `/assets/${name}`);
  await expect.poll(() => keptPaths(page)).toEqual(["/", ...built].sort());
  // API requests bypass the worker.
  const answeredBy = await page.evaluate(async () => {
    await (await fetch("/api/setup/status")).text();
    const [entry] = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/status")).slice(-1);
    return (entry as unknown as { workerFinalSourceType: string }).workerFinalSourceType;
  });
  expect(answeredBy).toBe("network");
  expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  await app.delete("/api/conversations/kept");
});

test("offline, open content stays, other screens open, messages wait, and the page reloads", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
  const app = await openTestApp({ dataDir, config: { setupCompleted: true } });
  await app.put("/api/conversations/c1", { title: "Kept", messages: [{ id: "m1", role: "user", content: "Hello" }] });
  const { page, context } = await openKept(app.url, "/c/c1");
  await page.getByRole("log").getByText("Hello").waitFor();
  await app[Symbol.asyncDispose]();

  await page.locator(".banner.offline").waitFor();
  await page.getByRole("log").getByText("Hello").waitFor();
  await sendMessage(page, "Are you there?");
  await page.locator(".reply-state", { hasText: "Not sent yet" }).waitFor();
  await expect.poll(() => keptPaths(page)).not.toContainEqual(expect.stringContaining("/api/"));
  await page.goto(`${app.url}/settings/about`);
  await page.getByRole("heading", { name: "About" }).waitFor();
  await page.locator(".banner.offline").first().waitFor();
  await page.goto(`${app.url}/c/c1`);
  const waiting = page.locator(".unsent", { hasText: "Are you there?" });
  await waiting.getByText("Not sent yet").waitFor();
  await waiting.getByRole("button", { name: "Discard" }).click();
  await waiting.waitFor({ state: "detached" });
  await page.reload();
  await page.getByText("Couldn’t load").first().waitFor();
  await expect.poll(() => waiting.count()).toBe(0);
  await context.close();
  await Deno.remove(dataDir, { recursive: true });
});

test("a new build waits for open pages of the old one, then replaces it completely", async () => {
  const uiFolder = await Deno.makeTempDir({ prefix: "parlor-ui-" });
  const copied = await new Deno.Command("cp", { args: ["-r", `${builtFolder}/.`, uiFolder] }).output();
  expect(copied.success).toBe(true);
  await using app = await openTestApp({ uiFolder, config: { setupCompleted: true } });
  const { page, context } = await openKept(app.url, "/new");
  const builds = () => page.evaluate(() => caches.keys());
  const [old] = await builds();

  const path = `${uiFolder}/service_worker.js`;
  for (const copy of ["br", "gz"]) await Deno.remove(`${path}.${copy}`);
  const script = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, script.replace(/SHELL_VERSION="\w+"/, 'SHELL_VERSION="newer"'));
  // Cached files aren't requested again.
  for await (const { name } of Deno.readDir(`${uiFolder}/assets`)) {
    if (name.startsWith("icon-512")) await Deno.remove(`${uiFolder}/assets/${name}`);
  }
  await page.evaluate(async () => void await (await navigator.serviceWorker.ready).update());
  await eventually(builds, (names) => names.includes("parlor-shell-newer"));
  expect(await builds()).toContain(old);

  // A new build takes over when no page of the old one is open; a reloading page counts as open.
  const next = await context.newPage();
  const session = await context.newCDPSession(next);
  const states = new Map<string, string>();
  session.on("ServiceWorker.workerVersionUpdated", ({ versions }) => {
    for (const { versionId, status } of versions) states.set(versionId, status);
  });
  await session.send("ServiceWorker.enable");
  await eventually(() => [...states.values()].sort(), (all) => all.join() === "activated,installed");
  await page.close();
  await eventually(() => [...states.values()].sort(), (all) => all.join() === "activated,redundant");
  await next.goto(`${app.url}/new`);
  await expect.poll(() => next.evaluate(() => caches.keys())).toEqual(["parlor-shell-newer"]);
  await context.close();
  await Deno.remove(uiFolder, { recursive: true });
});

test("a push message shows that a reply is ready and nothing else, and a click opens the chat", async () => {
  await app.put("/api/conversations/c1", { title: "Secret", messages: [{ id: "m1", role: "user", content: "Hello" }] });
  await using opened = await openShared("/new");
  const { page, errors } = opened;
  await context.grantPermissions(["notifications"], { origin: app.url });
  const devtools = await context.newCDPSession(page);
  const registration = new Promise<string>((resolve) => {
    devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      if (registrations[0]) resolve(registrations[0].registrationId);
    });
  });
  await devtools.send("ServiceWorker.enable");
  const registrationId = await registration;
  // Until the browser has shown a notification, reading the list can remove it from there.
  const shown: Record<string, string>[] = [];
  devtools.on("BackgroundService.backgroundServiceEventReceived", ({ backgroundServiceEvent: event }) => {
    if (event.eventName !== "Notification displayed") return;
    shown.push(Object.fromEntries(event.eventMetadata.map(({ key, value }) => [key, value])));
  });
  await devtools.send("BackgroundService.startObserving", { service: "notifications" });
  await devtools.send("BackgroundService.setRecording", { service: "notifications", shouldRecord: true });
  const deliver = (kind: string, language: string) =>
    devtools.send("ServiceWorker.deliverPushMessage", {
      origin: app.url,
      registrationId,
      data: JSON.stringify({ kind, conversation_id: "c1", language }),
    });
  await deliver("reply", "de");
  await eventually(() => shown, ({ length }) => length === 1);
  const listTags = () =>
    page.evaluate(async () => {
      const list = await (await navigator.serviceWorker.ready).getNotifications();
      return list.map(({ tag }) => tag);
    });
  await expect.poll(() => listTags()).toEqual(["c1"]);
  // DevTools can't click a notification: the event is what a click sends.
  await context.serviceWorkers().at(-1)!.evaluate(async () => {
    const worker = self as unknown as { registration: ServiceWorkerRegistration };
    const [notification] = await worker.registration.getNotifications();
    const event = Reflect.get(self, "NotificationEvent");
    self.dispatchEvent(new event("notificationclick", { notification }));
  });
  await page.waitForURL("**/c/c1");
  await page.getByRole("log").getByText("Hello").waitFor();
  await eventually(listTags, ({ length }) => length === 0);
  await deliver("approval", "ja");
  await eventually(() => shown, ({ length }) => length === 2);
  expect(shown).toEqual([
    { Title: "Parlor", Body: "Eine Antwort ist fertig" },
    { Title: "Parlor", Body: "返信があなたの判断を待っています" },
  ]);
  expect(errors).toEqual([]);
});

/** The browser's part of Web Push, because no vendor's service can be reached here. `vendor` in localStorage changes the address. */
const FAKE_PUSH = {
  content: `
    const subscription = () => {
      const endpoint = "https://" + (localStorage.getItem("vendor") ?? "push") + ".example.org/x";
      const keys = ${JSON.stringify(PUSH_KEYS)};
      return { endpoint, toJSON: () => ({ endpoint, keys }), unsubscribe: async () => true };
    };
    PushManager.prototype.getSubscription = async () => subscription();
    PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
      if (userVisibleOnly !== true || typeof applicationServerKey !== "string") throw new TypeError();
      return subscription();
    };
  `,
};

test("You turns notifications on and off for this device, names the vendor, and reports visible pages", async () => {
  await context.grantPermissions(["notifications"], { origin: app.url });
  await using opened = await openShared("/settings/general", FAKE_PUSH);
  const { page, errors } = opened;
  const seen: { visible: boolean }[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/presence")) seen.push(request.postDataJSON());
  });
  await page.getByRole("button", { name: "Turn on for this device" }).click();
  await page.getByText("Through push.example.org").waitFor();
  await expect.poll(async () => (await app.get("/api/push/subscriptions")).json()).toMatchObject([{
    vendor: "push.example.org",
  }]);
  await eventually(() => seen, (list) => list.at(-1)?.visible === true);
  seen.length = 0;
  await page.reload();
  await eventually(() => seen, (list) => list.at(-1)?.visible === true);
  await page.getByRole("button", { name: "Turn off for this device" }).click();
  await page.getByRole("button", { name: "Turn on for this device" }).waitFor();
  await expect.poll(async () => (await app.get("/api/push/subscriptions")).json()).toEqual([]);
  expect(errors).toEqual([]);
});

test("a subscription that the browser has replaced is sent again", async () => {
  await context.grantPermissions(["notifications"], { origin: app.url });
  await using opened = await openShared("/settings/general", FAKE_PUSH);
  const { page, errors } = opened;
  const listVendors = async () => {
    const devices: { id: string; vendor: string; label: string }[] = await (await app.get("/api/push/subscriptions"))
      .json();
    return devices.map(({ vendor }) => vendor);
  };
  await page.getByRole("button", { name: "Turn on for this device" }).click();
  await page.getByText("Through push.example.org").waitFor();
  await page.evaluate(() => localStorage.setItem("vendor", "second"));
  await page.reload();
  await expect.poll(listVendors).toEqual(["second.example.org"]);

  // The browser tells the worker while no page is open.
  await page.evaluate(() => localStorage.setItem("vendor", "fourth"));
  await page.goto("about:blank");
  const tellWorker = (vendor: string, isGiven: boolean) =>
    context.serviceWorkers().at(-1)!.evaluate(async ({ vendor, isGiven, keys }) => {
      const endpoint = `https://${vendor}.example.org/x`;
      const subscription = { endpoint, toJSON: () => ({ endpoint, keys }) };
      Reflect.set(PushManager.prototype, "subscribe", () => Promise.resolve(subscription));
      const work: Promise<unknown>[] = [];
      const event = Object.assign(new Event("pushsubscriptionchange"), {
        waitUntil: (promise: Promise<unknown>) => work.push(promise),
        newSubscription: isGiven ? subscription : null,
      });
      self.dispatchEvent(event);
      await Promise.all(work);
    }, { vendor, isGiven, keys: PUSH_KEYS });
  await tellWorker("third", true);
  expect(await listVendors()).toEqual(["third.example.org"]);
  await tellWorker("fourth", false);
  expect(await listVendors()).toEqual(["fourth.example.org"]);
  // The page has nothing left to send.
  const sent: string[] = [];
  page.on("request", (request) => void (request.method() === "PUT" && sent.push(request.url())));
  await page.goto(`${app.url}/new`);
  await eventually(() => sent, (urls) => urls.some((url) => url.endsWith("/presence")));
  // What it would send goes out with its presence, so it has been sent once a later response is here.
  await page.evaluate(async () => await (await fetch("/healthz")).text());
  expect(sent.filter((url) => !url.endsWith("/presence"))).toEqual([]);

  const [device] = await (await app.get("/api/push/subscriptions")).json();
  await app.delete(`/api/push/subscriptions/${device.id}`);
  await tellWorker("fifth", true);
  expect(await listVendors()).toEqual([]);
  expect(errors).toEqual([]);
});

test("a page without notifications reports its use only if something is notified, and a removed device forgets", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context, errors } = await openKept(app.url, "/new");
  // What this page reports, and that it leaves before it has an answer, isn't counted.
  await page.goto("about:blank");
  const isReport = (request: Request) => request.url().endsWith("/presence") && request.postDataJSON().visible === true;
  const seen: { url: string; used: boolean }[] = [];
  page.on("request", (request) => {
    if (isReport(request)) seen.push({ url: request.url(), ...request.postDataJSON() });
  });
  const answered = page.waitForResponse((response) => isReport(response.request()));
  await page.goto(`${app.url}/new`);
  await (await answered).finished();
  // The page has read that response once it has read a later one.
  await page.evaluate(async () => await (await fetch("/healthz")).text());
  expect(seen).toHaveLength(1);
  expect(seen[0]).toMatchObject({ url: `${app.url}/api/push/presence`, used: true });
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.keyboard.press("Shift");
  expect(seen).toHaveLength(1);

  await app.put("/api/push/server", { kind: "ntfy", url: "http://127.0.0.1:9/topic" });
  await page.reload();
  await eventually(() => seen, ({ length }) => length === 2);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await eventually(() => seen, ({ length }) => length === 3);

  // Removed on another device.
  await page.evaluate(() => localStorage.setItem("parlor.push", "gone"));
  await page.reload();
  await eventually(() => page.evaluate(() => localStorage.getItem("parlor.push")), (id) => id === null);
  await page.getByText("Notifications for this device are off").waitFor();
  expect(seen.at(-1)!.url).toContain("/subscriptions/gone/presence");
  expect(errors.filter((text) => !text.includes("404"))).toEqual([]);
  await context.close();
});
