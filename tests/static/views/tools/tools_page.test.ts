/** Settings, Tools, and chats with finished tool calls, on the page with the real server. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblems,
  findAxeProblemsInBothSchemes,
  openBrowser,
  openPage,
} from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { WIDTHS } from "../../../helpers/browser/ui_page.ts";
import { openFakeSearxng } from "../../../helpers/fakes/fake_searxng.ts";

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const FOLDER = Deno.env.get("SCREENSHOTS");
async function takePicture(page: Page, name: string): Promise<void> {
  if (FOLDER) await page.screenshot({ path: `${FOLDER}/${name}.png` });
}

async function openReady(): Promise<TestApp> {
  const app = await openTestApp({ uiFolder });
  await app.post("/api/setup/complete", {});
  return app;
}

const call = (id: string, fields: Record<string, unknown>) => ({
  id,
  type: "function",
  function: { name: "web_search", arguments: `{"query":"${id}"}` },
  server_id: "web",
  server_name: "Web",
  ...fields,
});

/** A reply of two rounds, one with an unknown tool, and a call that a client answered. */
const MESSAGES = [
  { id: "u1", role: "user", content: "When was the lighthouse built?" },
  {
    id: "r1",
    role: "assistant",
    content: "I'll look it up.",
    reply_id: "a1",
    tool_calls: [call("lighthouse", { state: "done", duration_ms: 1234 }), call("harbor", { state: "denied" })],
  },
  { id: "t1", role: "tool", tool_call_id: "lighthouse", content: "Built in 1874\n".repeat(40), reply_id: "a1" },
  { id: "t2", role: "tool", tool_call_id: "harbor", content: "The user denied this call.", reply_id: "a1" },
  { id: "a1", role: "assistant", content: "It was built in **1874**." },
  { id: "u2", role: "user", content: "And the tower?" },
  {
    id: "r2",
    role: "assistant",
    content: "",
    reply_id: "a2",
    tool_calls: [call("tower", { state: "unknown", hints: { readOnly: true } })],
  },
  { id: "a2", role: "assistant", content: "", status: "interrupted" },
  { id: "u3", role: "user", content: "Roll a die" },
  {
    id: "a3",
    role: "assistant",
    content: "",
    tool_calls: [{ id: "d", type: "function", function: { name: "roll", arguments: '{"sides":6}' } }],
  },
  { id: "t3", role: "tool", tool_call_id: "d", content: "4" },
  { id: "a4", role: "assistant", content: "A four." },
  { id: "t4", role: "tool", tool_call_id: "lost", content: "A result without its call" },
];

