/** Hard cases of layout, on the real server: names of 200 characters without a break, touch, long pages, forced colors. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk".repeat(4).slice(0, 200);

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const isSideways = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
const heightOf = async (page: Page, name: string) => (await page.getByLabel(name).first().boundingBox())!.height;

test.each([["phone", PHONE], ["desktop", {}]] as const)(
  "overlong names stay in their place (%s)",
  async (_, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true, discoverHosts: [] } });
    await app.put("/api/characters/long", { card: { name: LONG, first_mes: LONG, tags: [LONG] } });
    await app.put("/api/characters/fox", { card: { name: "Fox", first_mes: "Hush." } });
    await app.put("/api/personas/p1", { name: LONG, description: LONG });
    await app.put("/api/presets/s1", {
      name: LONG,
      sampler: { temperature: 0.7 },
      prompts: [],
      prompt_order: [],
      rest: {},
    });
    await app.put("/api/connections", { name: LONG, base_url: "http://127.0.0.1:9", kind: "openai", model: LONG });
    await app.put("/api/conversations/c1", {
      title: LONG,
      participants: [{ character_id: "long" }, { character_id: "fox" }],
      messages: [{ id: "m1", role: "assistant", content: LONG, character_id: "long" }],
    });
    const { page, context, errors } = await openPage(browser, app.url, device);

    await page.goto(`${app.url}/c/c1`);
    await page.getByRole("button", { name: "Fox", exact: true }).waitFor();
    await page.getByRole("button", { name: LONG, exact: true }).first().waitFor();
    await expect.poll(() => isSideways(page)).toBe(false);

    for (
      const [path, heading] of [["/settings/presets/s1", "h2"], ["/characters/long", ".character-text h2"]] as const
    ) {
      await page.goto(app.url + path);
      const name = page.locator(`main ${heading}`, { hasText: LONG }).first();
      await name.waitFor();
      const { height, lines } = await name.evaluate((element) => ({
        height: element.clientHeight,
        lines: Math.ceil(element.clientHeight / parseFloat(getComputedStyle(element).lineHeight)),
      }));
      expect([path, lines <= 3, height > 0]).toEqual([path, true, true]);
      await expect.poll(() => isSideways(page)).toBe(false);
    }
    for (const path of ["presets", "personas", "connections", "trash"]) {
      await page.goto(`${app.url}/settings/${path}`);
      await page.getByRole("main").getByRole("heading", { level: 2 }).waitFor();
      await expect.poll(async () => [path, await isSideways(page)]).toEqual([path, false]);
    }
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("touch targets are 44 px high, also in the gallery and the hub search", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url, PHONE);
  await page.goto(`${app.url}/characters`);
  await page.getByLabel("Search characters").waitFor();
  for (const name of ["Search characters", "Tag", "Sort by"]) {
    await expect.poll(async () => [name, await heightOf(page, name)]).toEqual([name, 44]);
  }
  await page.goto(`${app.url}/settings/models`);
  await page.getByLabel("Format").waitFor();
  await expect.poll(() => heightOf(page, "Format")).toBeGreaterThanOrEqual(44);
  await context.close();
});

test("keeps the settings sections visible while a long page scrolls", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/data`);
  const about = page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "About" });
  await page.getByRole("heading", { name: "Backups" }).scrollIntoViewIfNeeded();
  await page.locator(".settings").evaluate((element) => element.scrollTop = element.scrollHeight);
  await expect.poll(() => page.locator(".settings").evaluate((element) => element.scrollTop)).toBeGreaterThan(100);
  const search = page.getByRole("searchbox", { name: "Search settings" });
  await expect.poll(async () => (await search.boundingBox())!.y).toBeGreaterThan(0);
  await expect.poll(async () => (await about.boundingBox())!.y).toBeGreaterThan((await search.boundingBox())!.y);
  await context.close();
});

test("in forced colors, switches show their state and the current section is marked", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await app.put("/api/presets/s1", {
    name: "Calm",
    sampler: { temperature: 0.7 },
    prompts: [],
    prompt_order: [],
    rest: {},
  });
  const { page, context } = await openPage(browser, app.url, { forcedColors: "active" });
  await page.goto(`${app.url}/settings/presets/s1`);
  await page.getByRole("tab", { name: "Utility prompts" }).click();
  const join = page.getByRole("switch", { name: "Merge system messages" });
  const knob = () =>
    join.evaluate((element) => [
      getComputedStyle(element).backgroundColor,
      getComputedStyle(element, "::after").backgroundColor,
    ]);
  const [offGround, offKnob] = await knob();
  await join.check();
  expect(offKnob).not.toBe(offGround);
  // The colors pass over into each other.
  await expect.poll(async () => (await knob())[0]).not.toBe(offGround);
  await expect.poll(async () => {
    const [onGround, onKnob] = await knob();
    return onKnob === onGround;
  }).toBe(false);
  const outlineOf = (name: string) =>
    page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name, exact: true })
      .evaluate((link) => getComputedStyle(link).outlineStyle);
  await expect.poll(async () => [await outlineOf("Presets"), await outlineOf("Voice")]).toEqual(["solid", "none"]);
  await context.close();
});
