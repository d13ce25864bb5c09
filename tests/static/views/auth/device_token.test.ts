/** A device that signs in with a token, which images, players and links don't send by themselves. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { makeRgbaPng } from "../../../helpers/files/png_files.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("shows images and saves exports, each fetched with the token", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const picture = new Blob([makeRgbaPng(8, 8, () => [200, 80, 20, 255])], { type: "image/png" });
  expect((await app.put("/api/attachments/fox.png", picture)).status).toBe(201);
  await app.put("/api/conversations/c1", {
    title: "Fox",
    messages: [{ id: "u1", role: "user", content: "Look", attachments: ["fox.png"] }],
  });
  const { page, errors, context } = await openPage(browser, app.url);
  await page.addInitScript(() => localStorage.setItem("parlor.token", "a-token"));
  // The server at this address requires the token.
  const refused: string[] = [];
  await page.route(/\/api\//, async (route) => {
    const { authorization, ...headers } = route.request().headers();
    if (authorization === "Bearer a-token") return await route.continue({ headers });
    refused.push(route.request().url());
    await route.fulfill({ status: 401, body: "" });
  });
  await page.goto(`${app.url}/c/c1`);
  const image = page.locator(".message-images img");
  await expect.poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBe(8);
  await page.locator(".message-images button").click();
  await expect.poll(() => page.locator(".zoom-image img").evaluate((element: HTMLImageElement) => element.naturalWidth))
    .toBe(8);
  await page.keyboard.press("Escape");
  const row = page.getByRole("navigation").locator(".chat-row", { hasText: "Fox" });
  await row.getByRole("button").first().click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as Markdown" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^Fox.*\.md$/);
  expect(await Deno.readTextFile(await download.path())).toContain("Look");
  expect(refused).toEqual([]);
  expect(errors).toEqual([]);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await context.close();
});