test("a chat shows the calls of a reply in it, with state, arguments and what the model saw", async () => {
  await using app = await openReady();
  expect((await app.put("/api/conversations/c1", { title: "Lighthouse", messages: MESSAGES })).ok).toBe(true);
  const { page, errors } = await openPage(browser, app.url, {});
  await page.goto(`${app.url}/c/c1`);
  const cards = page.locator(".tool-call");
  await expect.poll(() => cards.count()).toBe(5);
  await expect.poll(() => cards.evaluateAll((all) => all.map((card) => card.getAttribute("aria-label")))).toEqual([
    "Tool call: web_search, Done · 1.2 s",
    "Tool call: web_search, Denied",
    "Tool call: web_search, Unknown",
    "Tool call: roll",
    "Tool call: Tool result",
  ]);
  const articles = page.locator(".message");
  await expect.poll(() => articles.evaluateAll((all) => all.map((article) => article.getAttribute("data-message-id"))))
    .toEqual([
      ...["u1", "a1", "u2", "a2", "u3", "a3", "a4", "t4"],
    ]);
  const reply = page.locator('[data-message-id="a1"]');
  await expect.poll(() => reply.innerText()).toMatch(/I'll look it up\.[^]*web_search[^]*It was built in 1874\./);
  const first = cards.first();
  await first.getByText("Arguments").click();
  await first.getByText('"query": "lighthouse"').waitFor();
  await expect.poll(() => first.getByText("Built in 1874").count()).toBe(0);
  await first.getByText("Result, 560 characters").click();
  await first.getByText("What the model saw", { exact: true }).waitFor();
  await first.getByText("Built in 1874").first().waitFor();
  await cards.nth(2).getByText("It may have taken effect.").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Allow once" }).count()).toBe(0);
  for (const [width] of WIDTHS) {
    await page.setViewportSize(width === "narrow" ? { width: 390, height: 844 } : { width: 1280, height: 800 });
    await reply.scrollIntoViewIfNeeded();
    const findProblems = () =>
      findAxeProblemsInBothSchemes(page, (colorScheme) => takePicture(page, `stored-${colorScheme}-${width}`));
    await expect.poll(findProblems, { message: width }).toEqual([]);
  }
  expect(errors).toEqual([]);
});

test("sets up web search, tests it and allows a tool", async () => {
  await using searxng = openFakeSearxng({ formats: ["html"] });
  await using app = await openReady();
  const { page, errors } = await openPage(browser, app.url, {});
  await page.goto(`${app.url}/settings/tools`);
  const address = page.getByLabel("SearXNG URL");
  await address.fill(searxng.origin);
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("add json to search.formats").waitFor();
  searxng.switches.formats = ["html", "json"];
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("Web search works: 3 results").waitFor();
  const search = page.getByRole("switch", { name: "Web search" });
  await expect.poll(() => search.isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("When a model calls read_page").selectOption("allow");
  await page.getByRole("switch", { name: "Web search" }).click();
  await expect.poll(async () => await (await app.get("/api/tools/web")).json()).toMatchObject({
    search_url: searxng.origin,
    search: false,
    read_page: true,
    tools: [{ permission: "ask" }, { permission: "allow" }],
  });
  for (const [width] of WIDTHS) {
    await page.setViewportSize(width === "narrow" ? { width: 390, height: 844 } : { width: 1280, height: 800 });
    const findProblems = () =>
      findAxeProblemsInBothSchemes(page, (colorScheme) => takePicture(page, `settings-${colorScheme}-${width}`));
    await expect.poll(findProblems, { message: width }).toEqual([]);
  }
  expect(errors).toEqual([]);
});

test("what is typed while a save is under way stays", async () => {
  await using app = await openReady();
  const { page } = await openPage(browser, app.url, {});
  await page.goto(`${app.url}/settings/tools`);
  const typed = Promise.withResolvers<void>();
  await page.route("**/api/tools/web", async (route) => {
    if (route.request().method() !== "GET") await typed.promise;
    await route.continue();
  });
  const address = page.getByLabel("SearXNG URL");
  await address.fill("http://127.0.0.1:9");
  await page.getByRole("button", { name: "Save" }).click();
  await address.fill("http://127.0.0.1:10");
  typed.resolve();
  await page.locator(".toast").waitFor();
  expect(await address.inputValue()).toBe("http://127.0.0.1:10");
});

test("turns tools off and on in one chat", async () => {
  await using app = await openReady();
  await app.put("/api/conversations/c1", { title: "Quiet", messages: MESSAGES.slice(0, 1) });
  const { page } = await openPage(browser, app.url, {});
  await page.goto(`${app.url}/c/c1`);
  await page.getByRole("button", { name: "Chat options" }).first().click();
  const toggle = page.getByRole("switch", { name: "Use tools in this chat" });
  const stored = async () => (await (await app.get("/api/conversations/c1")).json()).tools;
  await toggle.click();
  await expect.poll(stored).toBe(false);
  await expect.poll(() => toggle.isChecked()).toBe(false);
  await toggle.click();
  await expect.poll(stored).not.toBe(false);
});

test("inserts a prompt with arguments and attaches a resource of a tool server", async () => {
  await using app = await openReady();
  await app.put("/api/conversations/c1", { title: "Insert", messages: MESSAGES.slice(0, 1) });
  const { page, errors } = await openPage(browser, app.url, {});
  const asked: unknown[] = [];
  const answers: Record<string, unknown> = {
    "": [
      { id: "notes", name: "Notes", state: "ready", prompts: true, resources: true },
      { id: "off", name: "Off", state: "off", prompts: true, resources: true },
    ],
    "/notes/prompts": [{ name: "review", title: "Review", arguments: [{ name: "topic", required: true }] }],
    "/notes/resources": [{ uri: "memo://1", name: "memo" }],
    "/notes/prompts/review": { text: "Review the harbor." },
    "/notes/resources/read": { name: "memo", content_type: "text/plain", text: "The harbor closes at nine." },
  };
  await page.route("**/api/tools/servers**", async (route) => {
    const request = route.request();
    if (request.method() === "POST") asked.push(request.postDataJSON());
    await route.fulfill({ json: answers[new URL(request.url()).pathname.replace("/api/tools/servers", "")] });
  });
  await page.goto(`${app.url}/c/c1`);
  const message = page.getByLabel("Message", { exact: true });
  const open = async () => {
    await message.fill("/");
    await page.getByRole("option", { name: "Insert a prompt or resource" }).click();
  };
  await open();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Review" }).click();
  const insert = dialog.getByRole("button", { name: "Insert" });
  await expect.poll(() => insert.isDisabled()).toBe(true);
  await dialog.getByLabel("topic").fill("harbor");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await insert.click();
  await expect.poll(() => message.inputValue()).toBe("Review the harbor.");
  await open();
  await dialog.getByRole("button", { name: "memo" }).click();
  await page.getByRole("button", { name: /^memo\.txt/ }).and(page.locator(":enabled")).waitFor();
  const [document] = await (await app.get("/api/documents")).json();
  await expect.poll(async () => (await (await app.get(`/api/documents/${document.id}/text`)).json()).pages[0].text)
    .toBe("The harbor closes at nine.");
  expect(asked).toEqual([{ arguments: { topic: "harbor" } }, { uri: "memo://1" }]);
  expect(errors).toEqual([]);
});
