/** The character screens on the real server: from a card file to a chat, and exported as a file. */
import { Buffer } from "node:buffer";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { cardUnder, sillyTavernCard, sillyTavernPng } from "../../../helpers/files/cards.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { eventually } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("imports a card, selects a greeting, chats, swipes, edits and exports it complete", async () => {
  await using app = await openTestApp();
  await app.put("/api/personas/robin", { name: "Robin" });
  await app.patch("/api/settings", { default_persona_id: "robin" });
  const { page, context, foreign } = await openPage(browser, app.url);
  await page.goto(`${app.url}/characters`);
  const file = sillyTavernPng(sillyTavernCard("Fox"), 96, 128);
  await page.locator("input[type=file]").setInputFiles({
    name: "fox.png",
    mimeType: "image/png",
    buffer: Buffer.from(file),
  });
  await page.getByText("1 character imported").waitFor();
  const tile = page.getByRole("link", { name: "Fox" });
  await tile.locator("img").waitFor();
  await tile.click();
  await page.getByText("Hello Robin, I am Fox.").waitFor();
  await page.getByRole("button", { name: "Next greeting" }).click();
  await page.getByText("Good evening, Robin.").waitFor();
  const address = page.url();
  await page.getByRole("button", { name: "About Fox" }).click();
  await page.locator("dialog .story-picture img").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Start chat" }).click();
  await page.getByText("2/3").waitFor();
  const messages = page.getByRole("log", { name: "Messages" });
  await messages.getByText("Good evening, Robin.").waitFor();
  await page.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
  await page.locator(".reply .speaker-portrait img").waitFor();
  await page.getByRole("button", { name: "Next version" }).click();
  await messages.getByText("Psst!").waitFor();
  const chat = new URL(page.url()).pathname;

  await page.goto(address);
  await expect.poll(() => page.getByRole("link", { name: "Resume" }).getAttribute("href")).toBe(chat);
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Vixen");
  await page.getByRole("status").filter({ hasText: /^Saved$/ }).waitFor();
  await eventually(
    async () => (await (await app.get("/api/characters")).json()) as { name: string }[],
    (all) => all.some(({ name }) => name === "Vixen"),
  );
  const id = new URL(address).pathname.split("/").at(-1)!;
  const exported = new Uint8Array(await (await app.get(`/api/characters/${id}/export?format=png`)).arrayBuffer());
  const before = sillyTavernCard("Fox").data;
  expect(cardUnder(exported, "ccv3").data).toEqual({ ...before, name: "Vixen" });
  await page.getByRole("link", { name: "Done" }).click();
  await holdToasts(page);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.locator(".toast").filter({ hasText: "Vixen deleted" }).getByRole("button", { name: "Close" }).click();
  await eventually(async () => (await app.get(`/api/characters/${id}`)).status, (status) => status === 404);
  expect(foreign).toEqual([]);
  await context.close();
});

test("uses one name for an unnamed user, in the greeting's preview and in the chat", async () => {
  await using app = await openTestApp();
  await app.put("/api/characters/fox", { name: "Fox", first_mes: "Hello {{user}}, I am {{char}}." });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/characters/fox`);
  const shown = await page.getByText("I am Fox.").innerText();
  await page.getByRole("button", { name: "Start chat" }).click();
  await page.getByRole("log", { name: "Messages" }).getByText(shown, { exact: true }).waitFor();
  await context.close();
});
