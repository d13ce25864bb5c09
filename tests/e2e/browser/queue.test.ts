/**
 * Messages that wait for the end of a reply, in a real browser with the real server.
 * @slow Each test writes its replies by hand, and some use several pages.
 */
import { Buffer } from "node:buffer";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import type { StoredConversation } from "../../helpers/app/stored_chat.ts";
import { findAxeProblems } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { eventually, PHONE, sendMessage } from "../../helpers/browser/ui_page.ts";

let llm: FakeLlm;
let browser: Browser;
let server: ChildServer;
let dataDir: string;

beforeAll(async () => {
  await builtUi();
  llm = await openFakeLlm({ switches: { manual: "on" } });
  browser = await chromium.launch({
    executablePath: Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  dataDir = await Deno.makeTempDir({ prefix: "parlor-queue-" });
  server = await startChildServer({ dataDir, args: ["--discover-hosts", "127.0.0.1:9"] });
  await connectModel(server, llm.url);
  await server.json("POST", "/api/setup/complete");
});
afterAll(async () => {
  await browser.close();
  await server.kill();
  await llm[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

/** Opens a separate browser context: another device. */
async function openContext(options: BrowserContextOptions = {}): Promise<BrowserContext & AsyncDisposable> {
  const context = await browser.newContext({ locale: "en-US", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  return Object.assign(context, { [Symbol.asyncDispose]: () => context.close() });
}

async function openAt(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(server.url + path);
  return page;
}

const box = (page: Page) => page.getByLabel("Message", { exact: true });
const chips = (page: Page) => page.getByRole("list", { name: "Queued messages" }).getByRole("listitem");
const idOf = (page: Page) => new URL(page.url()).pathname.slice("/c/".length);
const read = (id: string) => server.json<StoredConversation>("GET", `/api/conversations/${id}`);

/** The user's messages of a call, as the model got them. */
async function nextCall() {
  const call = await llm.nextCall();
  const messages = call.request.json!.messages as { role: string; content: unknown }[];
  const asked = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  return { call, asked };
}

/** Queues a text by keyboard, as users of a desktop do. */
async function queue(page: Page, text: string): Promise<void> {
  const before = await chips(page).count();
  await box(page).fill(text);
  await box(page).press("Enter");
  await eventually(() => chips(page).count(), (count) => count === before + 1);
}

test("messages queued during a reply are sent in order, each after a reply that ended well", async () => {
  await using context = await openContext();
  const page = await openAt(context, "/new");
  await sendMessage(page, "One");
  const first = await nextCall();
  await first.call.emit("First");
  await page.getByRole("log").getByText("First", { exact: true }).waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Queue", exact: true }).count()).toBe(0);
  await box(page).fill("Two");
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  await chips(page).getByText("Two", { exact: true }).waitFor();
  await page.getByRole("status").getByText("Will be sent after this reply").waitFor();
  await expect.poll(() => box(page).inputValue()).toBe("");
  await queue(page, "Three");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked).toEqual(["One", "Two"]);
  await expect.poll(() => chips(page).allInnerTexts()).toEqual(["Three"]);
  await second.call.emit("Second");
  await second.call.finish();
  const third = await nextCall();
  expect(third.asked).toEqual(["One", "Two", "Three"]);
  await expect.poll(() => chips(page).count()).toBe(0);
  await third.call.finish();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
});

test("after Stop or a failure a queued message stays, and is edited, removed or sent by hand", async () => {
  await using context = await openContext(PHONE);
  const page = await openAt(context, "/new");
  await sendMessage(page, "Begin");
  const first = await nextCall();
  await first.call.emit("Begun");
  await page.getByRole("log").getByText("Begun", { exact: true }).waitFor();
  for (const text of ["Alpha", "Beta", "Gamma"]) {
    await box(page).fill(text);
    await page.getByRole("button", { name: "Queue", exact: true }).tap();
    await chips(page).getByText(text, { exact: true }).waitFor();
  }
  await page.locator(".composer").getByRole("button", { name: "Stop", exact: true }).tap();
  await page.getByRole("log").getByText("Stopped", { exact: true }).waitFor();
  await page.getByRole("status").getByText("Not sent yet.").waitFor();
  await expect.poll(() => chips(page).count()).toBe(3);
  await expect.poll(() => page.locator(".queue").getByRole("button", { name: /^Move “/ }).count()).toBe(3);
  const readHeights = () =>
    page.locator(".queue button").evaluateAll((buttons) =>
      buttons.map((button) => button.getBoundingClientRect().height)
    );
  await expect.poll(async () => (await readHeights()).filter((height) => height >= 44).length).toBe(12);
  expect(await readHeights()).toHaveLength(12);
  await page.getByRole("button", { name: "Remove “Gamma”" }).tap();
  await expect.poll(() => chips(page).count()).toBe(2);
  await page.getByRole("button", { name: "Edit “Alpha”" }).tap();
  await eventually(() => box(page).inputValue(), (text) => text === "Alpha");
  await expect.poll(() => chips(page).count()).toBe(1);
  await box(page).fill("");
  await page.getByRole("button", { name: "Send now: “Beta”" }).tap();
  const second = await nextCall();
  expect(second.asked).toEqual(["Begin", "Beta"]);
  await expect.poll(() => chips(page).count()).toBe(0);
  await box(page).fill("Delta");
  await page.getByRole("button", { name: "Queue", exact: true }).tap();
  await chips(page).getByText("Delta").waitFor();
  await second.call.emit("Cut");
  await second.call.fail("event_error");
  await page.getByRole("button", { name: "Send now: “Delta”" }).waitFor();
  await expect.poll(async () => (await read(idOf(page))).messages.length).toBe(4);
  await page.getByRole("button", { name: "Remove “Delta”" }).tap();
});

test("queued messages are moved with the keyboard and by touch, and sent in their new order", async () => {
  await using context = await openContext();
  await using phone = await openContext(PHONE);
  const page = await openAt(context, "/new");
  await sendMessage(page, "Start");
  const first = await nextCall();
  await first.call.emit("Started");
  await page.getByRole("log").getByText("Started", { exact: true }).waitFor();
  await queue(page, "Alpha");
  await page.getByRole("button", { name: "Edit “Alpha”" }).waitFor();
  expect(await page.getByRole("button", { name: "Move “Alpha”", exact: true }).count()).toBe(0);
  const long = Array(20).fill("Beta").join(" ");
  await queue(page, long);
  const short = Array(12).fill("Beta").join(" ");
  await page.getByRole("button", { name: `Edit “${short}…”`, exact: true }).waitFor();
  await queue(page, "Gamma");
  const other = await openAt(phone, `/c/${idOf(page)}`);
  const seen = async (order: string) => {
    for (const tab of [page, other]) await eventually(() => chips(tab).allInnerTexts(), (all) => all.join() === order);
  };
  await seen(`Alpha,${long},Gamma`);
  await page.getByRole("button", { name: "Move “Gamma”", exact: true }).press("Enter");
  await expect.poll(() => page.getByRole("menuitem").allInnerTexts()).toEqual(["Move up"]);
  await page.getByRole("menuitem", { name: "Move up" }).press("Enter");
  await seen(`Alpha,Gamma,${long}`);
  await page.getByRole("status").getByText("“Gamma”: 2 of 3").waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  await expect.poll(focused).toBe("Move “Gamma”");
  await other.getByRole("button", { name: "Move “Alpha”", exact: true }).tap();
  const row = other.getByRole("menuitem", { name: "Move down" });
  await expect.poll(async () => (await row.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  await row.tap();
  await seen(`Gamma,Alpha,${long}`);
  let { call } = first;
  for (const text of ["Gamma", "Alpha", long]) {
    await call.finish();
    const sent = await nextCall();
    expect(sent.asked.at(-1)).toBe(text);
    await sent.call.emit("Fine");
    call = sent.call;
  }
  await call.finish();
});

test("a queued message outlives a reload, and only one of several tabs sends it", async () => {
  await using context = await openContext();
  const page = await openAt(context, "/new");
  await sendMessage(page, "Hello");
  const first = await nextCall();
  await first.call.emit("Hi");
  await page.getByRole("log").getByText("Hi", { exact: true }).waitFor();
  await queue(page, "And then?");
  await queue(page, "And after that?");
  const id = idOf(page);
  await page.reload();
  const other = await openAt(context, `/c/${id}`);
  for (const tab of [page, other]) await eventually(() => chips(tab).count(), (count) => count === 2);
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked).toEqual(["Hello", "And then?"]);
  for (const tab of [page, other]) {
    await eventually(() => chips(tab).allInnerTexts(), (texts) => texts.join() === "And after that?");
  }
  await second.call.emit("Then");
  await second.call.finish();
  const third = await nextCall();
  await third.call.emit("After");
  await third.call.finish();
  const messages = await eventually(
    async () => (await read(id)).messages,
    (all) => all.length === 6 && all[5]!.status === "complete",
  );
  expect(messages.map(({ content }) => content)).toEqual([
    "Hello",
    "Hi",
    "And then?",
    "Then",
    "And after that?",
    "After",
  ]);
  for (const tab of [page, other]) await eventually(() => chips(tab).count(), (count) => count === 0);
});

test("a queued message with an image is sent while another chat is shown", async () => {
  await using context = await openContext();
  const page = await openAt(context, "/new");
  await sendMessage(page, "Look");
  const first = await nextCall();
  await first.call.emit("Looking");
  await page.getByRole("log").getByText("Looking", { exact: true }).waitFor();
  const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await page.locator("input[type=file]").setInputFiles({
    name: "dot.png",
    mimeType: "image/png",
    buffer: Buffer.from(PIXEL, "base64"),
  });
  await page.getByRole("img", { name: "dot.png" }).waitFor();
  await box(page).fill("And this?");
  await page.getByRole("button", { name: "Queue", exact: true, disabled: false }).click();
  await chips(page).getByText("1 attachment").waitFor();
  const id = idOf(page);
  await page.keyboard.press("Escape");
  await page.getByRole("log").getByText("Stopped", { exact: true }).waitFor();
  // Back in the composer, it has its image; queued again, it waits for the next reply.
  await page.getByRole("button", { name: "Edit “And this?”" }).click();
  await page.getByRole("img", { name: "dot.png" }).waitFor();
  await page.getByRole("button", { name: "Regenerate" }).click();
  const again = await nextCall();
  await again.call.emit("Seen");
  await page.getByRole("log").getByText("Seen", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Queue", exact: true, disabled: false }).click();
  await chips(page).getByText("And this?", { exact: true }).waitFor();
  await page.getByRole("link", { name: "New chat" }).first().click();
  await page.getByRole("heading", { name: "What’s on your mind?" }).waitFor();
  await again.call.finish();
  const second = await nextCall();
  expect(second.asked.at(-1)).toMatchObject([{ type: "text", text: "And this?" }, { type: "image_url" }]);
  await second.call.emit("A dot");
  await second.call.finish();
  await eventually(async () => (await read(id)).messages.at(-1), (last) => last?.content === "A dot");
  await page.goto(`${server.url}/c/${id}`);
  await page.getByRole("log").getByText("A dot", { exact: true }).waitFor();
  await expect.poll(() => chips(page).count()).toBe(0);
});

test("in a group, a queued message is sent after the last speaker of the turn", async () => {
  for (const name of ["Ada", "Ben"]) {
    const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name, description: name } };
    await server.json("PUT", `/api/characters/${name.toLowerCase()}`, { card });
  }
  await server.json("PUT", "/api/conversations/group", {
    title: "Group",
    participants: [{ character_id: "ada" }, { character_id: "ben" }],
    reply_order: "list",
    messages: [{ role: "user", content: "Welcome" }, { role: "assistant", content: "Here", character_id: "ada" }],
  });
  await using context = await openContext();
  const page = await openAt(context, "/c/group");
  await page.getByRole("log").getByText("Here", { exact: true }).waitFor();
  await sendMessage(page, "Both of you?");
  const first = await nextCall();
  await first.call.emit("Ada here");
  await page.getByRole("log").getByText("Ada here", { exact: true }).waitFor();
  await queue(page, "Thanks");
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked.at(-1)).not.toContain("Thanks");
  await second.call.emit("Ben here");
  await second.call.finish();
  await (await nextCall()).call.finish();
  const { messages } = await read("group");
  expect(messages.slice(2, 5).map(({ content }) => content)).toEqual(["Both of you?", "Ada here", "Ben here"]);
  await eventually(async () => (await read("group")).messages[5]?.content, (content) => content === "Thanks");
});

test("in a group, a queued message follows at once if the user cancels the other speakers", async () => {
  for (const name of ["Cid", "Dot"]) {
    await server.json("PUT", `/api/characters/${name.toLowerCase()}`, { card: { name } });
  }
  await server.json("PUT", "/api/conversations/cancelled", {
    participants: [{ character_id: "cid" }, { character_id: "dot" }],
    reply_order: "list",
    messages: [{ role: "user", content: "Welcome" }],
  });
  await using context = await openContext();
  const page = await openAt(context, "/c/cancelled");
  await page.getByRole("log").getByText("Welcome", { exact: true }).waitFor();
  await sendMessage(page, "Cid?");
  const first = await nextCall();
  await first.call.emit("Cid here");
  await page.getByRole("log").getByText("Cid here", { exact: true }).waitFor();
  await queue(page, "Never mind");
  await page.getByRole("button", { name: "Cancel the remaining replies" }).click();
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked.at(-1)).toContain("Never mind");
  await second.call.finish();
});

test("another device sees what waits, takes it over, and the server sends it without any page", async () => {
  await using context = await openContext();
  await using phone = await openContext(PHONE);
  const page = await openAt(context, "/new");
  await sendMessage(page, "Where?");
  const first = await nextCall();
  await first.call.emit("Here");
  await page.getByRole("log").getByText("Here", { exact: true }).waitFor();
  const id = idOf(page);
  const other = await openAt(phone, `/c/${id}`);
  await other.getByRole("log").getByText("Here", { exact: true }).waitFor();
  await queue(page, "From the desk");
  await eventually(() => chips(other).allInnerTexts(), (texts) => texts.join() === "From the desk");
  await box(other).fill("From the phone");
  await other.getByRole("button", { name: "Queue", exact: true }).tap();
  await eventually(() => chips(page).allInnerTexts(), (texts) => texts.join() === "From the desk,From the phone");
  await other.getByRole("button", { name: "Edit “From the desk”" }).tap();
  await eventually(() => box(other).inputValue(), (text) => text === "From the desk");
  await eventually(() => chips(page).allInnerTexts(), (texts) => texts.join() === "From the phone");
  await box(other).fill("From both");
  await other.getByRole("button", { name: "Queue", exact: true }).tap();
  await eventually(() => chips(page).allInnerTexts(), (texts) => texts.join() === "From the phone,From both");
  await context.close();
  await phone.close();
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked).toEqual(["Where?", "From the phone"]);
  await second.call.emit("Yes");
  await second.call.finish();
  const third = await nextCall();
  expect(third.asked).toEqual(["Where?", "From the phone", "From both"]);
  await third.call.finish();
});

test("what is queued without a network waits in the browser, and other devices see it afterwards", async () => {
  await using context = await openContext();
  await using phone = await openContext(PHONE);
  const page = await openAt(context, "/new");
  await sendMessage(page, "Still there?");
  const first = await nextCall();
  await first.call.emit("Yes");
  await page.getByRole("log").getByText("Yes", { exact: true }).waitFor();
  const id = idOf(page);
  const other = await openAt(phone, `/c/${id}`);
  await other.getByRole("log").getByText("Yes", { exact: true }).waitFor();
  await queue(page, "Before it");
  await eventually(() => chips(other).allInnerTexts(), (texts) => texts.join() === "Before it");
  await context.setOffline(true);
  await queue(page, "In the tunnel");
  await expect.poll(() => server.json("GET", `/api/conversations/${id}/queue`)).toMatchObject({ items: [{}] });
  await context.setOffline(false);
  for (const tab of [page, other]) {
    await eventually(() => chips(tab).allInnerTexts(), (texts) => texts.join() === "Before it,In the tunnel");
  }
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked).toEqual(["Still there?", "Before it"]);
  for (const tab of [page, other]) {
    await eventually(() => chips(tab).allInnerTexts(), (texts) => texts.join() === "In the tunnel");
  }
  await second.call.emit("And now");
  await second.call.finish();
  const third = await nextCall();
  expect(third.asked).toEqual(["Still there?", "Before it", "In the tunnel"]);
  await third.call.finish();
});

test("a message whose first handover fails reaches the server later, and a list whose read fails is read again", async () => {
  await using context = await openContext();
  await using phone = await openContext(PHONE);
  const page = await openAt(context, "/new");
  await sendMessage(page, "Is it raining?");
  const first = await nextCall();
  await first.call.emit("It");
  await page.getByRole("log").getByText("It", { exact: true }).waitFor();
  const other = await openAt(phone, `/c/${idOf(page)}`);
  await other.getByRole("log").getByText("It", { exact: true }).waitFor();
  const refused: string[] = [];
  for (const tab of [page, other]) {
    const method = tab === page ? "POST" : "GET";
    // Only the first such request gets no answer; the events go on.
    await tab.route(/\/queue$/, async (route) => {
      if (route.request().method() !== method || refused.includes(method)) return await route.continue();
      refused.push(method);
      await route.abort("connectionreset");
    });
  }
  await queue(page, "And tomorrow?");
  for (const tab of [page, other]) {
    await eventually(() => chips(tab).allInnerTexts(), (texts) => texts.join() === "And tomorrow?");
  }
  expect(refused.toSorted()).toEqual(["GET", "POST"]);
  await first.call.finish();
  const second = await nextCall();
  expect(second.asked).toEqual(["Is it raining?", "And tomorrow?"]);
  await second.call.finish();
});

test("a message that is queued behind one that waits for the network is sent after it", async () => {
  await server.json("PUT", "/api/conversations/behind", {
    messages: [{ role: "user", content: "Hello" }, { role: "assistant", content: "Good day" }],
  });
  await using context = await openContext();
  const page = await openAt(context, "/c/behind");
  await page.getByRole("log").getByText("Good day", { exact: true }).waitFor();
  // The code of the queue comes with the first reply.
  await sendMessage(page, "First");
  const before = await nextCall();
  await queue(page, "Second");
  await before.call.emit("One");
  await before.call.finish();
  const second = await nextCall();
  await second.call.emit("Two");
  await second.call.finish();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  await expect.poll(() => chips(page).count()).toBe(0);
  await context.setOffline(true);
  await box(page).fill("Third");
  await box(page).press("Enter");
  await expect.poll(() => box(page).inputValue()).toBe("");
  await queue(page, "Fourth");
  await context.setOffline(false);
  const third = await nextCall();
  expect(third.asked.slice(-2)).toEqual(["Second", "Third"]);
  await third.call.emit("Three");
  await third.call.finish();
  const fourth = await nextCall();
  expect(fourth.asked.slice(-2)).toEqual(["Third", "Fourth"]);
  await fourth.call.finish();
});
