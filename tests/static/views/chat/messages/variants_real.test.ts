/** A random walk through a conversation's tree: the page shows what the API returns. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdToasts, openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../../../helpers/fakes/llm/fake_llm.ts";
import { readConversation, say, type StoredConversation } from "../../../../helpers/app/stored_chat.ts";
import { openTestApp } from "../../../../helpers/app/test_app.ts";
import { TreeWalk, type WalkedServer } from "../../../../helpers/app/tree_walk.ts";
import { chooseMessageAction, eventually, PHONE } from "../../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const STEPS = 150;
/** Changes between two checks of the page. */
const LOOK_EVERY = 5;

/** One message on the page: its id, the start of its text, and its version. */
type Seen = [id: string, text: string, version: string];

const begin = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, 24);

function seenBy(page: Page): Promise<Seen[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("[data-message-id]")].map((element) => [
      element.dataset.messageId!,
      (element.querySelector(".user-text, .prose")?.textContent ?? "").replace(/\s+/g, " ").trim().slice(0, 24),
      element.querySelector(".variants [role=status]")?.textContent ?? "",
    ])
  );
}

function expectedOf({ messages }: StoredConversation): Seen[] {
  return messages.map(({ id, content, variant_count, active_variant }) => [
    id,
    begin(content),
    Number(variant_count) > 1 ? `${Number(active_variant) + 1}/${variant_count}` : "",
  ]);
}

test("shows the active path of the tree while two clients change it at random", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await app.put("/api/setup/complete", {});
  const { page } = await openPage(browser, app.url);
  let changes = 0;
  let looks = 0;
  const look = async () => {
    const shown = await eventually(() => seenBy(page), async (seen) => {
      const expected = expectedOf(await readConversation(app));
      // The page renders the end of the conversation.
      return seen.length >= Math.min(8, expected.length) &&
        JSON.stringify(seen) === JSON.stringify(expected.slice(expected.length - seen.length));
    });
    if (shown.length > 0) looks++;
  };
  const server: WalkedServer = {
    async request(method, path, body, headers) {
      // The walk reads the conversation between two steps, when nothing changes it.
      if (method === "GET" && path === "/api/conversations/c1" && changes >= LOOK_EVERY) {
        changes = 0;
        await look();
      }
      if (method !== "GET") changes++;
      const answer = await app.request(method, path, body as Record<string, unknown>, { headers });
      // The first step of the walk creates the conversation.
      if (page.url() === "about:blank") await page.goto(`${app.url}/c/c1`);
      return answer;
    },
    restart: () => Promise.resolve(),
    isKilled: false,
  };
  await new TreeWalk(server, llm, "c1", 11).go(STEPS);
  await look();
  expect(looks).toBeGreaterThan(STEPS / LOOK_EVERY / 4);
});

test("editing and resending keeps both versions with their replies, and Undo shows the earlier one exactly", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ pieces: ["A reply to the new version"] });
  await useModel(app, llm);
  await app.put("/api/setup/complete", {});
  await app.patch("/api/settings", { auto_title: false });
  await app.put("/api/conversations/c1", {
    title: "Tea",
    messages: [
      say("u1", "Which tea for the morning?"),
      say("a1", "Assam, strong and malty.", "assistant"),
      say("u2", "And in the evening?"),
      say("a2", "Rooibos.", "assistant"),
    ],
  });
  const before = await readConversation(app);
  const { page } = await openPage(browser, app.url, PHONE);
  await page.goto(`${app.url}/c/c1`);
  const first = page.locator('[data-message-id="u1"]');
  const edit = async (text: string) => {
    await chooseMessageAction(first, "Edit");
    await page.getByRole("textbox", { name: "Message text" }).fill(text);
    await page.locator(".edit-form").getByRole("button", { name: "Send" }).click();
    await page.locator(".reply[data-status=complete]", { hasText: "A reply to the new version" }).waitFor();
  };
  await first.waitFor();
  await holdToasts(page);
  await edit("Which tea for the afternoon?");
  await first.getByText("2/2").waitFor();
  const folder = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
  if (folder) await page.screenshot({ path: `${folder}/versions-phone.png` });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Rooibos.").waitFor();
  const shown = ({ id, role, content }: StoredConversation["messages"][number]) => [id, role, content];
  await expect.poll(async () => (await readConversation(app)).messages.map(shown)).toEqual(before.messages.map(shown));
  await first.getByRole("button", { name: "Next version" }).click();
  await page.locator(".reply", { hasText: "A reply to the new version" }).waitFor();
  await expect.poll(() => page.locator(".message").count()).toBe(2);
});
