import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage, type WatchedPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import type { StoredConversation } from "../../helpers/app/stored_chat.ts";
import { chooseMessageAction, sendMessage } from "../../helpers/browser/ui_page.ts";

const C1 = "/api/conversations/c1";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const message = (page: Page, id: string) => page.locator(`[data-message-id="${id}"]`);
const composer = (page: Page) => page.getByLabel("Message", { exact: true });
const field = (page: Page) => page.getByRole("textbox", { name: "Message text" });

/** Chooses an action of a message. */
async function choose(page: Page, id: string, label: string): Promise<void> {
  await message(page, id).hover();
  await chooseMessageAction(message(page, id), label);
}

async function open(server: ChildServer, colorScheme: "light" | "dark"): Promise<WatchedPage> {
  const watched = await openPage(browser, new URL(server.url).origin, { colorScheme });
  await watched.page.goto(`${server.url}/c/c1`);
  await message(watched.page, "m1").getByText("First answer").waitFor();
  return watched;
}

test("two browsers on one conversation: edits, a draft, a running reply and removals are seen on both, and no save is lost", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-page-" });
  try {
    await using server = await startChildServer({ dataDir });
    await connectModel(server, llm.url);
    await server.json("PUT", C1, {
      title: "Shared",
      messages: [
        { id: "m0", role: "user", content: "First question" },
        { id: "m1", role: "assistant", content: "First answer" },
      ],
    });
    const [one, other] = [await open(server, "light"), await open(server, "dark")];
    const pages = [one.page, other.page];
    const seenOnBoth = (id: string, text: string) =>
      Promise.all(pages.map((page) => message(page, id).getByText(text, { exact: true }).waitFor()));
    const stored = async (id: string) =>
      (await server.json<StoredConversation>("GET", C1)).messages.find((each) => each.id === id)?.content;

    await choose(one.page, "m1", "Edit");
    await field(one.page).fill("An edited answer");
    await field(one.page).press("Control+Enter");
    await seenOnBoth("m1", "An edited answer");

    await composer(other.page).fill("Half a thought");
    await expect.poll(() => composer(one.page).inputValue()).toBe("Half a thought");
    await sendMessage(one.page, "A whole thought");
    const call = await llm.nextCall();
    await call.emit("Told to ");
    for (const page of pages) await page.locator(".reply .prose", { hasText: "Told to" }).waitFor();
    await call.emit("both");
    await call.finish();
    for (const page of pages) {
      await page.locator(".reply .prose").getByText("Told to both", { exact: true }).waitFor();
      await page.getByText("A whole thought").first().waitFor();
      await expect.poll(() => composer(page).inputValue()).toBe("");
    }

    // Both edit the same text: the second is warned, sees the other version and decides.
    await choose(other.page, "m1", "Edit");
    await field(other.page).fill("From the other");
    await choose(one.page, "m1", "Edit");
    await field(one.page).fill("From the one");
    await field(one.page).press("Control+Enter");
    await message(one.page, "m1").getByText("From the one", { exact: true }).waitFor();
    await field(other.page).press("Control+Enter");
    await other.page.getByText("This message was changed on another device.").waitFor();
    await other.page.locator(".notice").getByText("From the one").waitFor();
    await expect.poll(async () => [await field(other.page).inputValue(), await stored("m1")]).toEqual([
      "From the other",
      "From the one",
    ]);
    await field(other.page).press("Control+Enter");
    await seenOnBoth("m1", "From the other");
    const [replaced] = await server.json<{ n: number; cause: string }[]>("GET", `${C1}/revisions`);
    expect(replaced).toMatchObject({ cause: "message_patch" });
    await server.json("POST", `${C1}/revisions/${replaced!.n}/restore`);
    await seenOnBoth("m1", "From the one");

    await holdToasts(other.page);
    await choose(other.page, "m0", "Delete");
    for (const page of pages) await message(page, "m0").waitFor({ state: "detached" });
    await other.page.getByRole("button", { name: "Undo" }).click();
    await seenOnBoth("m0", "First question");
    for (const { page } of [one, other]) await expect.poll(() => findAxeProblems(page)).toEqual([]);

    // Deletion waits for Undo; leaving the page ends the wait.
    await one.page.getByRole("button", { name: "Actions for “Shared”" }).click();
    await one.page.getByRole("menuitem", { name: "Delete" }).click();
    await one.page.goto("about:blank");
    await other.page.getByRole("link", { name: "Shared" }).first().waitFor({ state: "detached" });
    await other.page.getByRole("heading", { name: "This chat doesn’t exist" }).waitFor();
    await server.request("POST", "/api/trash/conversation-c1/restore").then((answer) => answer.body?.cancel());
    await other.page.getByRole("link", { name: "Shared" }).waitFor();
    await expect.poll(() => stored("m1")).toBe("From the one");
    for (const { foreign, errors, context } of [one, other]) {
      expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
      await context.close();
    }
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});
