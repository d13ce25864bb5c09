/** A long chat on the real server: changes of other devices are loaded, damage is reported. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../../../helpers/fakes/llm/fake_llm.ts";
import { range, say } from "../../../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../../../helpers/app/test_app.ts";
import { sendMessage } from "../../../../helpers/browser/ui_page.ts";
import { openStoredDatabase } from "../../../../helpers/files/stored_database.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const COUNT = 200;
const text = (n: number) => `Message ${n}. ${"x".repeat(400)}`;

async function openLong(app: TestApp, hash = ""): Promise<Page> {
  await app.put("/api/setup/complete", {});
  await app.patch("/api/settings", { auto_title: false });
  await app.put("/api/conversations/c1", { title: "Long", messages: range(COUNT).map((n) => say(`m${n}`, text(n))) });
  const { page } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1${hash}`);
  return page;
}

const shown = (page: Page, id: string) => page.locator(`[data-message-id="${id}"]`);

test("shows another device's edit far above when the running reply ends", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  llm.switches.manual = "on";
  // Loads back to message 20, so that the end of the reply is far from the edit.
  const page = await openLong(app, "#m20");
  await shown(page, "m20").waitFor();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await sendMessage(page, "Hello");
  const call = await llm.nextCall();
  await call.emit("Hello from the model");
  await page.locator(".reply", { hasText: "Hello from the model" }).waitFor();
  await app.patch("/api/conversations/c1/messages/m25", { content: "From the phone" });
  await app.delete("/api/conversations/c1/messages/m30");
  await call.finish();
  await page.locator(".reply[data-status=complete]").waitFor();
  await page.goto(`${app.url}/c/c1#m25`);
  await shown(page, "m25").getByText("From the phone").waitFor();
  await expect.poll(() => shown(page, "m30").count()).toBe(0);
  expect(asked).toContain("/api/conversations/c1/changes");
  expect(asked.filter((path) => path === "/api/conversations/c1/messages"), "pages read again").toEqual([]);
});

test("names an unreadable part of a chat above the messages", async () => {
  await using app = await openTestApp();
  await (await openLong(app)).close();
  await app.restart(() => {
    using file = openStoredDatabase(app.dataDir);
    const [, , block] = file.prepare("SELECT id FROM block WHERE conversation_id = 'c1' ORDER BY position DESC").all();
    file.prepare("UPDATE block SET sealed = zeroblob(64) WHERE id = ?").run(block!.id!);
    return Promise.resolve();
  });
  const { page } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1#m100`);
  await page.getByText("Part of this chat can’t be read").waitFor();
  await page.getByText(/\d+ messages\. Everything else works\./).waitFor();
  await shown(page, "m100").waitFor();
});
