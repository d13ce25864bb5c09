/**
 * A page whose server is replaced by one with another build of the page.
 *
 * @slow Each test starts two servers and loads the page twice; one waits until the service worker has cached it.
 */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { openBrowser } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type TempFolder, tempFolder } from "../../helpers/files/storage_folder.ts";
import { freePort } from "../../real/helpers/free_port.ts";

let browser: Browser;
let folder: TempFolder;
/** The built page, and a copy of it with other code and another name. */
let builds: { old: string; other: string };
beforeAll(async () => {
  const old = await builtUi();
  folder = await tempFolder();
  const other = folder.file("other");
  await Deno.mkdir(`${other}/assets`, { recursive: true });
  for (const { name, isFile } of Deno.readDirSync(old)) {
    if (isFile && !/\.(?:br|gz)$|^index/.test(name)) Deno.copyFileSync(`${old}/${name}`, `${other}/${name}`);
  }
  for (const { name } of Deno.readDirSync(`${old}/assets`)) {
    if (!/\.(?:br|gz)$/.test(name)) Deno.copyFileSync(`${old}/assets/${name}`, `${other}/assets/${name}`);
  }
  const page = await Deno.readTextFile(`${old}/index.html`);
  const [, script] = /src="\/(assets\/app-[^"]+)"/.exec(page)!;
  const code = await Deno.readTextFile(`${old}/${script}`);
  await Deno.writeTextFile(`${other}/assets/app-other.js`, `${code}\nglobalThis.isOtherBuild = true;`);
  await Deno.writeTextFile(
    `${other}/index.html`,
    page.replace(script!, "assets/app-other.js").replace(/(name="build" content=")\w+/, "$1other"),
  );
  builds = { old, other };
  browser = await openBrowser();
});
afterAll(async () => {
  await browser.close();
  await folder[Symbol.asyncDispose]();
});

let dataDir: string;
let server: TestApp;
let port: number;
async function start(uiFolder: string): Promise<void> {
  server = await openTestApp({ dataDir, uiFolder, port, config: { discoverHosts: ["127.0.0.1:9"] } });
}

