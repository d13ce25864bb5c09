/** The library and the panel with the files of a chat, on the real server. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblemsInBothSchemes,
  findSmallTargets,
  holdToasts,
  openBrowser,
  openPage,
} from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";
import { FakeA1111 } from "../../../helpers/fakes/fake_a1111.ts";
import { uploadDocument } from "../../../helpers/files/document_files.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let browser: Browser;
let app: TestApp;
let images: FakeA1111;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
  images = new FakeA1111();
  app = await openTestApp({ config: { discoverHosts: [], setupCompleted: true } });
  await app.put("/api/image/connections", { id: "b", name: "Forge", kind: "a1111", base_url: images.url });
  const name = "A map of the river and all of its mills, with notes.md";
  const map = await (await uploadDocument(app, name, "# Map\n\nThe mill is old.")).json();
  await uploadDocument(app, "keys.md", "# Keys");
  const read = { role: "user", content: "Read it.", documents: [{ id: map.id, use: "auto" }] };
  for (const [n, title] of ["Mill", "River", "Bridge", "Harbor"].entries()) {
    await app.put(`/api/conversations/c${n}`, {
      title,
      messages: [{ ...read, id: "u1" }, { id: "a1", role: "assistant", content: "An old mill, then." }],
    });
  }
  const draw = (body: Record<string, unknown>) => app.post("/api/image/generate", body);
  await draw({ prompt: "a heron", seed: 5 });
  await draw({ prompt: "a red fox in the fern", seed: 7, conversation_id: "c0", message_id: "a1" });
});
afterAll(async () => {
  await browser.close();
  await app[Symbol.asyncDispose]();
  await images[Symbol.asyncDispose]();
});

async function open(path: string, options: BrowserContextOptions = {}) {
  const watched = await openPage(browser, app.url, options);
  await watched.page.goto(app.url + path);
  return watched;
}

async function look(page: Page, name: string): Promise<void> {
  await expect.poll(() => findAxeProblemsInBothSchemes(page), { message: name }).toEqual([]);
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/library-${name}.png` });
}

test("lists the documents with their chats, finds, opens, renames and deletes them", async () => {
  const { page, context, errors } = await open("/new");
  await page.getByRole("link", { name: "Library" }).click();
  await page.waitForURL(/\/library$/);
  const rows = page.getByRole("list", { name: "Documents" }).getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(2);
  const map = rows.filter({ hasText: "A map of the river" });
  await map.getByText("Markdown · 1 section").waitFor();
  await rows.filter({ hasText: "keys.md" }).getByText("Not used in a chat").waitFor();
  await expect.poll(() => map.getByRole("link").allInnerTexts()).toEqual(["Mill", "Harbor", "Bridge"]);
  await look(page, "documents-wide");
  await map.getByRole("button", { name: "1 more" }).click();
  await expect.poll(() => map.getByRole("link").count()).toBe(4);
  await map.getByRole("button", { name: /^A map/ }).click();
  await page.getByRole("dialog").getByText("The mill is old.").waitFor();
  await page.keyboard.press("Escape");

  await page.getByLabel("Search by name").fill("KEYS");
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByLabel("Search by name").fill("nothing of it");
  await page.getByText("No results").waitFor();
  await page.getByLabel("Search by name").fill("");
  await expect.poll(() => rows.count()).toBe(2);

  const keys = rows.filter({ hasText: "keys.md" });
  await keys.getByRole("button", { name: "Actions for “keys.md”" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Rename" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Rename document" });
  await expect.poll(() => dialog.getByLabel("Name").inputValue()).toBe("keys.md");
  await dialog.getByLabel("Name").fill("Keys of the mill");
  await page.keyboard.press("Enter");
  const renamed = rows.filter({ hasText: "Keys of the mill" });
  await renamed.waitFor();

  await holdToasts(page);
  await renamed.getByRole("button", { name: /^Actions/ }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await renamed.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await renamed.waitFor();

  await map.getByRole("link", { name: "Mill", exact: true }).click();
  await page.waitForURL(/\/c\/c0$/);
  expect(errors).toEqual([]);
  await context.close();
});

test("filters the images by prompt and chat, and leads to their messages", async () => {
  const { page, context, errors } = await open("/library");
  await page.getByRole("navigation", { name: "Library" }).getByRole("link", { name: "Images" }).click();
  await page.waitForURL(/\/library\/images$/);
  const tiles = page.locator(".gallery-grid li");
  await expect.poll(() => tiles.count()).toBe(2);
  await tiles.filter({ hasText: "a red fox in the fern" }).getByRole("link", { name: "Mill" }).waitFor();
  await look(page, "images-wide");
  await page.getByLabel("Search prompts").fill("HERON");
  await expect.poll(() => tiles.allInnerTexts()).toEqual([expect.stringContaining("a heron")]);
  await page.getByLabel("Search prompts").fill("");
  await expect.poll(() => tiles.count()).toBe(2);
  await page.getByLabel("Chat", { exact: true }).selectOption({ label: "Mill" });
  await expect.poll(() => tiles.allInnerTexts()).toEqual([expect.stringContaining("a red fox")]);
  await page.getByLabel("Chat", { exact: true }).selectOption({ label: "River" });
  await page.getByText("No results").waitFor();
  await page.getByLabel("Chat", { exact: true }).selectOption({ label: "All chats" });
  await tiles.getByRole("link", { name: "Mill" }).click();
  await page.waitForURL(/\/c\/c0#a1$/);
  expect(errors).toEqual([]);
  await context.close();
});

test("a panel of the chat lists its documents and images", async () => {
  const { page, context, errors } = await open("/c/c0");
  await page.getByRole("button", { name: "Chat actions" }).or(page.locator(".title-menu")).first().click();
  await page.getByRole("menuitem", { name: "Documents and images" }).click();
  const panel = page.locator(".files-panel");
  await panel.getByText("A map of the river").waitFor();
  await panel.getByRole("link", { name: /^Image 1, / }).waitFor();
  await look(page, "panel-wide");
  await panel.getByRole("button", { name: /A map of the river/ }).click();
  await page.getByRole("dialog").getByText("The mill is old.").waitFor();
  await page.keyboard.press("Escape");
  await panel.getByRole("link", { name: "Go to message", exact: true }).click();
  await page.waitForURL(/\/c\/c0#u1$/);
  expect(errors).toEqual([]);
  await context.close();
});

test.each([["en", "Library", "Documents and images"], ["de", "Bibliothek", "Dokumente und Bilder"], [
  "ja",
  "ライブラリ",
  "文書と画像",
]])("fits a phone in three languages (%s)", async (locale, title, files) => {
  const { page, context, errors } = await open("/library", { ...PHONE, locale });
  await page.getByRole("heading", { name: title, exact: true }).waitFor();
  await page.getByText("A map of the river").waitFor();
  const check = async (name: string) => {
    await look(page, `${name}-phone-${locale}`);
    // Behind the panel are an image of 4 × 3 pixels and a document without a name.
    const findSmall = async () => (await findSmallTargets(page)).filter((found) => !/ 4x3$|document-name/.test(found));
    await expect.poll(findSmall, { message: name }).toEqual([]);
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: name })
      .toBeLessThanOrEqual(390);
  };
  await check("documents");
  await page.goto(`${app.url}/library/images`);
  await page.getByText("a red fox in the fern").waitFor();
  await check("images");
  await page.goto(`${app.url}/c/c0`);
  await page.locator(".title-menu").click();
  await page.getByRole("menuitem", { name: files }).click();
  await page.locator(".files-panel").getByText("A map of the river").waitFor();
  await check("panel");
  await page.locator(".files-panel .files-image").click();
  await page.waitForURL(/\/c\/c0#a1$/);
  await page.locator(".files-panel").waitFor({ state: "detached" });
  expect(errors).toEqual([]);
  await context.close();
});
