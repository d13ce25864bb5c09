/** Chats with characters on the real server: speech in color, actions dimmed, portraits, bubbles. */
import { strToU8, zipSync } from "fflate";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { plainPng, sillyTavernCard, sillyTavernPng } from "../../../../helpers/files/cards.ts";
import { openTestApp } from "../../../../helpers/app/test_app.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const REPLY = "*She looks up.* “You’re *early*, [friend](https://fox.example),” she says. " +
  '「はい」 Type `say "hi"` or <b>"bold"</b>.\n\n```\n"code"\n```\n\n"<img src=x onerror=alert(1)>" “<script>alert(2)</script>”';

test("colors speech and dims actions of characters only, and shows portraits and bubbles as set", async () => {
  await using app = await openTestApp();
  await app.patch("/api/settings", { auto_title: false });
  const card = sillyTavernPng(sillyTavernCard("Fox"), 96, 128);
  const form = new FormData();
  form.append("file", new File([card], "fox.png"));
  const { id } = await (await app.post("/api/characters/import", form)).json();
  const messages = [{ id: "u1", role: "user", content: '"Hello?"' }, { id: "a1", role: "assistant", content: REPLY }];
  await app.put("/api/conversations/c1", { title: "Den", participants: [{ character_id: id }], messages });
  await app.put("/api/conversations/c2", { title: "Plain", messages });
  const { page, context, foreign } = await openPage(browser, app.url);
  let hasAlert = false;
  page.on("dialog", (dialog) => {
    hasAlert = true;
    void dialog.dismiss();
  });
  await page.goto(`${app.url}/c/c1`);
  const speech = page.locator(".reply .speech");
  await speech.first().waitFor();
  const marked = () =>
    page.locator(".reply .prose").evaluate((prose) =>
      [...prose.querySelectorAll(".speech")].map(({ textContent }) => textContent)
    );
  await expect.poll(marked).toEqual([
    ...["“You’re ", "early", ", ", "friend", ",”", "「はい」", '"bold"', '"', "image", '"'],
    "“<script>alert(2)</script>”",
  ]);
  const colors = async () =>
    await page.evaluate(() => {
      const colorOf = (selector: string) => getComputedStyle(document.querySelector(selector)!).color;
      return [".reply p", ".reply p > .speech", ".reply p > em", ".reply em > .speech", ".reply a .speech"].map(
        colorOf,
      );
    });
  const [text, quoted, action, emphasis, link] = await colors();
  expect(new Set([text, quoted, action, link]).size).toBe(4);
  expect(emphasis).toBe(quoted);
  await expect.poll(() => page.locator(".reply code").allTextContents()).toEqual(['say "hi"', '"code"']);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await app.patch("/api/settings", {
    color_speech: false,
    dim_actions: false,
    portrait_size: "large",
    message_style: "bubbles",
    theme: "dark",
  });
  await page.locator(":root[data-messages=bubbles]").waitFor();
  await speech.first().waitFor({ state: "detached" });
  await expect.poll(() => page.locator(".reply .speaker-portrait").evaluate((face) => face.clientWidth)).toBe(72);
  await app.patch("/api/settings", { color_speech: true });
  await speech.first().waitFor();
  await expect.poll(async () => (await colors())[1]).not.toBe((await colors())[0]);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await page.goto(`${app.url}/c/c2`);
  await page.locator(".reply .prose").waitFor();
  await expect.poll(() => speech.count()).toBe(0);
  expect([hasAlert, foreign]).toEqual([false, []]);
  await context.close();
});

test("shows the expression of the last reply beside the chat, on narrow screens in the header, and not if off", async () => {
  await using app = await openTestApp();
  await app.patch("/api/settings", { auto_title: false });
  const moods = ["neutral", "joy", "sadness"];
  const assets = moods.map((name) => ({ type: "emotion", name, uri: `embeded://assets/${name}.png`, ext: "png" }));
  const card = { spec: "chara_card_v3", spec_version: "3.0", data: { ...sillyTavernCard("Fox").data, assets } };
  const files = moods.map((name, n) => [`assets/${name}.png`, plainPng(200, 300 + n)] as const);
  const charx = zipSync({ "card.json": strToU8(JSON.stringify(card)), ...Object.fromEntries(files) });
  const form = new FormData();
  form.append("file", new File([charx as Uint8Array<ArrayBuffer>], "fox.charx"));
  const { id } = await (await app.post("/api/characters/import", form)).json();
  const messages = [
    { id: "a1", role: "assistant", content: "*She smiles.*" },
    { id: "u1", role: "user", content: "Then I cry." },
    { id: "a2", role: "assistant", content: "*Tears run down her cheeks.*" },
  ];
  await app.put("/api/conversations/c1", { title: "Den", participants: [{ character_id: id }], messages });
  const { page, context, foreign } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  const shown = page.locator(".expression");
  await shown.getByText("Fox: sadness").waitFor({ state: "attached" });
  await page.locator(".expression img").waitFor();
  await expect.poll(() =>
    page.locator(".expression img").evaluate((image) => (image as HTMLImageElement).naturalHeight)
  ).toBe(302);
  const isBeside = () =>
    page.evaluate(() => {
      const image = document.querySelector(".expression")!.getBoundingClientRect();
      const ends = [...document.querySelectorAll(".messages, .composer")].map((box) =>
        box.getBoundingClientRect().right
      );
      return ends.every((end) => end <= image.left + 16);
    });
  await expect.poll(isBeside).toBe(true);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await app.delete("/api/conversations/c1/messages/a2");
  await shown.getByText("Fox: joy").waitFor({ state: "attached" });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.locator(".chat-head .expression-face img").waitFor();
  await expect.poll(() => shown.count()).toBe(0);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await app.patch("/api/settings", { show_expressions: false });
  await page.locator(".expression-face").waitFor({ state: "detached" });
  expect(foreign).toEqual([]);
  await context.close();
});
