/**
 * The page where the browser lacks, refuses or never answers one of its parts.
 * @slow Nineteen pages, three of which wait for what never answers.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openUiBench, sendMessage, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const refuse = (name: string) => `() => { throw new DOMException("${name} is refused", "SecurityError"); }`;
const asGetter = (object: string, name: string, value: string) =>
  `Object.defineProperty(${object}, "${name}", { configurable: true, get: ${value} });`;
const NEVER = "() => new Promise(() => {})";

const TAKEN: [title: string, script: string][] = [
  ["no BroadcastChannel", asGetter("globalThis", "BroadcastChannel", "() => undefined")],
  ["BroadcastChannel throws", `globalThis.BroadcastChannel = class { constructor() { (${refuse("It")})(); } };`],
  ["no locks", asGetter("Navigator.prototype", "locks", "() => undefined")],
  ["locks are refused", `LockManager.prototype.request = async ${refuse("It")};`],
  ["locks never answer", `LockManager.prototype.request = ${NEVER};`],
  ["no localStorage", asGetter("globalThis", "localStorage", "() => null")],
  ["localStorage throws", asGetter("globalThis", "localStorage", refuse("It"))],
  ["no IndexedDB", asGetter("globalThis", "indexedDB", "() => undefined")],
  ["IndexedDB throws", asGetter("globalThis", "indexedDB", refuse("It"))],
  ["IndexedDB is refused", `IDBFactory.prototype.open = ${refuse("It")};`],
  ["IndexedDB never answers", "IDBFactory.prototype.open = () => ({});"],
  ["service workers throw", asGetter("Navigator.prototype", "serviceWorker", refuse("It"))],
  ["caches throw", asGetter("globalThis", "caches", refuse("It"))],
  ["no notifications", asGetter("globalThis", "Notification", "() => undefined")],
  ["no clipboard", asGetter("Navigator.prototype", "clipboard", "() => undefined")],
  ["the clipboard is refused", `Clipboard.prototype.writeText = async ${refuse("It")};`],
  ["no storage estimates", asGetter("Navigator.prototype", "storage", "() => undefined")],
  ["no AudioContext", asGetter("globalThis", "AudioContext", "() => undefined")],
];

test.each(TAKEN)("with %s the page sends, copies and follows changes of other devices", async (title, script) => {
  await using ui = await bench.open("/new");
  const { page, api, errors } = ui;
  await page.addInitScript(script);
  await page.goto(`${api.origin}/new`);
  await sendMessage(page, "Hi");
  await page.locator(".reply").getByText("Hello", { exact: true }).waitFor();
  // The button says so for a moment, which may pass between two looks from outside.
  await page.evaluate(() => {
    const note = () => {
      if (document.querySelector('button[aria-label="Copied"]')) Object.assign(globalThis, { hasCopied: true });
    };
    new MutationObserver(note).observe(document, { attributes: true, childList: true, subtree: true });
  });
  await page.locator(".reply").getByRole("button", { name: "Copy", exact: true }).first().click();
  await expect.poll(() => page.evaluate("window.hasCopied")).toBe(true);
  api.addConversation("other", "Made elsewhere");
  api.publish("conversation", "other", 1);
  await page.getByRole("link", { name: /Made elsewhere/ }).waitFor();
  if (/localStorage|IndexedDB/.test(title)) {
    await page.goto(`${api.origin}/settings`);
    await page.getByText("This browser stores nothing for this site.").waitFor();
  }
  expect(errors).toEqual([]);
});

test("where the clipboard never answers, Copy copies in the old way or says that it can't", async () => {
  await using ui = await bench.open("/new");
  const { page, api, errors } = ui;
  await page.addInitScript(`Clipboard.prototype.writeText = ${NEVER};`);
  await page.goto(`${api.origin}/new`);
  await sendMessage(page, "Hi");
  const reply = page.locator(".reply");
  await reply.getByText("Hello", { exact: true }).waitFor();
  await page.evaluate(() => {
    const note = () => {
      const isCopied = document.querySelector('button[aria-label="Copied"]') !== null;
      const isRefused = document.querySelector(".toasts")?.textContent?.includes("Your browser blocked copying");
      if (isCopied || isRefused) Object.assign(globalThis, { hasSaid: true });
    };
    new MutationObserver(note).observe(document, { attributes: true, childList: true, subtree: true });
  });
  await reply.getByRole("button", { name: "Copy", exact: true }).first().click();
  await expect.poll(() => page.evaluate("window.hasSaid")).toBe(true);
  expect(errors).toEqual([]);
});
