import type { ChatPreview } from "../../../../../static/src/api/types.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { de } from "../../../../../static/src/texts/de/de.ts";
import { en, loadLater } from "../../../../../static/src/texts/en/en.ts";
import { ja } from "../../../../../static/src/texts/ja/ja.ts";
import { findAxeProblemsInBothSchemes, holdToasts } from "../../../../helpers/browser/browser.ts";
import {
  eventually,
  openChatOptions,
  openUiBench,
  PHONE,
  sendMessage,
  type UiBench,
  WIDTHS,
} from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
  await loadLater();
});
afterAll(() => bench.close());

const STORY = [{ role: "user", content: "Tell me a story" }, { role: "assistant", content: "Once upon a time." }];

function openStory() {
  return bench.open("/c/c1", {
    prepare: (api) => {
      api.addConversation("c1", "Chat", STORY);
      api.connections.push({
        id: "local",
        name: "Local",
        kind: "openai",
        base_url: "http://127.0.0.1:1",
        model: "small",
        has_key: false,
        header_names: [],
        server: {},
        refused: [],
        active: false,
        created_at: "2026-01-02T03:04:05Z",
        updated_at: "2026-01-02T03:04:05Z",
      });
      api.testResult = { ...api.testResult, models: ["small", "large"] };
    },
  });
}

test("saves sampling, system prompt and note of a chat while they are typed", async () => {
  await using ui = await openStory();
  await ui.page.getByRole("button", { name: "Chat options" }).click();
  await ui.page.getByLabel("Temperature").fill("0,7");
  await ui.page.getByLabel("Top K").fill("40");
  await ui.page.getByLabel("Stop sequences").fill("END\n\\n\\n");
  await ui.page.getByLabel("System prompt").fill("Speak like a sailor.");
  await ui.page.getByLabel("Author’s note", { exact: true }).fill("It rains.");
  await ui.page.getByLabel("Depth (messages from the end)").fill("2");
  const saved = await eventually(() => ui.api.conversations.get("c1")!, ({ note }) => note?.depth === 2);
  expect(saved).toMatchObject({
    params: { temperature: 0.7, top_k: 40, stop: ["END", "\n\n"] },
    system_prompt: "Speak like a sailor.",
    note: { text: "It rains.", depth: 2, role: "system" },
  });
  await ui.page.getByLabel("Top K").fill("1.5");
  await ui.page.getByText("Enter a number from 0 to 1000").waitFor();
  await ui.page.getByLabel("Temperature").fill("");
  await eventually(() => ui.api.conversations.get("c1")!.params, (params) => params?.temperature === undefined);
  await expect.poll(() => ui.api.conversations.get("c1")!.params).toMatchObject({ top_k: 40 });
  await ui.page.reload();
  await ui.page.getByRole("button", { name: "Chat options" }).click();
  // What can't be saved is kept as it was typed.
  await expect.poll(() => ui.page.getByLabel("Top K").inputValue()).toBe("1.5");
  await ui.page.getByRole("complementary", { name: "Chat options" }).getByRole("button", { name: "Discard" }).click();
  await expect.poll(() => ui.page.getByLabel("Top K").inputValue()).toBe("40");
  await expect.poll(() => ui.page.getByLabel("Stop sequences").inputValue()).toBe("END\n\\n\\n");
});

test("a panel that is opened before its chat is loaded shows the options then", async () => {
  await using ui = await openStory();
  const { page, api } = ui;
  Object.assign(api.conversations.get("c1")!, { system_prompt: "Speak like a sailor." });
  const loading = Promise.withResolvers<void>();
  await page.route("**/api/conversations/c1?*", async (route) => {
    await loading.promise;
    await route.continue();
  });
  await page.reload();
  await page.getByRole("button", { name: "Chat options" }).click();
  await page.getByRole("complementary").getByText("Loading").waitFor();
  await expect.poll(() => page.getByLabel("System prompt").count()).toBe(0);
  loading.resolve();
  await page.getByLabel("System prompt").waitFor();
  await expect.poll(() => page.getByLabel("System prompt").inputValue()).toBe("Speak like a sailor.");
});

