/** What a chat shows of the model's context: the progress of the prompt, how full it is, and where memory starts. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { sendMessage } from "../../helpers/browser/ui_page.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

async function connect(app: TestApp, llm: FakeLlm): Promise<void> {
  await app.put("/api/connections", { id: "desk", name: "Desk", kind: "openai", base_url: llm.url, model: "small" });
  await app.post("/api/connections/desk/activate", {});
  await app.patch("/api/settings", { auto_title: false, auto_summary: false });
  await app.post("/api/setup/complete", {});
}

const strip = (page: Page) => page.locator(".context-strip");

/** A chat of 12 messages with 160 tokens each. */
async function saveChat(app: TestApp, id: string, title: string, fields: Record<string, unknown> = {}): Promise<void> {
  const messages = Array.from(
    { length: 12 },
    (_, n) => say(`${id}-${n}`, `Part ${n}: ${"word ".repeat(155)}`.trim(), n % 2 ? "assistant" : "user"),
  );
  await app.put(`/api/conversations/${id}`, { title, messages, ...fields });
}

test("shows how much of the prompt is read, then how full the context is, and opens its parts", {
  timeout: 240_000,
}, async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: ["small"], switches: { manual: "on" } });
  llm.contextSize = 8_192;
  llm.slots = 1;
  await using app = await openTestApp();
  await connect(app, llm);
  await saveChat(app, "c1", "The lighthouse");
  await saveChat(app, "c2", "The harbor");
  const { page, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  await sendMessage(page, "And then?");
  const call = await llm.nextCall();
  await call.raw(llm.progress({ total: 4100, cache: 1900, processed: 2501 }));
  await strip(page).getByText("Reading the prompt, 61% of 4,100 tokens · 1,900 from cache").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  // Another chat waits for the only slot.
  const { page: other } = await openPage(browser, app.url);
  await other.goto(`${app.url}/c/c2`);
  await sendMessage(other, "And here?");
  const second = await llm.nextCall();
  await strip(other).getByText("Waiting for the reply in “The lighthouse”").waitFor();

  await call.emit("They left.");
  await page.locator(".reply .prose").last().getByText("They left.").waitFor();
  await strip(page).waitFor({ state: "detached" });
  await call.finish();
  // An estimate of 12 messages with about 160 tokens each: the server reports 11, as if it didn't count its cache.
  await strip(page).getByText(/^Context [1-4]\d% full · \d,\d{3} of 8,192 tokens$/).waitFor();
  await second.emit("Here, too.");
  await second.finish();
  await other.context().close();

  await strip(page).click();
  const parts = page.locator(".part-costs");
  await parts.getByText("Messages").waitFor();
  await parts.getByText("Reserved for the reply").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.context().close();
});

test("a line shows where memory starts, and what stands for the messages above", { timeout: 240_000 }, async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", models: ["small"] });
  llm.contextSize = 2_048;
  await using app = await openTestApp();
  await connect(app, llm);
  await saveChat(app, "c1", "The lighthouse", { params: { max_tokens: 500 } });
  const { page, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  await sendMessage(page, "And then?");
  await page.locator(".reply .prose").last().getByText("Hello", { exact: true }).waitFor();
  const line = page.getByRole("note", { name: "The model’s memory starts here." });
  await line.getByText("Earlier messages are no longer sent.").waitFor();
  // Screen readers hear it once, since the list itself is silent.
  await page.locator("[aria-live=polite]").getByText("The model’s memory starts here.").waitFor({ state: "attached" });
  const sent = llm.chats[0]!.json!.messages as { role: string; content: string }[];
  const oldest = Number(/^Part (\d+)/.exec(sent.find(({ role }) => role !== "system")!.content)![1]);
  expect(oldest).toBeGreaterThan(0);
  // It's right above the oldest message that was sent.
  const next = line.locator("xpath=following-sibling::*[1]");
  await expect.poll(() => next.getAttribute("data-message-id")).toBe(`c1-${oldest}`);

  await app.patch("/api/conversations/c1", {
    summary: { text: "The keeper counted ships.", up_to_message_id: `c1-${oldest - 1}` },
  });
  await line.getByText("A summary stands for earlier messages.").waitFor();
  await line.getByRole("button", { name: "Show the summary" }).click();
  await line.getByText("The keeper counted ships.").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.context().close();
});
