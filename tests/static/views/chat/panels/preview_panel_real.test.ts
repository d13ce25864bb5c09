/** The prompts that the model receives, with the real server. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblems,
  findAxeProblemsInBothSchemes,
  openBrowser,
  openPage,
} from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../../../helpers/app/test_app.ts";
import { eventually, openChatOptions, sendMessage, WIDTHS } from "../../../../helpers/browser/ui_page.ts";

/** Time for a whole walk through the page on a busy machine. */
const PATIENCE_MS = 300_000;

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
}, PATIENCE_MS);
afterAll(() => browser.close());

async function addCharacter(app: TestApp, id: string, data: Record<string, unknown>) {
  const response = await app.put(`/api/characters/${id}`, {
    card: { spec: "chara_card_v3", spec_version: "3.0", data: { extensions: { talkativeness: 0 }, ...data } },
  });
  expect(response.status).toBe(201);
}

const sent = (llm: FakeLlm, n: number) => llm.chats[n]!.json!.messages as { role: string; content: string }[];
const replies = (page: Page) => page.getByRole("log", { name: "Messages" }).locator(".reply");

/** Three characters that only reply when mentioned or selected, and a page with their chat. */
async function openGroup(
  app: TestApp,
  llm: FakeLlm,
  participants: string[],
  options?: BrowserContextOptions,
): Promise<Page> {
  await useModel(app, llm);
  await app.put("/api/setup/complete", {});
  await app.patch("/api/settings", { auto_title: false, display_name: "Sam" });
  for (const name of ["Ada", "Bob", "Cyrus"]) {
    await addCharacter(app, name.toLowerCase(), { name, description: `${name}'s card.` });
  }
  await app.put("/api/conversations/c1", {
    title: "Tea",
    participants: participants.map((character_id) => ({ character_id })),
    messages: [],
  });
  const { page } = await openPage(browser, app.url, options);
  await page.goto(`${app.url}/c/c1`);
  return page;
}

const speakers = (page: Page) => page.getByRole("log", { name: "Messages" }).getByRole("heading", { level: 2 });
/** On phones, Talk replaces Send while nothing is written. */
const isIdle = (page: Page) => page.getByRole("button", { name: /^(Send|Talk)$/ }).first().waitFor();
const head = async (app: TestApp) => await (await app.get("/api/conversations/c1?view=head")).json();