test("saves the last change when the panel closes", async () => {
  await using ui = await openStory();
  await ui.page.getByRole("button", { name: "Chat options" }).click();
  await ui.page.getByLabel("Seed").fill("7");
  await ui.page.getByRole("button", { name: "Close" }).click();
  await eventually(() => ui.api.conversations.get("c1")!.params, (params) => params?.seed === 7);
});

test("selects the chat's model from the connection's list or by name", async () => {
  await using ui = await openStory();
  const button = () => ui.page.getByRole("button", { name: /^Model:/ });
  await button().click();
  const picker = ui.page.getByRole("dialog", { name: "Model for this chat" });
  await picker.getByLabel("Connection").selectOption("Local");
  await eventually(() => ui.api.conversations.get("c1")!.connection_id, (id) => id === "local");
  await picker.getByRole("button", { name: "large", exact: true }).click();
  await ui.page.getByRole("button", { name: "Model: large" }).waitFor();
  await eventually(() => ui.api.conversations.get("c1")!.model, (model) => model === "large");
  await expect.poll(() => ui.api.conversations.get("c1")!.connection_id).toBe("local");
  await button().click();
  await picker.getByLabel("Find or enter a model").fill("my-own");
  await expect.poll(() => picker.getByRole("button", { name: "large", exact: true }).count()).toBe(0);
  await picker.getByRole("button", { name: "Use “my-own”" }).click();
  await eventually(() => ui.api.conversations.get("c1")!.model, (model) => model === "my-own");
  await button().click();
  await picker.getByRole("button", { name: "Connection default (small)" }).click();
  await eventually(() => ui.api.conversations.get("c1")!.model, (model) => model === undefined);
});

test("stores options set before the first message with the new chat", async () => {
  await using ui = await bench.open("/new");
  await ui.page.getByRole("button", { name: /^Model:/ }).click();
  await ui.page.getByLabel("Find or enter a model").fill("my-own");
  await ui.page.getByRole("button", { name: "Use “my-own”" }).click();
  await sendMessage(ui.page, "Hello there");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await expect.poll(() => [...ui.api.conversations.values()]).toMatchObject([{ model: "my-own", messages: [{}, {}] }]);
  await ui.page.getByRole("button", { name: "Model: my-own" }).waitFor();
});

test("previews the prompt with its size and what is left out", async () => {
  await using ui = await openStory();
  await ui.page.getByLabel("Message", { exact: true }).fill("And then?");
  await ui.page.getByRole("button", { name: "Chat options" }).click();
  await ui.page.getByRole("button", { name: "Preview prompt" }).click();
  const panel = ui.page.getByRole("complementary", { name: "Prompt preview" });
  // An unconfirmed context size shows no percentage.
  await panel.getByText("120 tokens", { exact: true }).waitFor();
  await panel.getByText("It assumes 8,192 tokens.").waitFor();
  await expect.poll(() => panel.getByRole("meter").count()).toBe(0);
  await panel.getByText("3 older messages don’t fit and are left out").waitFor();
  await panel.getByText("And then?").waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/chat/preview")[0]!.body).toMatchObject({
    conversation_id: "c1",
    context: "server",
    messages: [{ role: "user", content: "And then?" }],
  });
  ui.api.refuse("POST /api/chat/preview", { status: 503, code: "not_available", message: "No connection is active" });
  await panel.getByRole("button", { name: "Refresh" }).click();
  await panel.getByText("No connection is active").waitFor();
  ui.api.allow("POST /api/chat/preview");
  ui.api.preview.context_size_assumed = false;
  await panel.getByRole("button", { name: "Try again" }).click();
  await panel.getByText("120 of 8,192 tokens").waitFor();
  await panel.getByRole("meter").waitFor();
});

