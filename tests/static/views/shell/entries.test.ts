/** Any page of another site can open any address of the page. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { TEST_MS } from "../../../helpers/app/patience.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const ADDITIONS = "?q=x&server=http://127.0.0.1:9&url=https://e.test/&problem=full&code=1#code=1&run=1&port=9&name=x";
const PATHS = [
  "/",
  "/new",
  "/temporary",
  "/c/c1",
  "/search",
  "/share",
  "/activity",
  "/library",
  "/library/images",
  "/characters",
  "/characters/browse",
  "/characters/parlor",
  "/characters/parlor/edit",
  "/welcome",
  "/welcome/name",
  "/welcome/passkey",
  "/pair",
  "/cli",
  ...[
    ...["", "general", "connections", "connections/new", "models", "images", "images/new", "speech", "tools", "memory"],
    ...["documents", "personas", "presets", "lorebooks", "privacy", "data", "about", "trash", "import"],
  ].map((section) => `/settings/${section}`),
];

test("no address of the page changes anything before a key, click or scroll", {
  tags: ["J06"],
  timeout: 3 * TEST_MS,
}, async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await app.put("/api/conversations/c1", { title: "Kept", messages: [{ id: "m1", role: "user", content: "Hello" }] });
  const { page, context, errors } = await openPage(browser, app.url);
  let path = "";
  const writes: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    // Looking for servers only reads, at the addresses that the owner configured.
    if (request.method() !== "GET" && !/\/(?:discover|presence)$/.test(pathname)) {
      writes.push(`${path}: ${request.method()} ${pathname}`);
    }
  });
  for (path of PATHS) {
    await page.goto(app.url + path + ADDITIONS);
    await page.locator("main, .gate, .welcome").first().waitFor();
    await expect.poll(() => page.getByRole("status").filter({ hasText: "Loading" }).count()).toBe(0);
    await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
  }
  expect(writes).toEqual([]);
  expect(errors).toEqual([]);
  await context.close();
});
