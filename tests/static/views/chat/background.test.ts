/** Images behind chats on the real server: chosen for one chat and for all, with readable text. */
import { Buffer } from "node:buffer";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { LOOKS, openChatOptions, PHONE } from "../../../helpers/browser/ui_page.ts";
import { picture, putPicture } from "../../../helpers/files/pictures.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const MESSAGES = [
  { id: "u1", role: "user", content: "Where are you?" },
  {
    id: "a1",
    role: "assistant",
    content: "*She looks up.* “Here,” she says. [A link](https://fox.example) and `code`.",
  },
];

async function openChat() {
  const app = await openTestApp();
  await app.post("/api/setup/complete", {});
  await app.patch("/api/settings", { auto_title: false });
  await app.put("/api/conversations/c1", { title: "Forest", messages: MESSAGES });
  return app;
}

const behind = (page: Page) =>
  page.locator(".chat-background").evaluate((image) => getComputedStyle(image).backgroundImage);

test("sets a background for one chat and for all chats", async () => {
  await using app = await openChat();
  const { page, context, errors, foreign } = await openPage(browser, app.url, PHONE);
  const file = { name: "forest.png", mimeType: "image/png", buffer: Buffer.from(picture(1)) };
  const choose = async (name: string) => {
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name }).click();
    await (await chooser).setFiles(file);
  };
  await page.goto(`${app.url}/settings/general#chat-background`);
  await choose("Choose an image");
  await page.getByAltText("Background image").waitFor();
  // The page shows the image before the server has stored the change.
  const ofAllChats = async () => (await (await app.get("/api/settings")).json()).chat_background;
  await expect.poll(ofAllChats).toMatch(/^\/api\/attachments\/.+\.png$/);
  const chat_background = await ofAllChats();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await page.goto(`${app.url}/c/c1`);
  await page.locator(".chat-background ~ .message-scroll .reply .prose a").waitFor();
  await expect.poll(() => behind(page)).toContain(chat_background);
  const ofChat = async () => (await (await app.get("/api/conversations/c1")).json()).background;
  await openChatOptions(page);
  const select = page.getByLabel("Background of this chat");
  await select.selectOption({ label: "None" });
  await page.locator(".chat-background").waitFor({ state: "detached" });
  await expect.poll(ofChat).toBe("none");
  await choose("Choose an image");
  await page.locator(".chat-background").waitFor();
  await expect.poll(ofChat).toMatch(/^\/api\/attachments\//);
  await expect.poll(() => behind(page)).not.toContain(chat_background);
  await select.selectOption({ label: "Default" });
  await expect.poll(() => behind(page)).toContain(chat_background);
  await expect.poll(ofChat).toBeUndefined();
  expect([errors, foreign]).toEqual([[], []]);
  await context.close();
});

test("shows no background from elsewhere that an imported chat brings", async () => {
  await using app = await openChat();
  await putPicture(app, "forest.png");
  const { page, context, foreign } = await openPage(browser, app.url);
  await page.route("**/api/conversations/c1?*", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...await answer.json(), background: "https://fox.example/a.png" } });
  });
  await page.goto(`${app.url}/c/c1`);
  await page.locator(".reply .prose").waitFor();
  await expect.poll(() => page.locator(".chat-background").count()).toBe(0);
  expect(foreign).toEqual([]);
  await context.close();
});

test.each(LOOKS)("text on a background is readable: %s, %s", async (theme, _width, options) => {
  await using app = await openChat();
  await putPicture(app, "forest.png");
  await app.patch("/api/settings", { theme, chat_background: "/api/attachments/forest.png" });
  const { page, context } = await openPage(browser, app.url, options);
  await page.goto(`${app.url}/c/c1`);
  await page.locator(".chat-background ~ .message-scroll .reply .prose a").waitFor();
  await page.locator(`:root[data-theme=${theme}]`).waitFor();
  const findRatios = () =>
    page.evaluate((isDark) => {
      const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
      /** The luminance of colors painted over each other. @see https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
      const luminance = (...colors: string[]) => {
        for (const color of colors) {
          canvas.fillStyle = color;
          canvas.fillRect(0, 0, 1, 1);
        }
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => {
          const share = value / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
      };
      const card = getComputedStyle(document.querySelector(".reply")!).backgroundColor;
      // The worst image there could be.
      const ground = [isDark ? "white" : "black", card];
      return [".reply p", ".reply em", ".reply a"].map((selector) => {
        const element = document.querySelector(selector)!;
        const one = luminance(...ground, getComputedStyle(element).color);
        const [low, high] = [one, luminance(...ground)].sort((a, b) => a - b);
        return (high! + 0.05) / (low! + 0.05);
      });
    }, theme === "dark");
  expect(await findRatios()).toHaveLength(3);
  // The theme comes with the settings, and its colors pass over into each other.
  await expect.poll(async () => Math.min(...await findRatios())).toBeGreaterThanOrEqual(4.5);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await context.close();
});
