/** Regex scripts in the settings and in a chat. On the real server. */
import { Buffer } from "node:buffer";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { say } from "../../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { chooseMessageAction, openChatOptions, PHONE, sendMessage } from "../../../helpers/browser/ui_page.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const listScripts = async (app: TestApp): Promise<Record<string, unknown>[]> =>
  await (await app.get("/api/regex_scripts")).json();

test.each([["light", {}], ["dark", PHONE]] as const)(
  "scripts are written, tried, switched, ordered, imported and deleted in the settings (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    await page.goto(`${app.url}/settings/regex`);
    const main = page.getByRole("main");
    await main.getByText("No regex scripts yet").waitFor();
    await main.getByRole("button", { name: "New script" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Quotes");
    await dialog.getByLabel("Find").fill("(");
    await dialog.getByLabel("Try it").fill("A red fox.");
    await dialog.getByText("The pattern isn’t valid").waitFor();
    await dialog.getByLabel("Find").fill("/(red) fox/g");
    await dialog.getByLabel("Replace with").fill("$1 owl");
    await dialog.locator(".script-result").getByText("A red owl.").waitFor();
    await dialog.getByLabel("Your messages").check();
    await dialog.getByLabel("Changes").selectOption("display");
    await dialog.getByLabel("To depth").fill("4");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/regex-form-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await main.getByRole("button", { name: "Quotes" }).first().waitFor();
    await expect.poll(() => listScripts(app)).toMatchObject([{
      ...{ name: "Quotes", find: "/(red) fox/g", replace: "$1 owl", placement: ["user_input", "ai_output"] },
      ...{ display_only: true, prompt_only: false, max_depth: 4, min_depth: null },
    }]);

    const json = { scriptName: "Dots", findRegex: "/\\.{3}/g", replaceString: "…", placement: [2], disabled: false };
    const buffer = Buffer.from(JSON.stringify(json));
    await main.locator("input[type=file]").setInputFiles({ name: "d.json", mimeType: "application/json", buffer });
    await main.getByRole("switch", { name: "Dots is on" }).uncheck();
    await expect.poll(async () => (await listScripts(app)).map(({ enabled }) => enabled)).toEqual([true, false]);
    await main.getByRole("button", { name: "Move Dots up" }).click();
    await expect.poll(async () => (await listScripts(app)).map(({ name }) => name)).toEqual(["Dots", "Quotes"]);
    await expect.poll(() => main.locator(".entry-title").allTextContents()).toEqual(["Dots", "Quotes"]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/regex-list-${colorScheme}.png` });
    await expect.poll(() => findAxeProblems(page)).toEqual([]);

    await main.getByRole("button", { name: "More: Dots" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "Export for SillyTavern" }).click();
    expect((await download).suggestedFilename()).toBe("regex-Dots.json");
    await main.getByRole("button", { name: "More: Dots" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await expect.poll(() => main.locator(".entry-title").allTextContents()).toEqual(["Quotes"]);
    await context.close();
    expect(errors).toEqual([]);
  },
);

test("a switch stays as it was set while it's saved, also when the list is read for something else", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const script = { find: "a", replace: "b", placement: ["user_input"] };
  await app.put("/api/regex_scripts/s1", { ...script, name: "Dots" });
  const { page, errors, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/regex`);
  const released = Promise.withResolvers<void>();
  await page.route("**/api/regex_scripts/s1", async (route) => {
    await released.promise;
    await route.continue();
  });
  const toggle = page.getByRole("switch", { name: "Dots is on" });
  await toggle.uncheck();
  await app.put("/api/regex_scripts/s2", { ...script, name: "Quotes" });
  await page.getByRole("switch", { name: "Quotes is on" }).waitFor();
  await expect.poll(() => toggle.isChecked()).toBe(false);
  released.resolve();
  await expect.poll(async () => (await listScripts(app)).map(({ enabled }) => enabled)).toEqual([false, true]);
  await expect.poll(() => toggle.isChecked()).toBe(false);
  await context.close();
  expect(errors).toEqual([]);
});

const BOTH = ["user_input", "ai_output"];
const tavern = (findRegex: string, replaceString: string, fields = {}) => ({
  ...{ scriptName: `Script ${findRegex}`, findRegex, replaceString, trimStrings: [], placement: [1, 2] },
  ...fields,
});

test.each([["light", {}], ["dark", PHONE]] as const)(
  "a card's scripts ask in the chat, then change what is shown; edits store what they make (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    const regex_scripts = [tavern("/fox/g", "owl", { markdownOnly: true }), tavern("/x+$/", "", { runOnEdit: true })];
    await app.put("/api/characters/c", { name: "Mia", extensions: { regex_scripts } });
    const messages = [
      { ...say("m1", "A fox!", "assistant"), character_id: "c", reasoning: "A fox?" },
      say("m2", "Which fox?"),
      { ...say("m3", "The red fox.", "assistant"), character_id: "c" },
    ];
    await app.put("/api/conversations/c1", { title: "Mia", participants: [{ character_id: "c" }], messages });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    await page.goto(`${app.url}/c/c1`);
    const log = page.getByRole("log");
    const consent = page.locator(".script-consent");
    await consent.getByText("Mia has 2 regex scripts").waitFor();
    await log.getByText("The red fox.").waitFor();
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/regex-consent-${colorScheme}.png` });
    await consent.getByRole("button", { name: "Show them" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("/fox/g", { exact: true }).waitFor();
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/regex-consent-list-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Use them", exact: true }).click();
    await log.getByText("The red owl.").waitFor();
    await log.getByText("Which owl?").waitFor();
    await consent.waitFor({ state: "detached" });

    // The text that is edited is the stored one.
    const last = log.locator('[data-message-id="m3"]');
    await last.hover();
    await chooseMessageAction(last, "Edit");
    const field = page.getByLabel("Message text");
    await expect.poll(() => field.inputValue()).toBe("The red fox.");
    await field.fill("The gray foxxx");
    await log.getByRole("button", { name: "Save", exact: true }).click();
    const readStored = async () => (await (await app.get("/api/conversations/c1")).json()).messages[2].content;
    await expect.poll(readStored).toBe("The gray fo");
    await log.getByText("The gray fo", { exact: true }).waitFor();

    // A script of the owner's that comes later changes what is shown, too.
    await app.put("/api/regex_scripts/s1", { name: "Mine", find: "gray", replace: "brown", placement: BOTH });
    await log.getByText("The brown fo", { exact: true }).waitFor();
    await app.delete("/api/regex_scripts/s1");
    await log.getByText("The gray fo", { exact: true }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  },
);

const DRAW_TWICE = `new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))
)`;

test("a preset's scripts come with its file, ask once the chat uses it, and change what is shown and sent", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await using llm = await openFakeLlm({ pieces: ["<plan>Run.</plan>", "A fox -- red."] });
  await useModel(app, llm);
  await app.patch("/api/settings", { auto_title: false });
  await app.put("/api/conversations/c1", { title: "Foxes", messages: [say("m1", "Hello", "assistant")] });
  const prompts = [
    { identifier: "main", name: "Main", role: "system", content: "Plan first." },
    { identifier: "chatHistory", name: "Chat", marker: true },
  ];
  const order = prompts.map(({ identifier }) => ({ identifier, enabled: true }));
  const regex_scripts = [
    tavern("/<plan>([\\s\\S]*?)<\\/plan>/g", "<style>.plan{}</style>*$1*\n\n", { placement: [2], markdownOnly: true }),
    tavern("/<plan>[\\s\\S]*?<\\/plan>/g", "", { placement: [2], promptOnly: true }),
    tavern("/ -- /g", " — ", { placement: [2], markdownOnly: true, promptOnly: true }),
  ];
  const preset = { prompts, prompt_order: [{ character_id: 100001, order }], extensions: { regex_scripts } };
  const { page, errors, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/presets`);
  const file = { name: "Planner.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(preset)) };
  await page.locator("input[type=file]").setInputFiles(file);
  await page.getByRole("heading", { name: "Planner", level: 2 }).waitFor();

  await page.goto(`${app.url}/c/c1`);
  const log = page.getByRole("log");
  await log.getByText("Hello").waitFor();
  await openChatOptions(page);
  const panel = page.getByRole("complementary", { name: "Chat options" });
  // The server learns of the choice after the page has drawn it.
  await page.route("**/api/conversations/c1", async (route) => {
    if (route.request().method() === "PATCH") await page.evaluate(DRAW_TWICE);
    await route.continue();
  });
  await panel.getByLabel("Preset", { exact: true }).selectOption({ label: "Planner" });
  const consent = page.locator(".script-consent");
  await consent.getByText("The preset “Planner” has 3 regex scripts").waitFor();
  await consent.getByRole("button", { name: "Use them", exact: true }).click();
  await consent.waitFor({ state: "detached" });

  await sendMessage(page, "A fox?");
  await log.locator("em").getByText("Run.", { exact: true }).waitFor();
  await log.getByText("A fox — red.", { exact: true }).waitFor();
  expect(await log.getByText(".plan").count()).toBe(0);
  await sendMessage(page, "And now?");
  await expect.poll(() => llm.chats.length).toBe(2);
  expect(llm.chats[1]!.json!.messages).toMatchObject([
    { role: "system", content: "Plan first." },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "A fox?" },
    { role: "assistant", content: "A fox — red." },
    { role: "user", content: "And now?" },
  ]);
  const { messages } = await (await app.get("/api/conversations/c1")).json();
  expect(messages[2].content).toBe("<plan>Run.</plan>A fox -- red.");
  await context.close();
  expect(errors).toEqual([]);
});