test("a chat with a character sends its texts, the persona, the lorebooks and the chat's note", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  await app.put("/api/setup/complete", {});
  await addCharacter(app, "ada", { name: "Ada", description: "{{char}} builds engines.", first_mes: "Hm, {{user}}?" });
  await app.put("/api/personas/sam", { name: "Sam", description: "{{user}} asks questions." });
  await app.patch("/api/settings", { default_persona_id: "sam" });
  const entries = [{ keys: ["mill"], content: "The mill counts.", extensions: {}, enabled: true, insertion_order: 1 }];
  await app.put("/api/lorebooks/engines", { name: "Engines", scope: "global", book: { entries } });

  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/characters/ada`);
  await page.getByRole("button", { name: "Start chat" }).click();
  await replies(page).getByText("Hm, Sam?").waitFor();
  await sendMessage(page, "Show me the mill");
  await replies(page).getByText("Hello").waitFor();
  const [begin, ...rest] = sent(llm, 0);
  for (const text of ["Ada builds engines.", "Sam asks questions.", "The mill counts."]) {
    expect(begin!.content).toContain(text);
  }
  expect(rest).toEqual([
    { role: "assistant", content: "Hm, Sam?" },
    { role: "user", content: "Show me the mill" },
  ]);

  await page.getByRole("button", { name: "Chat options" }).click();
  await page.getByLabel("Author’s note", { exact: true }).fill("Rain falls.");
  const id = new URL(page.url()).pathname.split("/").at(-1);
  await expect.poll(async () => (await (await app.get(`/api/conversations/${id}?view=head`)).json()).note)
    .toMatchObject({ text: "Rain falls." });
  const again = replies(page).last();
  await again.hover();
  await again.getByRole("button", { name: "Regenerate" }).click();
  await page.getByText("2/2").waitFor();
  expect(sent(llm, 1).map(({ content }) => content)).toContain("Rain falls.");
  await context.close();
}, PATIENCE_MS);

test("after a second character joins, both reply when mentioned, and a selected one replies alone", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const page = await openGroup(app, llm, ["ada"]);
  await page.getByRole("button", { name: "Chat options" }).click();
  const panel = page.getByRole("complementary", { name: "Chat options" });
  await panel.getByLabel("Find a character to add").fill("bo");
  await panel.getByRole("button", { name: "Add Bob" }).click();
  await panel.getByLabel("Find a character to add").fill("cyr");
  await panel.getByRole("button", { name: "Add Cyrus" }).click();
  const bar = page.getByRole("group", { name: "Next speaker" });
  await bar.getByRole("button", { name: "Cyrus" }).waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await sendMessage(page, "What do Bob and Ada say?");
  await eventually(
    () => speakers(page).allInnerTexts(),
    (names) => names.join().replaceAll("\n", "").match(/Bob.*Ada/) !== null,
  );
  await eventually(() => llm.chats.length, (count) => count === 2);
  await isIdle(page);
  expect([0, 1].map((n) => sent(llm, n)[0]!.content.match(/(\w+)'s card/)?.[1])).toEqual(["Bob", "Ada"]);

  await bar.getByRole("button", { name: "Cyrus" }).click();
  await sendMessage(page, "And Bob?");
  await eventually(() => llm.chats.length, (count) => count === 3);
  await isIdle(page);
  expect(sent(llm, 2)[0]!.content).toContain("Cyrus's card.");
  await expect.poll(() => bar.getByRole("button", { pressed: true }).count()).toBe(0);

  await panel.getByRole("button", { name: "Mute Bob" }).click();
  await panel.getByRole("button", { name: "Remove Cyrus" }).click();
  await eventually(() => head(app), ({ participants }) => participants.length === 2);
  expect((await head(app)).participants).toEqual([{ character_id: "ada" }, { character_id: "bob", muted: true }]);
  await page.context().close();
}, PATIENCE_MS);

test("list order replies one after another, and a character with group greetings says one on request", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const page = await openGroup(app, llm, ["ada", "bob"]);
  await app.put("/api/characters/bob", {
    card: {
      spec: "chara_card_v3",
      spec_version: "3.0",
      data: { name: "Bob", description: "Bob's card.", first_mes: "Hi {{user}}.", group_only_greetings: ["Hi, all."] },
    },
  });
  await page.getByRole("button", { name: "Chat options" }).click();
  await page.getByRole("button", { name: "Add a greeting from Bob" }).click();
  await replies(page).getByText("Hi, all.").waitFor();
  await page.getByText("2/2").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await page.getByLabel("Reply order", { exact: true }).selectOption({ label: "List (one after another)" });
  await eventually(() => head(app), ({ reply_order }) => reply_order === "list");
  await sendMessage(page, "Good morning");
  await eventually(() => llm.chats.length, (count) => count === 2);
  await isIdle(page);
  expect([0, 1].map((n) => sent(llm, n)[0]!.content.match(/(\w+)'s card/)?.[1])).toEqual(["Ada", "Bob"]);
  await page.context().close();
}, PATIENCE_MS);

test("in manual order one character is always selected, and no other replies", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const page = await openGroup(app, llm, ["ada", "bob"]);
  await page.getByRole("button", { name: "Chat options" }).click();
  await page.getByLabel("Reply order", { exact: true }).selectOption({ label: "Manual (you choose)" });
  const bar = page.getByRole("group", { name: "Next speaker" });
  await bar.getByRole("button", { name: "Ada", pressed: true }).waitFor();
  await eventually(() => head(app), ({ reply_order }) => reply_order === "manual");
  await bar.getByRole("button", { name: "Bob" }).click();
  await sendMessage(page, "Ada?");
  await eventually(() => llm.chats.length, (count) => count === 1);
  await isIdle(page);
  expect(sent(llm, 0)[0]!.content).toContain("Bob's card.");
  await bar.getByRole("button", { name: "Ada" }).click();
  await page.getByRole("button", { name: "Next reply" }).click();
  await eventually(() => llm.chats.length, (count) => count === 2);
  await isIdle(page);
  expect(sent(llm, 1)[0]!.content).toContain("Ada's card.");
  await page.context().close();
}, PATIENCE_MS);

test("the model writes the user's message into the composer, where it waits", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const page = await openGroup(app, llm, ["ada", "bob"]);
  await sendMessage(page, "Hm, Ada");
  await replies(page).getByText("Hello").waitFor();
  await isIdle(page);
  await page.getByLabel("Message", { exact: true }).fill("Well,");
  await page.getByRole("button", { name: "Write for me" }).click();
  await eventually(() => page.getByLabel("Message", { exact: true }).inputValue(), (text) => text === "Well,\n\nHello");
  await isIdle(page);
  await expect.poll(() => llm.chats).toHaveLength(2);
  const conversation = await (await app.get("/api/conversations/c1")).json();
  expect(conversation.messages).toHaveLength(2);
  await page.context().close();
}, PATIENCE_MS);

test(
  "options select a preset, a lorebook and a summary, and the preview shows what is sent and why",
  async () => {
    await using app = await openTestApp();
    await using llm = await openFakeLlm({ personality: "llama.cpp" });
    const entries = [
      { keys: ["mill"], name: "Mill", content: "The mill counts.", extensions: {}, enabled: true, insertion_order: 1 },
      {
        keys: ["mill"],
        secondary_keys: ["rye"],
        selective: true,
        name: "Rye",
        content: "Rye.",
        extensions: {},
        enabled: true,
        insertion_order: 2,
      },
    ];
    await app.put("/api/lorebooks/engines", { name: "Engines", scope: "chat", book: { entries } });
    await app.put("/api/presets/calm", { name: "Calm", sampler: { temperature: 0.25 } });
    const page = await openGroup(app, llm, ["ada"]);
    await page.getByRole("button", { name: "Chat options" }).click();
    const panel = page.getByRole("complementary", { name: "Chat options" });
    await panel.getByLabel("Preset", { exact: true }).selectOption({ label: "Calm" });
    await panel.getByRole("switch", { name: "Engines" }).check();
    await app.put("/api/lorebooks/later", { name: "Later", scope: "chat", book: { entries: [] } });
    await panel.getByRole("switch", { name: "Later" }).waitFor();
    await panel.getByRole("textbox", { name: "Summary" }).fill("They met.");
    await eventually(() => head(app), ({ summary }) => summary?.text === "They met.");
    expect(await head(app)).toMatchObject({ preset_id: "calm", lorebook_ids: ["engines"] });
    await panel.getByRole("switch", { name: "Write summaries automatically" }).uncheck();
    await eventually(
      async () => (await (await app.get("/api/settings")).json()).auto_summary,
      (isOn) => isOn === false,
    );
    await panel.getByRole("button", { name: "Remove summary" }).click();
    await eventually(() => head(app), ({ summary }) => summary === undefined);

    await page.getByLabel("Message", { exact: true }).fill("To the mill");
    await panel.getByRole("button", { name: "Preview prompt" }).click();
    const preview = page.getByRole("complementary", { name: "Prompt preview" });
    await preview.getByText("Preset: Calm").waitFor();
    await preview.getByText("Speaker: Ada").waitFor();
    await preview.getByText("Engines: Mill (matched “mill”)").waitFor();
    await preview.getByText("Engines: Rye (matched “mill”; secondary keys didn’t match)").waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    await page.getByRole("button", { name: "Send" }).click();
    await replies(page).getByText("Hello").waitFor();
    expect(sent(llm, 0)[0]!.content).toContain("The mill counts.");
    await expect.poll(() => llm.chats[0]!.json).toMatchObject({ temperature: 0.25 });
    await page.context().close();
  },
  PATIENCE_MS,
);

test.each(WIDTHS)("axe finds nothing in a group's controls, light and dark, %s", async (_, options) => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  const entries = [{ keys: ["tea"], name: "Tea", content: "Tea is hot.", extensions: {}, enabled: true }];
  await app.put("/api/lorebooks/house", { name: "House", scope: "chat", book: { entries } });
  const page = await openGroup(app, llm, ["ada", "bob", "cyrus"], options);
  await app.patch("/api/conversations/c1", { lorebook_ids: ["house"], summary: { text: "They met." } });
  await sendMessage(page, "Tea, Bob and Ada?");
  await eventually(() => llm.chats.length, (count) => count === 2);
  await isIdle(page);
  await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
  await page.getByLabel("Message", { exact: true }).fill("More tea");
  await openChatOptions(page);
  await page.getByRole("switch", { name: "House" }).waitFor();
  await page.getByLabel("Find a character to add").fill("zzz");
  await page.getByText("No other characters match.").waitFor();
  await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
  await page.getByRole("button", { name: "Preview prompt" }).click();
  await page.locator(".preview-list summary").first().click();
  await page.getByText("House: Tea (matched “tea”)").waitFor();
  await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  await page.context().close();
}, PATIENCE_MS);
