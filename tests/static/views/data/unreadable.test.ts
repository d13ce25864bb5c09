/** Damaged data in the settings, in lists, and its restore, with the real server. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";
import { cutFile, flipSealed } from "../../../helpers/files/damage.ts";
import { type TempFolder, tempFolder } from "../../../helpers/files/storage_folder.ts";
import { say } from "../../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";

let browser: Browser;
let home: TempFolder;
let app: TestApp;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());
beforeEach(async () => {
  home = await tempFolder();
  app = await openTestApp({ config: { builtinAppInstalled: true, backupDir: home.file("backups") } });
  await app.put("/api/setup/complete", {});
  await expect.poll(() => app.services.jobs.list().map(({ state }) => state)).toEqual(["done"]);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

async function open(path: string, options?: BrowserContextOptions): Promise<Page> {
  const { page } = await openPage(browser, app.url, options);
  await page.goto(app.url + path);
  return page;
}

async function damage(): Promise<void> {
  await app.put("/api/conversations/pond", { title: "The pond", messages: [say("m0")] });
  const { id } = await (await app.post("/api/data/backups")).json();
  await app.services.jobs.ended(id);
  await app.post("/api/conversations/pond/messages", { message: say("m1") });
  for (const description of ["At the mill", "At the lake"]) {
    await app.put("/api/characters/heron", { card: { name: "Heron", description } });
    await app.put("/api/personas/baker", { name: "Baker", description });
  }
  await app.get("/api/characters");
  await cutFile(`${app.dataDir}/characters/heron.json`);
  await cutFile(`${app.dataDir}/personas/baker.json`);
  flipSealed(app.dataDir, { table: "block", column: "sealed", where: "conversation_id = 'pond' AND live = 1" });
}

test("damaged cards and personas are marked in their lists and lead to the button that restores them", async () => {
  await damage();
  const page = await open("/characters", PHONE);
  await page.locator(".tile", { hasText: "Heron" }).getByText("Can’t be read").waitFor();
  await page.locator(".tile", { hasText: "Heron" }).click();
  await page.getByRole("heading", { name: "Damaged data" }).waitFor();
  const row = page.locator("section[aria-labelledby=unreadable] li", { hasText: "Character: heron" });
  await row.getByRole("button", { name: "Restore" }).click();
  await page.locator(".toast", { hasText: "Restored the version of" }).waitFor();
  await row.waitFor({ state: "detached" });
  await expect.poll(async () => (await (await app.get("/api/characters/heron")).json()).name).toBe("Heron");
  await page.goto(`${app.url}/settings/personas`);
  await page.locator("li", { hasText: "Baker" }).getByText("Can’t be read").waitFor();
});

test("damage that is found while the page is open appears on it", async () => {
  const page = await open("/settings/data");
  const section = page.locator("section[aria-labelledby=unreadable]");
  await section.getByText("hasn’t been read as a whole yet").waitFor();
  await damage();
  await app.get("/api/conversations/pond");
  await section.locator("li", { hasText: "Chat: pond" }).getByRole("button", { name: "Restore" }).waitFor();
});

test("everything is checked on request; an older state of a chat is restored only after a question", async () => {
  await damage();
  const page = await open("/settings/data");
  const section = page.locator("section[aria-labelledby=unreadable]");
  await section.getByText("hasn’t been read as a whole yet").waitFor();
  await section.getByRole("button", { name: "Check everything now" }).click();
  await section.getByText("3 things can’t be read").waitFor();
  await section.getByText("All stored data was read on").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await section.locator("li", { hasText: "Chat: pond" }).getByRole("button", { name: "Restore" }).click();
  const dialog = page.getByRole("dialog", { name: "Restore an older state?" });
  await dialog.getByRole("button", { name: "Restore the older state" }).click();
  await page.locator(".toast", { hasText: "Restored from the backup of" }).waitFor();
  await section.getByText("2 things can’t be read").waitFor();
  const { messages } = await (await app.get("/api/conversations/pond")).json();
  expect(messages.map(({ id }: { id: string }) => id)).toEqual(["m0"]);
});
