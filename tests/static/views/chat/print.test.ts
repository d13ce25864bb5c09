/** Printing a chat: all of it, without what is around it. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openUiBench, PHONE, sendMessage, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const COUNT = 300;
const MESSAGES = Array.from({ length: COUNT }, (_, n) => ({
  id: `m${n}`,
  role: n % 2 === 0 ? "user" : "assistant",
  content: n === 7 ? "| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nconst one = 1;\n```" : `Message ${n}, a line of text.`,
}));

async function openChat(options: Parameters<UiBench["open"]>[1] = {}) {
  const ui = await bench.open("/c/c1", { ...options, prepare: (api) => api.addConversation("c1", "Harbor", MESSAGES) });
  // The browser's dialog would wait for a person.
  await ui.page.evaluate(() => {
    globalThis.print = () => Object.assign(globalThis, { printed: document.querySelectorAll(".message").length });
  });
  await ui.page.getByText(`Message ${COUNT - 1},`).waitFor();
  return ui;
}

const countPrinted = (page: Page) => page.evaluate(() => (globalThis as { printed?: number }).printed);

test("a chat is printed whole from its menu, over many pages, without sidebar and composer, also in the dark", async () => {
  await using ui = await openChat({ colorScheme: "dark" });
  const { page } = ui;
  await expect.poll(() => page.locator(".message").count()).toBeLessThan(100);
  await page.getByRole("button", { name: "Actions for “Harbor”" }).click();
  await page.getByRole("menuitem", { name: "Print" }).click();
  await expect.poll(() => countPrinted(page)).toBe(COUNT);
  await page.emulateMedia({ media: "print" });
  for (
    const [name, isShown] of [[".sidebar", false], [".composer-area", false], [".message-actions", false]] as const
  ) {
    await expect.poll(() => page.locator(name).first().isVisible(), { message: name }).toBe(isShown);
  }
  await expect.poll(() => page.getByRole("heading", { name: "Harbor" }).isVisible()).toBe(true);
  await expect.poll(() => page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toMatch(
    /rgb\(255, 255, 255\)|oklch\(1 0 0\)/,
  );
  // What stands below the first sheet of paper isn't cut off.
  const [height, last] = await page.evaluate(() => [
    document.documentElement.scrollHeight,
    document.querySelector('[data-message-id="m299"]')!.getBoundingClientRect().bottom,
  ]);
  expect(last).toBeLessThanOrEqual(height!);
  expect(height).toBeGreaterThan(10_000);
  const folder = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
  if (folder) {
    await page.screenshot({
      path: `${folder}/print.png`,
      clip: { x: 0, y: 0, width: 1280, height: 1400 },
      fullPage: true,
    });
  }
  const pdf = new TextDecoder("latin1").decode(await page.pdf({ format: "A4" }));
  expect(Math.max(...[...pdf.matchAll(/\/Count (\d+)/g)].map(([, count]) => Number(count)))).toBeGreaterThan(10);
  await page.emulateMedia({ media: "screen" });
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await expect.poll(() => page.locator(".message").count()).toBeLessThan(100);
});

test("the browser's key, a command, and the menu of a phone print the whole chat", async () => {
  await using ui = await openChat();
  await ui.page.keyboard.press("Control+p");
  await expect.poll(() => countPrinted(ui.page)).toBe(COUNT);
  await ui.page.evaluate(() => Object.assign(globalThis, { printed: undefined }));
  await sendMessage(ui.page, "/print");
  await expect.poll(() => countPrinted(ui.page)).toBe(COUNT);
  await using phone = await openChat(PHONE);
  await phone.page.getByRole("button", { name: "Chat actions" }).click();
  await phone.page.getByRole("menuitem", { name: "Print" }).click();
  await expect.poll(() => countPrinted(phone.page)).toBe(COUNT);
});

test("a chat that can't be loaded whole isn't printed in part, and the page says why", async () => {
  await using ui = await openChat();
  ui.api.refuse("GET /api/conversations/c1/messages", {
    status: 503,
    code: "not_available",
    message: "The disk is busy",
  });
  await ui.page.keyboard.press("Control+p");
  await ui.page.getByText("The disk is busy").waitFor();
  await expect.poll(() => countPrinted(ui.page)).toBeUndefined();
});
