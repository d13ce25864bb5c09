/** Failures of the model server and their fixes, on the real server in a real browser. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { sendMessage } from "../../helpers/browser/ui_page.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { freePort } from "../../real/helpers/free_port.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** Adds a connection named Desk to the fake server and activates it. */
async function connect(app: TestApp, llm: Pick<FakeLlm, "url">, more: Record<string, unknown> = {}): Promise<void> {
  await app.put("/api/connections", { id: "desk", name: "Desk", kind: "openai", base_url: llm.url, ...more });
  await app.post("/api/connections/desk/activate", {});
  await app.patch("/api/settings", { auto_title: false, auto_summary: false });
  await app.post("/api/setup/complete", {});
}

const ending = (page: Page) => page.locator(".ending");

/** Waits until the last reply has this text and shows no failure. An earlier one may have the same text. */
async function seesReply(page: Page, text: string): Promise<void> {
  const complete = page.locator(".reply").last().and(page.locator('[data-status="complete"]'));
  await complete.locator(".prose").last().getByText(text, { exact: true }).waitFor();
  await ending(page).waitFor({ state: "detached" });
}

test("each failure of the model server has its fix next to it, which leads to the reply", {
  timeout: 240_000,
}, async () => {
  await using llm = await openFakeLlm({ apiKey: "sk-right", models: ["small", "large"] });
  await using app = await openTestApp();
  await connect(app, llm, { model: "small" });
  const { page, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/new`);

  // The first message of a new chat fails with a wrong key: the key can be entered in the chat.
  await sendMessage(page, "Hello there");
  await ending(page).getByText("“Desk” refused the API key").waitFor();
  // The status dot follows the call.
  await page.getByRole("button", { name: /^Model: small · Desk · Access denied$/ }).waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await ending(page).getByLabel("API key").fill("sk-right");
  await ending(page).getByRole("button", { name: "Save key and retry" }).click();
  await seesReply(page, "Hello");
  await page.getByRole("button", { name: /^Model: small · Desk · Ready$/ }).waitFor();

  // The model is gone: another one of the same server.
  Object.assign(llm.switches, { fail: "status_json", status: 404, message: "The model 'small' does not exist" });
  await sendMessage(page, "And then?");
  await ending(page).getByText("“Desk” doesn’t have the model “small”").waitFor();
  await ending(page).getByLabel("Model for this chat").selectOption("large");
  llm.switches.fail = "none";
  await ending(page).getByRole("button", { name: "Use and retry" }).click();
  await seesReply(page, "Hello");
  await expect.poll(() => llm.chats.at(-1)!.json).toMatchObject({ model: "large" });
  await page.getByRole("button", { name: /^Model: large/ }).waitFor();

  // A rate limit: Retry waits as long as the server asks.
  Object.assign(llm.switches, { fail: "status_json", status: 429, retry_after: "12", message: "Slow down" });
  // It's looked for from before it counts down.
  const counting = ending(page).getByRole("button", { name: /^Retry in 0:\d\d$/, disabled: true }).waitFor();
  await sendMessage(page, "Go on");
  await ending(page).getByText("“Desk” is limiting requests").waitFor();
  await counting;
  llm.switches.fail = "none";
  await ending(page).getByRole("button", { name: "Retry", exact: true }).click();
  await seesReply(page, "Hello");

  // Too long: retried without the oldest messages, then with a summary in their place.
  const id = new URL(page.url()).pathname.split("/").at(-1)!;
  const messages = Array.from({ length: 30 }, (_, n) => ({
    id: `old${n}`,
    role: n % 2 === 0 ? "user" : "assistant",
    content: `Part ${n}: ${"the lighthouse keeper counts the ships of the night ".repeat(12)}`,
  }));
  await app.put(`/api/conversations/${id}`, { title: "Long", model: "large", messages });
  await page.reload();
  const overflow = { fail: "status_json", status: 400, message: "This model's maximum context length is 4096 tokens" };
  Object.assign(llm.switches, overflow);
  await sendMessage(page, "What happened last?");
  await ending(page).getByText("This chat is too long for “large”").waitFor();
  // The second request left older messages out by itself, but was refused as well.
  const [whole, second] = llm.chats.slice(-2).map(({ json }) => json!.messages as unknown[]);
  expect(second!.length).toBeLessThan(whole!.length);
  llm.switches.fail = "none";
  await ending(page).getByRole("button", { name: "Drop oldest messages" }).click();
  await seesReply(page, "Hello");
  const shorter = llm.chats.at(-1)!.json!.messages as { content: string }[];
  expect(shorter.length).toBeLessThan(whole!.length);
  expect(shorter.at(-1)).toMatchObject({ content: "What happened last?" });
  // The limit is a guess: no model server knows it, and the chat doesn't keep it.
  await expect.poll(() => llm.chats.at(-1)!.json).not.toHaveProperty("context_size");
  await expect.poll(async () => (await (await app.get(`/api/conversations/${id}`)).json()).params?.context_size)
    .toBeUndefined();

  Object.assign(llm.switches, overflow);
  await sendMessage(page, "And before that?");
  await ending(page).getByText("This chat is too long for “large”").waitFor();
  const before = llm.chats.length;
  llm.pieces = ["They counted ships."];
  llm.switches.fail = "none";
  await ending(page).getByRole("button", { name: "Start from a summary" }).click();
  await seesReply(page, "They counted ships.");
  const [summaryCall, replyCall] = [llm.chats[before]!, llm.chats.at(-1)!];
  expect(JSON.stringify(summaryCall.json!.messages)).toContain("Part 0");
  expect(JSON.stringify(replyCall.json!.messages)).toContain("They counted ships.");
  expect(JSON.stringify(replyCall.json!.messages)).not.toContain("Part 0");
  const stored = await (await app.get(`/api/conversations/${id}`)).json();
  expect(stored.summary.text).toBe("They counted ships.");
  expect(errors).toEqual([]);
  await page.context().close();
});

test("a server that was unreachable is retried until it responds, even for the first message of a new chat", {
  timeout: 240_000,
}, async () => {
  const port = freePort();
  const llm = await openFakeLlm({ models: ["small"], port });
  await using app = await openTestApp();
  // Without a model name, the server is asked for its models, which fails as well.
  await connect(app, llm);
  const { page, errors } = await openPage(browser, app.url);
  await page.goto(`${app.url}/new`);
  await llm.close();
  await sendMessage(page, "Is anyone there?");
  await page.getByText("Can’t reach “Desk”").first().waitFor();
  await page.getByText("Parlor retries as soon as “Desk” responds.").waitFor();
  await page.getByRole("button", { name: "Retry", exact: true }).waitFor();
  await page.getByRole("button", { name: "Choose another model" }).waitFor();
  await page.getByRole("link", { name: /Desk Unreachable/ }).waitFor();
  await using back = await openFakeLlm({ models: ["small"], port });
  await seesReply(page, "Hello");
  await page.getByRole("link", { name: /Desk Ready/ }).waitFor();
  await page.getByRole("button", { name: /^Model: small/ }).waitFor();

  // So is another version of a reply; the earlier one stays.
  await back.close();
  await page.locator(".reply").last().getByRole("button", { name: "Regenerate" }).click();
  await ending(page).getByText("Couldn’t regenerate the reply. This is the previous one.").waitFor();
  await page.getByText("Parlor retries as soon as “Desk” responds.").waitFor();
  await using _again = await openFakeLlm({ models: ["small"], port, pieces: ["Here again"] });
  await seesReply(page, "Here again");
  await page.locator(".reply").last().getByText("2/2").waitFor();
  expect(errors).toEqual([]);
  await page.context().close();
});

test("a cut reply is continued, and one used up by thinking is retried with a higher limit", {
  timeout: 240_000,
}, async () => {
  await using llm = await openFakeLlm({ models: ["small"], switches: { reason: "length" } });
  await using app = await openTestApp();
  await connect(app, llm, { model: "small" });
  await app.put("/api/conversations/c1", { title: "Cut", messages: [], params: { max_tokens: 50 } });
  const { page } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  await sendMessage(page, "Tell me everything");
  await ending(page).getByText("Cut off at the limit of 50 tokens").waitFor();
  llm.switches.reason = "stop";
  llm.pieces = [" again"];
  await ending(page).getByRole("button", { name: "Continue" }).click();
  await seesReply(page, "Hello again");

  llm.switches.reason = "length";
  llm.pieces = [];
  llm.reasoning = ["Let me think."];
  await sendMessage(page, "Why?");
  await ending(page).getByText("Thinking used all 50 tokens, so the reply is empty").waitFor();
  llm.switches.reason = "stop";
  llm.pieces = ["Because."];
  await ending(page).getByRole("button", { name: "Retry with a limit of 100 tokens" }).click();
  await seesReply(page, "Because.");
  await expect.poll(() => llm.chats.at(-1)!.json).toMatchObject({ max_tokens: 100 });
  await page.context().close();
});
