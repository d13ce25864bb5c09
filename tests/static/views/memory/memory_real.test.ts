/** Notes, proposals, chapters and recall in the page, with the real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { range, say } from "../../../helpers/app/stored_chat.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import {
  eventually,
  openChatOptions,
  openMessageActions,
  PHONE,
  sendMessage,
} from "../../../helpers/browser/ui_page.ts";

/** Time for a whole walk through the page on a busy machine. */
const PATIENCE_MS = 180_000;

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
}, PATIENCE_MS);
afterAll(() => browser.close());

test(
  "asks once, shows proposals, remembers a message, names the notes of a reply, and quotes another chat",
  async () => {
    await using app = await openTestApp();
    await using llm = await openFakeLlm({ personality: "llama.cpp" });
    const json = async (path: string) => await (await app.get(path)).json();
    await useModel(app, llm);
    await app.put("/api/setup/complete", {});
    await app.patch("/api/settings", { auto_title: false });
    for (const n of range(4)) {
      await app.put(`/api/conversations/c${n}`, {
        title: `Chat ${n}`,
        messages: [say(`c${n}m`)],
      });
    }
    await app.put("/api/conversations/boat", { title: "Boat", messages: [say("b1", "We paint the boat green.")] });
    await app.put("/api/characters/fox", { name: "Fox" });
    await app.put("/api/conversations/tea", {
      title: "Tea",
      participants: [{ character_id: "fox" }],
      messages: [say("t1", "I like green tea."), say("t2", "So do I.", "assistant")],
      chapters: [{ text: "They met.", from_message_id: "t1", up_to_message_id: "t1" }],
    });
    const { page, errors } = await openPage(browser, app.url, PHONE);
    await page.goto(`${app.url}/c/tea`);
    await page.getByText("Suggest memories from your chats").waitFor();
    await page.getByRole("button", { name: "Yes", exact: true }).tap();
    await eventually(() => json("/api/settings"), (settings) => settings.memory_proposals && settings.memory_asked);

    const message = page.locator('[data-message-id="t1"]');
    await openMessageActions(message);
    await page.getByRole("menuitem", { name: "Remember this" }).tap();
    const dialog = page.getByRole("dialog", { name: "Remember this" });
    await expect.poll(() => dialog.getByLabel("Memory", { exact: true }).inputValue()).toBe("I like green tea.");
    await dialog.getByLabel("Memory", { exact: true }).fill("Sam likes green tea.");
    await dialog.getByRole("button", { name: "Save" }).tap();
    await eventually(() => json("/api/memories"), (notes) => notes.length === 1);
    expect(await json("/api/memories")).toMatchObject([{
      text: "Sam likes green tea.",
      scope: { kind: "character", id: "fox" },
      source: { conversation_id: "tea", message_id: "t1" },
    }]);

    await sendMessage(page, "What do I like?");
    await page.getByRole("button", { name: "1 memory used" }).tap();
    await page.getByText("Sam likes green tea.").waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    const [{ id }] = await json("/api/memories");
    await app.put(`/api/memories/${id}`, { text: "Sam likes black tea." });
    await page.getByText("Sam likes black tea.").waitFor();
    await page.keyboard.press("Escape");

    await page.getByLabel("Message", { exact: true }).fill("/recall");
    await page.getByLabel("Message", { exact: true }).press("Enter");
    await page.getByLabel("What did we say about…?").fill("What did we say about the boat?");
    await page.getByText("We paint the boat green.").waitFor();
    await page.getByRole("button", { name: "Add to message" }).tap();
    await page.getByRole("button", { name: "Close" }).last().tap();
    const draft = page.getByLabel("Message", { exact: true });
    await expect.poll(() => draft.inputValue()).toContain("> We paint the boat green.");

    await openChatOptions(page);
    const chapter = page.getByLabel("Chapter 1", { exact: true });
    await chapter.fill("They met at the harbor.");
    await eventually(
      () => json("/api/conversations/tea?view=head"),
      ({ summary }) => summary?.text === "They met at the harbor.",
    );
    await page.getByRole("switch", { name: "Learn from this chat" }).uncheck();
    await eventually(() => json("/api/conversations/tea?view=head"), ({ learn }) => learn === false);

    const { proposals } = await app.services.memory();
    const source = { conversationId: "boat", messageId: "b1" };
    for (const text of ["Sam has a green boat.", "Sam was in Oslo.", "Sam sings."]) {
      await proposals.add({ text, scope: { kind: "everything" }, source });
    }
    await page.goto(`${app.url}/settings/memory`);
    await page.getByRole("heading", { name: "3 memories proposed" }).waitFor();
    await page.getByRole("heading", { name: "Fox", exact: true }).waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    const one = (text: string) => page.locator(".memory-proposal", { hasText: text });
    await one("green boat").getByRole("button", { name: "Accept", exact: true }).click();
    await one("green boat").waitFor({ state: "detached" }); // the others move up
    await one("Oslo").getByRole("button", { name: "Dismiss" }).click();
    await one("Oslo").waitFor({ state: "detached" });
    await one("sings").getByRole("button", { name: "Edit and accept" }).click();
    await page.getByRole("dialog").getByLabel("Memory", { exact: true }).fill("Sam sings alto.");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await eventually(() => json("/api/memories"), (notes) => notes.length === 3);

    await holdToasts(page);
    await page.getByRole("button", { name: "Actions for “Sam sings alto.”" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Sam sings alto.").waitFor();
    await page.getByRole("button", { name: "Actions for “Sam sings alto.”" }).click();
    await page.getByRole("menuitem", { name: "Always send first" }).click();
    await page.getByText("Always sent first", { exact: true }).waitFor();
    await page.getByLabel("Search memories").fill("boat");
    await eventually(() => page.getByText("Sam sings alto.").count(), (count) => count === 0);
    expect(errors).toEqual([]);
  },
  PATIENCE_MS,
);