test("lists tools that go with the prompt, and notes and tools that don't", async () => {
  await using ui = await openStory();
  const scope = { kind: "everything" as const };
  const times = { created_at: "2026-01-02T03:04:05Z", updated_at: "2026-01-02T03:04:05Z" };
  const note = { id: "n1", text: "Likes tea", scope, pinned: false, ...times };
  await ui.page.route("**/api/memories", (route) => route.fulfill({ json: [note] }));
  Object.assign(ui.api.preview, {
    tools: [{ name: "lookup", server_id: "files", server_name: "Files", tool_name: "lookup" }],
    tools_left_out: [{ name: "Web", reason: "it doesn't answer" }],
    memories_left_out: ["n1"],
  });
  await ui.page.getByRole("button", { name: "Chat options" }).click();
  await ui.page.getByRole("button", { name: "Preview prompt" }).click();
  const panel = ui.page.getByRole("complementary", { name: "Prompt preview" });
  await panel.getByRole("region", { name: "Tools sent with the prompt" }).getByText("lookup · Files").waitFor();
  const leftOut = panel.getByRole("region", { name: "Not included" });
  await leftOut.getByText("Web (it doesn't answer)").waitFor();
  await leftOut.getByText("Memory: Likes tea (over the token budget)").waitFor();
});

const NOT_EXPANDED: ChatPreview["not_expanded"] = [
  { field: "description", reason: "steps" },
  { field: "main", source: "card", reason: "depth" },
  { field: "lorebook", source: "World: Mill", reason: "variables" },
  { field: "history", source: "c1-m2", reason: "bytes" },
];

test.each<["en" | "de" | "ja", string, string[]]>([
  ["en", "Unexpanded macros", [
    "Description (too many macros)",
    "Main prompt: from the card (macros nested too deeply)",
    "Lorebook: World: Mill (too many or too large variables)",
    "A message in this chat (macros insert too much text)",
  ]],
  ["de", "Nicht aufgelöste Makros", [
    "Beschreibung (zu viele Makros)",
    "Hauptprompt: aus der Karte (zu tief verschachtelte Makros)",
    "Lorebook: World: Mill (zu viele oder zu große Variablen)",
    "Eine Nachricht in diesem Chat (Makros fügen zu viel Text ein)",
  ]],
  ["ja", "展開されなかったマクロ", [
    "説明 (マクロが多すぎる)",
    "メインプロンプト: カードから (マクロの入れ子が深すぎる)",
    "ロアブック: World: Mill (変数が多すぎる、または大きすぎる)",
    "チャットのメッセージ (マクロが挿入するテキストが多すぎる)",
  ]],
])(
  "the preview lists fields whose macros exceed the budget, and why (%s)",
  { tags: ["F01"] },
  async (language, title, lines) => {
    await using ui = await bench.open("/c/c1", {
      locale: language,
      prepare: (api) => {
        api.addConversation("c1", "Chat", STORY);
        api.preview.not_expanded = NOT_EXPANDED;
      },
    });
    const { chat, chatOptions } = { en, de, ja }[language];
    await ui.page.getByRole("button", { name: chat.options.title }).click();
    await ui.page.getByRole("button", { name: chatOptions.preview.open }).click();
    const list = ui.page.getByRole("region", { name: title });
    await list.waitFor();
    await expect.poll(() => list.getByRole("listitem").allInnerTexts()).toEqual(lines);
  },
);

test("sends a temporary chat complete, stores nothing, and forgets it on leaving", async () => {
  await using ui = await bench.open("/new");
  await ui.page.getByRole("button", { name: "Temporary chat (not saved)" }).click();
  await ui.page.getByText("Temporary chat: nothing is saved.").waitFor();
  await sendMessage(ui.page, "A secret");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await ui.page.getByRole("button", { name: "Send" }).waitFor();
  await sendMessage(ui.page, "Another");
  await ui.page.locator(".reply", { hasText: "Hello" }).nth(1).waitFor();
  const bodies = ui.api.seen("POST", "/api/chat").map(({ body }) => body as Record<string, unknown>);
  expect(bodies[1]!.messages).toEqual([
    { role: "user", content: "A secret" },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "Another" },
  ]);
  expect(bodies.every((body) => !("conversation_id" in body) && !("user_message_id" in body))).toBe(true);
  expect(new URL(ui.page.url()).pathname).toBe("/temporary");
  await expect.poll(() => [...ui.api.conversations.keys()]).toEqual([]);
  await expect.poll(() => ui.api.seen("PATCH", /draft$/)).toEqual([]);
  await expect.poll(() => ui.page.evaluate(() => JSON.stringify(localStorage))).not.toContain("secret");

  const turn = ui.page.locator(".user-message", { hasText: "Another" });
  await holdToasts(ui.page);
  await turn.hover();
  await turn.getByRole("button", { name: "Message actions" }).click();
  await ui.page.getByRole("menuitem", { name: "Delete", exact: true }).click();
  await turn.waitFor({ state: "detached" });
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await turn.waitFor();

  await ui.page.getByRole("link", { name: "New chat" }).click();
  await ui.page.goBack();
  await ui.page.getByText("Nothing is saved. The chat ends").waitFor();
  await expect.poll(() => ui.page.locator(".message").count()).toBe(0);
});

