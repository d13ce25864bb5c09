/** Empty screens of a new server: each explains itself and has a button for the next step. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const SCREENS = [
  ["/settings/personas", "New persona"],
  ["/settings/lorebooks", "New lorebook"],
  ["/settings/memory", "Add a memory"],
  ["/settings/images", "Add an image server"],
  ["/settings/tools/calls", "Tools"],
  ["/settings/nowhere", "Settings"],
  ["/search?q=nowhere", "Clear search"],
  ["/library", "New chat"],
  ["/images", "Set up an image server"],
  ["/activity", "New chat"],
] as const;

test("every empty screen has its next step, once", async () => {
  await using app = await openTestApp({ config: { discoverHosts: [], builtinAppInstalled: true } });
  await app.post("/api/setup/complete", {});
  const { page, context, errors } = await openPage(browser, app.url, PHONE);
  for (const [path, name] of SCREENS) {
    await page.goto(app.url + path);
    const step = page.locator(".empty-state").getByRole("button", { name }).or(
      page.locator(".empty-state").getByRole("link", { name }),
    );
    await step.waitFor();
    expect(await step.count(), path).toBe(1);
    await expect.poll(() => findAxeProblems(page), { message: path }).toEqual([]);
  }
  await page.goto(`${app.url}/search?q=nowhere`);
  await page.getByRole("button", { name: "Clear search" }).click();
  await expect.poll(() => page.getByRole("searchbox").inputValue()).toBe("");
  expect(errors).toEqual([]);
  await context.close();
});
