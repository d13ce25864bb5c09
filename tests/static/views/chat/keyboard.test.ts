import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdToasts } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { openUiBench, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const NOW = new Date().toISOString();

function fill(api: FakeApi): void {
  api.addConversation("c1", "About ducks", [{ role: "user", content: "Where do the ducks go?" }]);
  api.house.trash = [{ id: "t1", kind: "conversation", title: "Lost chat", deleted_at: NOW }];
  api.house.jobs = [{
    id: "j1",
    kind: "download",
    title: "A model",
    state: "running",
    progress: null,
    created_at: NOW,
    updated_at: NOW,
  }];
}

/** Presses Tab until the control of that name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let step = 0; step < 80; step++) {
    const here = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement;
      const label = element.id === "" ? null : document.querySelector(`label[for="${element.id}"]`);
      const around = element.closest("label");
      const own = element.getAttribute("aria-label") ?? label?.textContent ?? around?.textContent ??
        element.textContent;
      return own?.trim() ?? "";
    });
    if (here === name) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab never comes to "${name}"`);
}

test("adds a connection by keyboard alone: suggestion, key, test, save", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page, api } = ui;
  await page.getByLabel("Message", { exact: true }).waitFor();
  await tabTo(page, "Settings");
  await page.keyboard.press("Enter");
  await page.getByLabel("Search settings").waitFor();
  await tabTo(page, "Connections");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Add connection" }).waitFor();
  await tabTo(page, "Add connection");
  await page.keyboard.press("Enter");
  await page.getByRole("group", { name: "Suggestions" }).waitFor();
  await tabTo(page, "OpenAI");
  await page.keyboard.press("Space");
  await tabTo(page, "API key");
  await page.keyboard.type("sk-typed");
  await tabTo(page, "Test");
  await page.keyboard.press("Enter");
  await page.getByText("The connection works").waitFor();
  await tabTo(page, "Save and use");
  await page.keyboard.press("Enter");
  await page.getByText("Now using “OpenAI”").waitFor();
  await expect.poll(() => api.seen("PUT", "/api/connections")[0]!.body).toMatchObject({
    name: "OpenAI",
    api_key: "sk-typed",
  });
});

test("finds and changes settings by keyboard alone", async () => {
  await using ui = await bench.open("/settings/about", { prepare: fill });
  const { page, api } = ui;
  await page.getByRole("paragraph").filter({ hasText: /^Version/ }).waitFor();
  await tabTo(page, "Search settings");
  await page.keyboard.type("language");
  await page.getByRole("link", { name: /^Language/ }).waitFor();
  await tabTo(page, "LanguageYou");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${api.origin}/settings/general#language`);
  await page.locator("#send-on-enter").waitFor({ state: "attached" });
  await tabTo(page, "Press Enter to send");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => !document.querySelector<HTMLInputElement>("#send-on-enter")!.checked);
});

test("restores a deleted chat from the trash, and cancels a job, by keyboard alone", async () => {
  await using ui = await bench.open("/settings/trash", { prepare: fill });
  const { page, api } = ui;
  await page.getByText("Lost chat").waitFor();
  await tabTo(page, "Restore “Lost chat”");
  await page.keyboard.press("Enter");
  await page.getByText("Restored “Lost chat”").waitFor();
  await page.goto(`${api.origin}/activity`);
  await page.getByText("A model").waitFor();
  await tabTo(page, "Cancel “A model”");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing is running").waitFor();
});

test("Undo by keyboard restores a chat that was deleted by keyboard", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page } = ui;
  const chat = page.getByRole("navigation").getByRole("link", { name: "About ducks" });
  await chat.waitFor();
  await holdToasts(page);
  await tabTo(page, "Actions for “About ducks”");
  await page.keyboard.press("Enter");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await chat.waitFor({ state: "detached" });
  await tabTo(page, "Undo");
  await page.keyboard.press("Enter");
  await chat.waitFor();
});

test("the focus returns from the edit of a message to where it came from", async () => {
  await using ui = await bench.open("/c/c1", { prepare: fill });
  const { page } = ui;
  const message = page.getByLabel("Message", { exact: true });
  const edited = page.getByLabel("Message text");
  await page.locator(".user-message").waitFor(); // The composer is there before the messages.
  await message.press("ArrowUp");
  await edited.press("Escape");
  await expect.poll(() => message.evaluate((field) => field === document.activeElement)).toBe(true);

  const actions = page.getByRole("button", { name: "Message actions" });
  await page.getByRole("button", { name: "Edit", exact: true }).press("Enter");
  await edited.fill("Where do the geese go?");
  await edited.press("Tab");
  await page.getByRole("button", { name: "Save", exact: true }).press("Enter");
  await page.locator(".message").getByText("geese").waitFor();
  await expect.poll(() => actions.evaluate((button) => button === document.activeElement)).toBe(true);
});
