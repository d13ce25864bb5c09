import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { openUiBench, PHONE, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

function fill(api: FakeApi): void {
  api.addConversation("c1", "A letter to the landlord", [], new Date(Date.now() - 1000));
  api.addConversation("c2", "Letters of the alphabet", [], new Date(Date.now() - 2000));
  api.addConversation("c3", "My love letter", []);
}

const field = (page: Page) => page.getByRole("combobox", { name: "Commands" });
const options = (page: Page) => page.getByRole("option").allInnerTexts();
const current = (page: Page) => page.locator("[role=option][aria-selected=true]").innerText();

test("the palette finds chats, best first, and opens one by keyboard alone", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page } = ui;
  await page.getByRole("list", { name: "Chats" }).getByRole("link", { name: "My love letter" }).waitFor();
  await page.keyboard.press("Control+k");
  await field(page).waitFor();
  await page.keyboard.type("letter");
  await expect.poll(async () => (await options(page)).slice(0, 3)).toEqual([
    "Letters of the alphabet",
    "My love letter",
    "A letter to the landlord",
  ]);
  await page.keyboard.press("ArrowDown");
  await expect.poll(() => current(page)).toBe("My love letter");
  const active = await field(page).getAttribute("aria-activedescendant");
  await expect.poll(() => page.locator(`[id="${active}"]`).innerText()).toBe("My love letter");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${ui.api.origin}/c/c3`);
  await field(page).waitFor({ state: "detached" });
});

test("finds commands and settings, too, and offers a search of all chats otherwise", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page, api } = ui;
  const open = async (text: string) => {
    await page.keyboard.press("Control+k");
    await field(page).fill(text);
  };
  await page.getByText("What’s on your mind?").waitFor();
  await open("dark");
  await page.getByRole("option", { name: "Dark theme" }).waitFor();
  await page.keyboard.press("Enter");
  await field(page).waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  await open("accent");
  await page.getByRole("option", { name: /Accent color/ }).click();
  await page.waitForURL(`${api.origin}/settings/general#hue`);
  await open("rare words");
  await page.getByRole("option", { name: "Search all chats for “rare words”" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(`${api.origin}/search?q=rare+words`);
  expect(ui.errors).toEqual([]);
});

test("Escape and the shortcut close the palette, and return the focus", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page } = ui;
  const message = page.getByLabel("Message", { exact: true });
  await message.fill("Half a thought");
  for (const key of ["Escape", "Control+k"]) {
    await page.keyboard.press("Control+k");
    await field(page).waitFor();
    await page.keyboard.press(key);
    await field(page).waitFor({ state: "detached" });
    await expect.poll(() => message.evaluate((area) => area === document.activeElement)).toBe(true);
  }
  await expect.poll(() => message.inputValue()).toBe("Half a thought");
});

test("a question mark opens the shortcut overview, but not in text fields", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page } = ui;
  await page.getByLabel("Message", { exact: true }).press("?");
  await expect.poll(() => page.getByLabel("Message", { exact: true }).inputValue()).toBe("?");
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await page.getByRole("link", { name: "New chat" }).focus();
  await page.keyboard.press("?");
  const overview = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await overview.getByText("New line").waitFor();
  await page.keyboard.press("Escape");
  await overview.waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  await field(page).fill("shortcuts");
  await page.getByRole("option", { name: /Keyboard shortcuts/ }).waitFor();
  await page.keyboard.press("Enter");
  await overview.waitFor();
});

test("Ctrl Shift O starts a new chat from anywhere", async () => {
  await using ui = await bench.open("/settings/about", { prepare: fill });
  await ui.page.getByRole("heading", { name: "About", exact: true }).waitFor();
  await ui.page.keyboard.press("Control+Shift+O");
  await ui.page.waitForURL(`${ui.api.origin}/new`);
});

test.each([["wide, light", { colorScheme: "light" }], ["narrow, dark", { ...PHONE, colorScheme: "dark" }]] as const)(
  "axe finds nothing in palette and shortcut overview, and both fit, %s",
  async (_, look) => {
    await using ui = await bench.open("/new", { ...look, reducedMotion: "reduce", prepare: fill });
    const { page } = ui;
    await page.getByText("What’s on your mind?").waitFor();
    await page.keyboard.press("Control+k");
    await field(page).waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    await field(page).fill("keyboard");
    await page.getByRole("option", { name: /Keyboard shortcuts/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  },
);

test("the palette finds characters by name and opens their page", async () => {
  await using ui = await bench.open("/", { prepare: ({ people }) => void people.add("fox", { name: "Foxglove" }) });
  await ui.page.getByLabel("Message", { exact: true }).waitFor();
  await ui.page.keyboard.press("Control+k");
  await ui.page.getByRole("combobox").fill("foxgl");
  const group = ui.page.getByRole("group", { name: "Characters" });
  await group.getByRole("option", { name: "Foxglove" }).click();
  await ui.page.getByRole("heading", { name: "Foxglove", level: 2 }).waitFor();
});
