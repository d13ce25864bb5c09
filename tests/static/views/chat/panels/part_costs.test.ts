/** What fills the context and what one can do with each part, with the real server. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useModel } from "../../../../helpers/app/chat_client.ts";
import { say } from "../../../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../../../helpers/app/test_app.ts";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { openChatOptions, PHONE } from "../../../../helpers/browser/ui_page.ts";
import { openFakeLlm } from "../../../../helpers/fakes/llm/fake_llm.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** A chat with a part of each kind. */
async function fillChat(app: TestApp): Promise<void> {
  await app.put("/api/setup/complete", {});
  await app.patch("/api/settings", { auto_summary: false });
  await app.put("/api/characters/ada", { name: "Ada", description: "Builds engines." });
  const form = new FormData();
  const book = { entries: { 0: { uid: 0, key: ["ferry"], content: "It comes at nine.", comment: "Ferry" } } };
  form.set("file", new File([JSON.stringify(book)], "Harbor.json"));
  const { id } = await (await app.post("/api/lorebooks/import", form)).json();
  await app.put("/api/memories/n1", { text: "Likes tea.", scope: { kind: "everything" } });
  await app.put("/api/conversations/c1", {
    participants: [{ character_id: "ada" }],
    lorebook_ids: [id],
    note: { text: "Keep it short.", depth: 1, role: "system" },
    messages: [say("m0", "When does the ferry come?"), say("m1", "At nine.", "assistant")],
  });
}

async function openParts(app: TestApp, options = {}): Promise<Page> {
  const { page } = await openPage(browser, app.url, options);
  await page.goto(`${app.url}/c/c1`);
  await openChatOptions(page);
  await page.getByRole("button", { name: "Preview prompt" }).click();
  await page.locator(".part-costs").getByText("Author’s note").waitFor();
  return page;
}

/** Chooses an action of a part or of one thing in it. */
async function act(page: Page, what: string, action: string): Promise<void> {
  await page.getByRole("button", { name: `What to do with: ${what}`, exact: true }).click();
  await page.getByRole("menuitem", { name: action, exact: true }).click();
}

test("parts are dropped, kept, switched off and opened where they are shown, and Undo restores them", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  await fillChat(app);
  const page = await openParts(app);
  const parts = page.locator(".part-costs");
  const head = async () => await (await app.get("/api/conversations/c1?view=head")).json();
  await holdToasts(page);

  await act(page, "Author’s note", "Leave out");
  await parts.getByText("Author’s note").waitFor({ state: "detached" });
  await expect.poll(async () => (await head()).note ?? null).toBeNull();
  await page.getByRole("button", { name: "Undo" }).click();
  await parts.getByText("Author’s note").waitFor();
  await expect.poll(async () => (await head()).note).toMatchObject({ text: "Keep it short." });

  await act(page, "Harbor: Ferry", "Always send");
  const entry = async () => {
    const [book] = await (await app.get("/api/lorebooks")).json();
    return (await (await app.get(`/api/lorebooks/${book.id}`)).json()).book.entries[0];
  };
  await expect.poll(entry).toMatchObject({ constant: true, enabled: true });
  await act(page, "Harbor: Ferry", "Switch off");
  await parts.getByText("Harbor: Ferry").waitFor({ state: "detached" });
  await expect.poll(entry).toMatchObject({ enabled: false });

  await act(page, "Likes tea.", "Edit");
  await page.getByRole("dialog").getByRole("textbox").first().fill("Likes coffee.");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await parts.getByText("Likes coffee.").waitFor();
  await act(page, "Likes coffee.", "Delete");
  await parts.getByText("Likes coffee.").waitFor({ state: "detached" });

  await act(page, "Messages", "Summarize what no longer fits");
  await expect.poll(async () => (await (await app.get("/api/settings")).json()).auto_summary).toBe(true);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await act(page, "Description", "Open the card of Ada");
  await page.waitForURL(`${app.url}/characters/ada/edit`);
  await page.context().close();
});

test("on a phone, the reply limit is changed from what is reserved for the reply", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  await fillChat(app);
  const page = await openParts(app, PHONE);
  await act(page, "Reserved for the reply", "Change the reply limit");
  await expect.poll(() =>
    page.locator("#options-sampling").evaluate((heading) => {
      const { top } = heading.getBoundingClientRect();
      return top >= 0 && top < globalThis.innerHeight;
    })
  ).toBe(true);
  await page.context().close();
});
