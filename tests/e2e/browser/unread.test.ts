/** Unread replies, on two devices of one owner. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import type { StoredConversation } from "../../helpers/app/stored_chat.ts";
import { eventually, sendMessage } from "../../helpers/browser/ui_page.ts";

let browser: Browser;
let llm: FakeLlm;
let server: ChildServer;
let dataDir: string;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
  llm = await openFakeLlm({ switches: { manual: "on" } });
  dataDir = await Deno.makeTempDir({ prefix: "parlor-unread-" });
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

const row = (page: Page, title: string) => page.getByRole("list", { name: "Chats" }).getByRole("link", { name: title });
const dot = (page: Page, title: string) => row(page, title).getByRole("img", { name: "Unread" });

test("an unread chat has a dot on all devices until it's read on one of them", async () => {
  const desk = await openPage(browser, new URL(server.url).origin);
  const other = await openPage(browser, new URL(server.url).origin);
  await desk.page.goto(`${server.url}/new`);
  await other.page.goto(`${server.url}/new`);
  await sendMessage(desk.page, "Tell me of the sea");
  const followed = await llm.nextCall();
  await followed.emit("Blue");
  await desk.page.getByRole("log").getByText("Blue", { exact: true }).waitFor();
  const left = desk.page.waitForEvent("requestfailed", (request) => request.url().endsWith("/api/chat"));
  await desk.page.getByRole("link", { name: "New chat" }).first().click();
  await left;
  await desk.page.getByRole("heading", { name: "What’s on your mind?" }).waitFor();
  await row(desk.page, "Tell me of the sea").waitFor();
  await followed.emit(" and wide");
  const path = await row(desk.page, "Tell me of the sea").getAttribute("href");
  const read = () => server.json<StoredConversation>("GET", `/api/conversations/${path!.slice("/c/".length)}`);
  // Behind the end of the page's connection.
  await eventually(read, ({ messages }) => messages.at(-1)!.content === "Blue and wide");
  await followed.finish();
  for (const { page } of [desk, other]) await dot(page, "Tell me of the sea").waitFor();
  await expect.poll(() => findAxeProblems(desk.page)).toEqual([]);

  // Only loaded, it isn't read yet.
  await other.page.goto(server.url + path);
  await other.page.getByRole("log").getByText("Blue and wide", { exact: true }).waitFor();
  await dot(other.page, "Tell me of the sea").waitFor();
  await dot(desk.page, "Tell me of the sea").waitFor();
  // The page may show the chat a moment before it listens.
  await expect.poll(async () => {
    await other.page.keyboard.press("Shift");
    return await dot(other.page, "Tell me of the sea").count();
  }).toBe(0);
  await dot(desk.page, "Tell me of the sea").waitFor({ state: "detached" });
  const unread = async () =>
    (await server.json<{ items: { unread: boolean }[] }>("GET", "/api/conversations?view=summary")).items[0]!.unread;
  await eventually(unread, (isUnread) => !isUnread);
  for (const { errors, foreign, context } of [desk, other]) {
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
    await context.close();
  }
});
