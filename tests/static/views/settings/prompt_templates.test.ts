/** Prompt templates: managed in the settings, inserted in the composer. On the real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test.each([["light", {}], ["dark", PHONE]] as const)(
  "templates are written in the settings, and a slash inserts them (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    await page.goto(`${app.url}/settings/templates`);
    const main = page.getByRole("main");
    await main.getByText("No templates yet").waitFor();
    await main.getByRole("button", { name: "New template" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("two words");
    await dialog.getByText("Use letters, digits, - and _ only").waitFor();
    await dialog.getByLabel("Name").fill("explain");
    await dialog.getByLabel("Text").fill("Explain [[topic]] to [[reader]].");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/template-form-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await main.getByRole("button", { name: "/explain Explain" }).waitFor();
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/templates-${colorScheme}.png` });

    await main.getByRole("button", { name: "New template" }).click();
    await dialog.getByLabel("Name").fill("Explain");
    await dialog.getByText("Another template has this name").waitFor();
    await dialog.getByLabel("Name").fill("greeting");
    await dialog.getByLabel("Text").fill("Good morning!");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });

    // Deleted, and back at its place.
    await holdToasts(page);
    await main.getByRole("button", { name: "Delete explain" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await main.getByRole("button", { name: "/explain Explain" }).waitFor();
    const listStored = async () => {
      const { prompt_templates: stored } = await (await app.get("/api/settings")).json();
      return stored.map(({ name }: { name: string }) => name);
    };
    await expect.poll(listStored).toEqual(["explain", "greeting"]);

    await page.goto(`${app.url}/new`);
    const composer = page.getByLabel("Message", { exact: true });
    await composer.fill("/gree");
    await page.getByRole("option", { name: "/greeting Good morning!" }).waitFor();
    await composer.press("Enter");
    await expect.poll(() => composer.inputValue()).toBe("Good morning!");
    await composer.fill("/expl");
    await page.getByRole("option", { name: /^\/explain/ }).click();
    await dialog.getByLabel("topic").fill("tides");
    await dialog.getByLabel("reader").fill("a child");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/template-insert-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Insert" }).click();
    await expect.poll(() => composer.inputValue()).toBe("Explain tides to a child.");
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("a template that another device adds meanwhile isn't lost", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/templates`);
  await page.getByRole("button", { name: "New template" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("mine");
  await dialog.getByLabel("Text").fill("Mine.");
  // The other device saves between this one's read and write.
  let isFirst = true;
  await page.route("**/api/settings", async (route) => {
    if (route.request().method() === "PATCH" && isFirst) {
      isFirst = false;
      await app.patch("/api/settings", { prompt_templates: [{ name: "theirs", text: "Theirs." }] });
    }
    await route.continue();
  });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const { prompt_templates: stored } = await (await app.get("/api/settings")).json();
  expect(stored.map(({ name }: { name: string }) => name)).toEqual(["theirs", "mine"]);
  await context.close();
});
