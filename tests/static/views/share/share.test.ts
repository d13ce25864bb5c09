/** Shares of other apps and websites, with the real service worker. */
import { Buffer } from "node:buffer";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { picture } from "../../../helpers/files/pictures.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { eventually } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

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

/** Shares texts and files as the system's share menu does: with a form of the page itself. */
async function share(page: Page, texts: Record<string, string>, files: Parameters<Locator["setInputFiles"]>[0] = []) {
  await page.evaluate((texts) => {
    const form = document.createElement("form");
    Object.assign(form, { action: "/share", method: "post", enctype: "multipart/form-data", id: "shared" });
    for (const [name, value] of Object.entries(texts)) {
      form.append(Object.assign(document.createElement("input"), { name, value }));
    }
    form.append(Object.assign(document.createElement("input"), { name: "files", type: "file", multiple: true }));
    document.querySelector("#shared")?.remove();
    document.body.append(form);
  }, texts);
  await page.locator("#shared [type=file]").setInputFiles(files);
  const loaded = page.waitForEvent("load");
  await page.evaluate(() => document.querySelector<HTMLFormElement>("#shared")!.submit());
  await loaded;
}

/** Lists what the page sends that could change something, from now on. */
function recordWrites(page: Page): string[] {
  const writes: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    // That a page is visible is no change that the owner would have to decide about.
    if (request.method() !== "GET" && pathname.startsWith("/api/") && pathname !== "/api/push/presence") {
      writes.push(`${request.method()} ${pathname}`);
    }
  });
  return writes;
}

const gull = { name: "gull.png", mimeType: "image/png", buffer: Buffer.from(picture(1, 32)) };
const notes = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("One gull.") };

test("shared content is shown, and becomes the draft of a new chat after a click", { tags: ["J05"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context, errors } = await openKept(app.url, "/new");
  const writes = recordWrites(page);
  await share(page, { title: "A gull", text: "Seen today", url: "https://gulls.test/1" }, [gull, notes]);
  const card = page.getByRole("article", { name: "A gull" });
  await card.getByText("Seen today").waitFor();
  await expect.poll(() => card.getByRole("listitem").allInnerTexts()).toEqual([
    expect.stringMatching(/^gull\.png\s+\d+ byte$/),
    expect.stringMatching(/^notes\.txt\s+9 byte$/),
  ]);
  await page.getByText("Received from another app or website.").waitFor();
  expect(writes).toEqual([]);
  await card.getByRole("button", { name: "Add to a message" }).click();
  await page.waitForURL(`${app.url}/new`);
  await page.locator(".document-chip").getByText("notes.txt").waitFor();
  await expect.poll(() => page.getByLabel("Message", { exact: true }).inputValue()).toBe(
    "A gull\n\nSeen today\n\nhttps://gulls.test/1",
  );
  await page.locator(".composer img").waitFor();
  await expect.poll(async () => (await (await app.get("/api/conversations?view=summary")).json()).items).toEqual([]);
  await eventually(() => page.evaluate(() => caches.has("parlor-shared")), (has) => !has);
  expect(errors).toEqual([]);
  await context.close();
});

test("what other sites post to the share address waits, and nothing is sent", { tags: ["J05"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context, errors } = await openKept(app.url, "/new");
  await share(page, { title: "", text: "", url: "https://first.test/" }, [notes]);
  const visited = await context.newPage();
  const writes = recordWrites(visited);
  using site = serveForm(`${app.url}/share`);
  await visited.goto(site.url);
  await visited.waitForURL(`${app.url}/share`);
  await visited.getByRole("article", { name: "Invoice⟨U+202E⟩gpj" }).getByText("https://pay.test/").waitFor();
  // The owner's own still waits, with its file.
  await visited.getByRole("article").filter({ hasText: "https://first.test/" }).getByText("notes.txt").waitFor();
  await visited.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
  expect(writes).toEqual([]);
  // A tab that shows the list has it, too.
  await page.getByRole("article", { name: "Invoice⟨U+202E⟩gpj" }).waitFor();
  await expect.poll(async () => (await app.get("/api/documents")).json()).toEqual([]);
  await visited.goto(`${app.url}/activity`);
  await visited.getByRole("link", { name: "2 received items from other apps or websites" }).click();
  await visited.getByRole("button", { name: "Delete “Invoice⟨U+202E⟩gpj”" }).click();
  for (const tab of [visited, page]) {
    await eventually(() => tab.getByRole("article").count(), (count) => count === 1);
  }
  expect(errors).toEqual([]);
  await context.close();
});

test("keeps 10 shares for 7 days, refuses more, and drops none for a later one", { tags: ["J05"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context, errors } = await openKept(app.url, "/new");
  for (let n = 1; n <= 11; n++) await share(page, { title: `Share ${n}`, text: "", url: "" }, n === 1 ? [notes] : []);
  await page.getByText("10 items or 100 MB are already waiting").waitFor();
  const titles = () => page.getByRole("article").getByRole("heading").allInnerTexts();
  await expect.poll(titles).toEqual(Array.from({ length: 10 }, (_, n) => `Share ${10 - n}`));
  await share(page, { title: "", text: " ", url: "" });
  await page.getByText("The latest item was empty.").waitFor();
  await page.evaluate(async () => {
    const cache = await caches.open("parlor-shared");
    for (const request of await cache.keys()) {
      const value = await (await cache.match(request))!.json().catch(() => undefined);
      if (!["Share 1", "Share 2"].includes(value?.title)) continue;
      await cache.put(request, Response.json({ ...value, time: Date.now() - 8 * 24 * 60 * 60 * 1000 }));
    }
  });
  await share(page, { title: "Share 12", text: "", url: "" });
  await page.getByRole("article", { name: "Share 12" }).waitFor();
  await expect.poll(titles).toEqual(["Share 12", ...Array.from({ length: 8 }, (_, n) => `Share ${10 - n}`)]);
  // What an expired share left is deleted.
  await expect.poll(async () => (await keptPaths(page)).filter((path) => path.startsWith("/shared/"))).toHaveLength(9);
  expect(errors).toEqual([]);
  await context.close();
});

test("without the service worker, the server refuses a share from another site", { tags: ["J05"] }, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const browserPage = await openPage(browser, app.url);
  using site = serveForm(`${app.url}/share`);
  const answer = browserPage.page.waitForResponse(`${app.url}/share`);
  await browserPage.page.goto(site.url).catch(() => {}); // it's left while it loads
  expect((await answer).status()).toBe(403);
  await expect.poll(async () => (await app.get("/api/documents")).json()).toEqual([]);
  const own = await app.request("POST", "/share", null, { redirect: "manual", headers: { "sec-fetch-site": "none" } });
  expect([own.status, own.headers.get("location")]).toEqual([303, "/share?problem=not_ready"]);
  await browserPage.context.close();
});

/** A site on another port whose page posts a form when it's opened. */
function serveForm(action: string): Disposable & { url: string } {
  const page = `<form method="post" enctype="multipart/form-data" action="${action}">
    <input name="title" value="Invoice&#x202E;gpj"><input name="url" value="https://pay.test/"></form>
    <script>document.forms[0].submit();</script>`;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } }),
  );
  return { url: `http://127.0.0.1:${server.addr.port}/`, [Symbol.dispose]: () => void server.shutdown() };
}