test("Stop ends the reply of a temporary chat and keeps what arrived", async () => {
  await using ui = await bench.open("/temporary", { prepare: (api) => api.script = undefined });
  await sendMessage(ui.page, "Count");
  const reply = await eventually(() => [...ui.api.replies.values()][0], (each) => each !== undefined);
  reply!.say("One, two");
  const said = ui.page.locator(".reply .prose").getByText("One, two");
  await said.waitFor();
  await ui.page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  await ui.page.locator(".ending", { hasText: "Stopped" }).waitFor();
  await expect.poll(() => said.isVisible()).toBe(true);
});

test.each(WIDTHS)(
  "axe finds nothing in a chat, its menu, its panels and its editor, light and dark, %s",
  async (_, size) => {
    const content = "Text with $x^2$\n\n```ts\nconst a = 1; // note\n```\n\n$$\\frac{1}{2}$$\n\n| a |\n|---|\n| b |";
    await using ui = await bench.open("/c/c1", {
      ...size,
      prepare: (api) => {
        api.addConversation("c1", "Chat", [
          ...STORY,
          { role: "user", content: "Hidden", hidden: true },
          { role: "assistant", content, variant_count: 2, active_variant: 0, reasoning: "Hm." },
        ]);
        api.preview.not_expanded = NOT_EXPANDED;
        api.addConversation("c2", "Other").forked_from = { conversation_id: "c1", message_id: "c1-m1" };
      },
    });
    const { page } = ui;
    const check = (where: string) =>
      expect.poll(() => findAxeProblemsInBothSchemes(page), { message: where }).toEqual([]);
    await page.locator(".code-keyword").waitFor();
    await page.locator(".formula math").waitFor();
    await check("chat");
    await page.locator("[data-message-id=c1-m3]").getByRole("button", { name: "Message actions" }).click();
    await check("menu");
    await page.getByRole("menuitem", { name: "Details" }).click();
    await page.locator("dl.facts").waitFor();
    await check("details");
    await page.keyboard.press("Escape");
    await openChatOptions(page);
    await page.getByLabel("Temperature").fill("99");
    await check("options");
    await page.getByRole("button", { name: "Preview prompt" }).click();
    await page.getByText("It assumes 8,192 tokens.").waitFor();
    await check("preview");
    await page.getByRole("button", { name: "Close" }).first().click();
    await page.getByLabel("Message", { exact: true }).fill("/");
    await page.getByRole("listbox", { name: "Commands" }).waitFor();
    await check("commands");
    await page.getByLabel("Message", { exact: true }).fill("");
    await page.getByLabel("Message", { exact: true }).press("ArrowUp");
    await page.getByRole("textbox", { name: "Message text" }).waitFor();
    await check("editor");
    await page.keyboard.press("Escape");
    const isPhone = size === PHONE;
    if (isPhone) await page.getByRole("button", { name: "Chat actions" }).click();
    await page.getByRole(isPhone ? "menuitem" : "button", { name: "Search in this chat" }).click();
    await page.getByRole("searchbox").fill("story");
    await page.locator(".chat-search-count").getByText("1 of 1").waitFor();
    await check("search");
    await page.getByRole("button", { name: /^Model:/ }).click();
    await check("model");
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  },
);
