/** Revisions of a chat, on the page with the real server. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { readConversation } from "../../../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../../../helpers/app/test_app.ts";
import { eventually, openChatOptions, PHONE } from "../../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const message = (id: string, role: string, content: string) => ({ id, role, content });

/** Opens a chat whose second message was edited and whose last was deleted, with the history panel. */
async function openHistory(app: TestApp, options?: BrowserContextOptions): Promise<Page> {
  await app.put("/api/setup/complete", {});
  await app.put("/api/conversations/c1", {
    title: "Lighthouse",
    messages: [
      message("u1", "user", "Tell me about the lamp"),
      message("a1", "assistant", "The old lamp burned oil."),
      message("u2", "user", "And the fog horn?"),
    ],
  });
  await app.patch("/api/conversations/c1/messages/a1", { content: "The new lamp burned gas." });
  await app.delete("/api/conversations/c1/messages/u2");
  const { page } = await openPage(browser, app.url, options);
  await page.goto(`${app.url}/c/c1`);
  await openChatOptions(page);
  await page.getByRole("button", { name: "Earlier versions" }).click();
  return page;
}

const entry = (page: Page, cause: string) => page.locator(".history-list > li", { hasText: cause });

test("shows what an edit changed, Restore restores the text, and Undo the edit", async () => {
  await using app = await openTestApp();
  const page = await openHistory(app);
  await holdToasts(page);
  await entry(page, "Message edited").locator("summary").click();
  await entry(page, "Message edited").locator("del", { hasText: "old" }).waitFor();
  await entry(page, "Message edited").locator("ins", { hasText: "gas" }).waitFor();
  await entry(page, "Message edited").getByRole("button", { name: "Restore" }).click();
  await page.locator(".reply", { hasText: "The old lamp burned oil." }).waitFor();
  await entry(page, "Earlier version restored").waitFor();
  await expect.poll(async () => (await readConversation(app)).messages[1]).toMatchObject({
    content: "The old lamp burned oil.",
  });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(".reply", { hasText: "The new lamp burned gas." }).waitFor();
  await eventually(
    async () => (await readConversation(app)).messages[1]!.content,
    (text) => text === "The new lamp burned gas.",
  );
});

test("restores a deleted message in its place", async () => {
  await using app = await openTestApp();
  const page = await openHistory(app);
  await entry(page, "Messages deleted").locator("summary").click();
  await entry(page, "Messages deleted").getByText("deleted since").waitFor();
  await entry(page, "Messages deleted").getByRole("button", { name: "Restore" }).click();
  await page.locator(".user-message", { hasText: "And the fog horn?" }).waitFor();
  await expect.poll(async () => (await readConversation(app)).messages.map(({ id }: { id: string }) => id)).toEqual([
    "u1",
    "a1",
    "u2",
  ]);
});

test.each([["light", "wide", {}], ["dark", "phone", PHONE]] as const)(
  "axe finds nothing in the list: %s, %s",
  async (colorScheme, width, device) => {
    await using app = await openTestApp();
    const page = await openHistory(app, { ...device, colorScheme });
    await entry(page, "Message edited").locator("summary").click();
    await entry(page, "Message edited").locator("ins").first().waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    const folder = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
    if (folder) await page.screenshot({ path: `${folder}/history-${colorScheme}-${width}.png` });
  },
);
