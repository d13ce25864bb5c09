/** The frame of the page: dialogs, drawer, palette, tabs, and a server that is away. */
import { expect } from "vitest";
import { type Flow, store } from "./flow.ts";

/** Esc closes a dialog from its empty search field, and after a word in it was deleted. */
export const closesByEscape: Flow = async ({ app, tab }) => {
  await tab.goto(`${app.url}/new`);
  await tab.click("button", /^fake-model/);
  await tab.click("dialog input[type=search]");
  await tab.press("Escape");
  await tab.gone("dialog[open]");
};

/** The palette opens by keyboard, finds a chat and goes there. */
export const opensThePalette: Flow = async ({ app, tab }) => {
  await store(app, "needle", ["Where?", "Here"]);
  await tab.goto(`${app.url}/new`);
  await tab.click(".composer textarea");
  await tab.press("Control", "k");
  await tab.see("dialog.palette input");
  await tab.driver.type("needle");
  await tab.see("dialog.palette [role=option]", /Chat needle/);
  await tab.press("Enter");
  await tab.see(".reply .prose", "Here");
};

/** Another tab follows what is written in this one. */
export const followsAnotherTab: Flow = async ({ app, llm, tab, engine }) => {
  await store(app, "tabs", ["Hello", "Hi"]);
  await tab.goto(`${app.url}/c/tabs`);
  await tab.see(".reply .prose", "Hi");
  const other = await engine.newTab();
  await other.goto(`${app.url}/c/tabs`);
  await other.fill(".composer textarea", "From the other tab");
  await other.press("Enter");
  const call = await llm.nextCall();
  await call.emit("Seen in both");
  await call.finish();
  await other.see(".reply .prose", "Seen in both");
  expect(await other.errors()).toEqual([]);
  await other.driver.close();
  await tab.driver.front();
  await tab.see(".user-text", "From the other tab");
  await tab.see(".reply .prose", "Seen in both");
};

/** The list of chats opens as a drawer on phones, and leads to a chat. */
export const opensTheList: Flow = async ({ app, tab }) => {
  await store(app, "listed", ["Hello", "Hi from the list"]);
  await tab.goto(`${app.url}/new`);
  await tab.see(".composer textarea");
  const isPhone = await tab.evaluate(() => innerWidth < 720);
  if (isPhone) {
    await tab.click("button", "Open the chat list");
    await tab.see("dialog.drawer[open]");
    await tab.press("Escape");
    await tab.gone("dialog.drawer[open]");
    await tab.click("button", "Open the chat list");
  }
  await tab.click(".chat-list a", /^Chat listed/);
  await tab.see(".reply .prose", "Hi from the list");
  await tab.gone("dialog.drawer[open]");
};

/** What is written while the server is away waits, and is sent by itself when it's back. */
export const survivesARestart: Flow = async ({ app, llm, tab }) => {
  await store(app, "away", ["Hello", "Hi"]);
  await tab.goto(`${app.url}/c/away`);
  await tab.see(".reply .prose", "Hi");
  await app.restart(async () => {
    await tab.fill(".composer textarea", "Are you there?");
    await tab.press("Enter");
    await tab.see(".message", /Not sent yet/);
  });
  const call = await llm.nextCall();
  await call.emit("Back again");
  await call.finish();
  await tab.see(".reply .prose", "Back again");
  await tab.gone(".message", /Not sent yet/);
};
