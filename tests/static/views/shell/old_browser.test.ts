/** A browser without what the page can't do without says so, also where no script runs. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { openBrowser } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("a browser that doesn't know the colors of the page says which ones do; others show nothing of it", async () => {
  await using app = await openTestApp({ uiFolder: await builtUi(), config: { setupCompleted: true } });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${app.url}/new`);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  const note = page.getByText("Parlor needs a newer browser");
  await expect.poll(() => note.isVisible()).toBe(false);
  // An old browser knows neither the function nor the condition that asks for it.
  await page.route("**/assets/*.css", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replaceAll("light-dark(", "unknown-function(") });
  });
  await page.route("**/assets/*.js", (route) => route.abort());
  await page.reload();
  await note.waitFor();
  await page.getByText("Parlor braucht einen neueren Browser").waitFor();
  await context.close();
});
