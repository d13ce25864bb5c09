/** Earlier versions in the editors, on the page with the real server. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { plainPng } from "../../../helpers/files/cards.ts";
import { FakeA1111 } from "../../../helpers/fakes/fake_a1111.ts";
import { wavFile } from "../../../helpers/fakes/fake_speech.ts";
import { noise } from "../../../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { eventually, PHONE, slowDown } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
let app: TestApp;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true, maxUploadBodyBytes: 200_000 } });
  await app.put("/api/setup/complete", {});
});
afterEach(() => app[Symbol.asyncDispose]());

const PNG = { headers: { "content-type": "image/png" } };
const json = async (path: string) => await (await app.get(path)).json();
const entry = (page: Page, cause: string) => page.locator(".history-list > li", { hasText: cause }).first();
async function open(path: string, options?: BrowserContextOptions): Promise<Page> {
  const { page } = await openPage(browser, app.url, options);
  await page.goto(app.url + path);
  return page;
}
async function restore(page: Page, cause: string): Promise<void> {
  await entry(page, cause).locator("summary").click();
  await entry(page, cause).getByRole("button", { name: /^Restore/ }).click();
}
async function addFox(): Promise<void> {
  await app.put("/api/characters/fox", { name: "Fox", description: "A red fox." });
  await app.put("/api/characters/fox/avatar", plainPng(60, 80), PNG);
  await app.put("/api/characters/fox", { name: "Fox", description: "A grey fox." });
}

test("typed text becomes a version, Restore restores earlier text, and Undo what it replaced", async () => {
  await addFox();
  const page = await open("/characters/fox/edit");
  await page.getByLabel("Description").fill("A silver fox.");
  await page.getByRole("button", { name: "Earlier versions" }).click();
  await expect.poll(() => page.locator(".history-list > li").count()).toBe(3);
  await entry(page, "Saved").locator("summary").click();
  await entry(page, "Saved").locator("del", { hasText: "grey" }).waitFor();
  await entry(page, "Saved").locator("ins", { hasText: "silver" }).waitFor();
  await entry(page, "Saved").locator(".history-picture img").waitFor();
  await holdToasts(page);
  await entry(page, "Saved").getByRole("button", { name: /^Restore/ }).click();
  await eventually(() => page.getByLabel("Description").inputValue(), (text) => text === "A grey fox.");
  await page.locator(".toast", { hasText: "Fox restored" }).getByRole("button", { name: "Undo" }).click();
  await eventually(() => page.getByLabel("Description").inputValue(), (text) => text === "A silver fox.");
  expect((await json("/api/characters/fox")).card.data.description).toBe("A silver fox.");
});

test("the version list works by keyboard alone, and Escape closes it", async () => {
  await addFox();
  const page = await open("/characters/fox/edit");
  const button = page.getByRole("button", { name: "Earlier versions" });
  await button.focus();
  await page.keyboard.press("Enter");
  const row = entry(page, "Saved");
  await row.locator("summary").focus();
  await page.keyboard.press("Enter");
  await row.locator("ins").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".history-list").waitFor({ state: "detached" });
  await eventually(() => button.evaluate((element) => element === document.activeElement), Boolean);
  await page.keyboard.press("Enter");
  await entry(page, "Saved").locator("summary").focus();
  await page.keyboard.press("Enter");
  await entry(page, "Saved").getByRole("button", { name: /^Restore/ }).press("Enter");
  await eventually(
    async () => (await json("/api/characters/fox")).card.data.description,
    (text) => text === "A red fox.",
  );
});

test("restores an earlier text of a persona", async () => {
  await app.put("/api/personas/me", { name: "Robin", description: "A sailor." });
  await app.put("/api/personas/me", { name: "Robin", description: "A pilot." });
  const page = await open("/settings/personas/me");
  await page.getByRole("button", { name: "Earlier versions" }).click();
  await restore(page, "Saved");
  await eventually(() => page.getByLabel("Description").inputValue(), (text) => text === "A sailor.");
});

test("restores earlier nodes of a workflow", async () => {
  for (const text of ["first", "second"]) {
    await app.put("/api/image/workflows/w1", { "1": { class_type: "SaveImage", inputs: { text } } });
  }
  const page = await open("/settings/images");
  await page.getByRole("button", { name: "Edit: w1" }).click();
  await page.getByRole("button", { name: "Earlier versions" }).click();
  await entry(page, "Saved").locator("summary").click();
  await entry(page, "Saved").getByRole("heading", { name: "1 SaveImage" }).waitFor();
  await entry(page, "Saved").locator("del", { hasText: "first" }).waitFor();
  await entry(page, "Saved").getByRole("button", { name: /^Restore/ }).click();
  await eventually(async () => (await json("/api/image/workflows/w1"))["1"].inputs.text, (text) => text === "first");
});

test("restores an earlier name of a voice", async () => {
  const form = new FormData();
  form.append("audio", new Blob([wavFile(0.5)]), "x.wav");
  form.append("name", "Grandma");
  const { id } = await (await app.post("/api/voices", form)).json();
  await app.patch(`/api/voices/${id}`, { name: "Aunt" });
  const page = await open("/settings/voice");
  await page.getByRole("button", { name: /More.*Aunt/ }).click();
  await page.getByRole("menuitem", { name: "Earlier versions" }).click();
  await restore(page, "Saved");
  await page.getByRole("heading", { name: "Grandma" }).waitFor();
});

test("undoes a generated portrait where it appears", async () => {
  await using backend = new FakeA1111({ picture: noise(40, 60) });
  await app.put("/api/image/connections", { id: "i1", name: "Painter", kind: "a1111", base_url: backend.url });
  await app.post("/api/image/connections/i1/activate", {});
  await addFox();
  const before = await (await app.get("/api/characters/fox/avatar")).arrayBuffer();
  const page = await open("/characters/fox");
  await slowDown(page, /\/avatar\/(generate|status)$/);
  await holdToasts(page);
  await page.getByRole("button", { name: "Generate portrait" }).click();
  const toast = page.locator(".toast", { hasText: "Portrait generated" });
  await toast.waitFor();
  expect((await json("/api/characters/fox/versions"))[0].cause).toBe("portrait");
  await toast.getByRole("button", { name: "Undo" }).click();
  const length = async () => (await (await app.get("/api/characters/fox/avatar")).arrayBuffer()).byteLength;
  await eventually(length, (bytes) => bytes === before.byteLength);
  expect(await (await app.get("/api/characters/fox/avatar")).arrayBuffer()).toEqual(before);
});

test("warns about an export over the import limit", async () => {
  await addFox();
  await app.put("/api/characters/fox", { name: "Fox", description: "x".repeat(100_000) });
  const page = await open("/characters/fox");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Export as PNG" }).click();
  await page.locator(".toast", { hasText: "larger than Parlor’s import limit" }).waitFor();
});

test.each([["light", "wide", {}], ["dark", "phone", PHONE]] as const)(
  "axe finds nothing in the list, and it fits the width: %s, %s",
  async (colorScheme, width, device) => {
    await addFox();
    const page = await open("/characters/fox/edit", { ...device, colorScheme });
    await page.getByRole("button", { name: "Earlier versions" }).click();
    await entry(page, "Saved").locator("summary").click();
    await entry(page, "Saved").locator("ins").first().waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    const widthPx = page.viewportSize()!.width;
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(widthPx);
    const folder = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
    if (folder) {
      await page.screenshot({ path: `${folder}/versions-${colorScheme}-${width}.png` });
      await page.keyboard.press("Escape");
      await page.screenshot({ path: `${folder}/editor-${colorScheme}-${width}.png` });
      await app.put("/api/personas/me", { name: "Robin", description: "A sailor." });
      await page.goto(`${app.url}/settings/personas/me`);
      await page.getByRole("button", { name: "Earlier versions" }).click();
      await page.getByText("No earlier versions yet").waitFor();
      await page.screenshot({ path: `${folder}/persona-${colorScheme}-${width}.png` });
      await app.put("/api/image/workflows/w1", { "1": { class_type: "SaveImage", inputs: {} } });
      await page.goto(`${app.url}/settings/images`);
      await page.getByRole("button", { name: "Edit: w1" }).click();
      await page.getByRole("button", { name: "Earlier versions" }).waitFor();
      await page.screenshot({ path: `${folder}/workflow-${colorScheme}-${width}.png` });
    }
  },
);