beforeEach(async () => {
  dataDir = await Deno.makeTempDir({ prefix: "parlor-updated-" });
  port = freePort();
  await start(builds.old);
  await server.post("/api/setup/complete");
  await server.put("/api/conversations/c1", { title: "Water", messages: [] });
  await server.put("/api/conversations/c2", {
    title: "Sea",
    messages: [{ id: "m0", role: "user", content: "Is it deep?" }, { id: "m1", role: "assistant", content: "Yes." }],
  });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

async function openChat(id = "c1", options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ locale: "en-US", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  let loads = 0;
  page.on("domcontentloaded", () => loads++);
  await page.goto(`http://localhost:${port}/c/${id}`);
  await page.getByLabel("Message", { exact: true }).waitFor();
  return { page, context, loads: () => loads, [Symbol.asyncDispose]: () => context.close() };
}

const hasOtherCode = (page: Page) => page.evaluate(() => "isOtherBuild" in globalThis);
const readField = (page: Page) => page.getByLabel("Message", { exact: true }).inputValue();

/** Replaces the server, and waits until the page knows: it decides before it reads what it may have missed. */
async function upgrade(page: Page): Promise<void> {
  const connected = page.waitForResponse((response) => response.headers()["x-parlor-build"] === "other");
  const reading = page.waitForRequest((request) => request.url().endsWith("/api/setup/status"));
  await server[Symbol.asyncDispose]();
  await start(builds.other);
  await Promise.all([connected, reading]);
}

test("after an upgrade the page has the new code and what was typed, also with the old page in its cache", async () => {
  await using opened = await openChat();
  const { page, loads } = opened;
  await page.evaluate(async () => void await navigator.serviceWorker.ready);
  await page.getByLabel("Message", { exact: true }).fill("Half a sentence");
  // Counts how often the page asks itself whether it may be loaded again.
  await page.evaluate(() =>
    Object.defineProperty(document, "visibilityState", {
      get: () => (document.body.dataset.asked = String(Number(document.body.dataset.asked ?? 0) + 1), "visible"),
    })
  );
  const countAsked = () => page.evaluate(() => Number(document.body.dataset.asked ?? 0));
  await page.clock.setFixedTime(Date.now());
  await page.getByLabel("Message", { exact: true }).press("End");
  await upgrade(page);

  // Time stands still: somebody has just typed.
  await page.getByLabel("Message", { exact: true }).pressSequentially(" and more");
  await expect.poll(async () => (await (await server.get("/api/conversations/c1")).json()).draft)
    .toBe("Half a sentence and more");
  const asked = await countAsked();
  await expect.poll(countAsked).toBeGreaterThan(asked + 1);
  expect([loads(), await hasOtherCode(page)]).toEqual([1, false]);
  await page.clock.setFixedTime(Date.now() + 60_000);
  await expect.poll(() => hasOtherCode(page).catch(() => false)).toBe(true);
  await expect.poll(() => readField(page).catch(() => "")).toBe("Half a sentence and more");
  expect(loads()).toBe(2);
  await expect.poll(() => page.locator(".banner").filter({ visible: true }).count()).toBe(0);
});

const fieldOfEdit = (page: Page) => page.getByRole("textbox", { name: "Message text" });

test.for<[string, (page: Page) => Promise<void>, (page: Page) => Promise<void>]>([
  ["a dialog is open", async (page) => {
    await page.keyboard.press("Control+k");
    await page.locator("dialog[open]").waitFor();
  }, async (page) => {
    await page.locator("dialog[open]").waitFor();
    await page.keyboard.press("Escape");
  }],
  ["a message is edited", async (page) => {
    await page.getByLabel("Message", { exact: true }).press("ArrowUp");
    await fieldOfEdit(page).fill("Is it very deep?");
  }, async (page) => {
    await expect.poll(() => fieldOfEdit(page).inputValue()).toBe("Is it very deep?");
    await fieldOfEdit(page).press("Escape");
  }],
])("the page waits while %s", async ([, begin, end]) => {
  await using opened = await openChat("c2");
  const { page, loads } = opened;
  await page.getByText("Yes.").first().waitFor();
  await begin(page);
  await page.clock.setFixedTime(Date.now() + 60_000);
  await upgrade(page);
  expect([loads(), await hasOtherCode(page)]).toEqual([1, false]);
  await end(page);
  await page.clock.setFixedTime(Date.now() + 120_000);
  await expect.poll(() => hasOtherCode(page).catch(() => false)).toBe(true);
});

test("a page gets its new code also from a server that is slower than the service worker waits for otherwise", async () => {
  await using opened = await openChat("c2");
  const { page, context, loads } = opened;
  await page.getByText("Yes.").first().waitFor();
  await page.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated");
  await context.serviceWorkers().at(-1)!.evaluate(() => {
    const { fetch, setTimeout } = globalThis;
    const isShort = (ms = 0) => ms <= 4000; // PAGE_TIMEOUT_MS
    Object.assign(globalThis, {
      setTimeout: (act: () => void, ms?: number) => setTimeout(act, isShort(ms) ? 0 : ms),
      fetch: async (...request: Parameters<typeof fetch>) => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        return await fetch(...request);
      },
    });
  });
  await upgrade(page);
  await expect.poll(() => hasOtherCode(page).catch(() => false)).toBe(true);
  expect(loads()).toBe(2);
});

test("a page that gets the old code again is loaded once, not in a loop", async () => {
  // The service worker would ask the server itself.
  await using opened = await openChat("c1", { serviceWorkers: "block" });
  const { page, context, loads } = opened;
  const old = await Deno.readTextFile(`${builds.old}/index.html`);
  await context.route(
    `http://localhost:${port}/c/c1`,
    (route) => route.fulfill({ contentType: "text/html", body: old }),
  );
  let connections = 0;
  page.on("response", (response) => {
    if (response.headers()["x-parlor-build"] === "other") connections++;
  });
  await page.clock.setFixedTime(Date.now() + 60_000);
  await upgrade(page);
  await expect.poll(() => connections).toBe(2); // the second one after the reload
  await server[Symbol.asyncDispose]();
  await start(builds.other);
  // A page that would load again does it with the third one.
  await expect.poll(() => connections).toBeGreaterThanOrEqual(3);
  await page.getByLabel("Message", { exact: true }).fill("Still here");
  expect([loads(), await hasOtherCode(page), await readField(page)]).toEqual([2, false, "Still here"]);
});
