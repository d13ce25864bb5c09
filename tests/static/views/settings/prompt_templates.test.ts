/** Prompt templates: managed in the settings, inserted in the composer. On the real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test.each([["light", {}], ["dark", PHONE]] as const)(
  "templates are written in the settings, and a slash inserts them (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    await page.goto(`${app.url}/settings/templates`);
    const main = page.getByRole("main");
    await main.getByText("No templates yet").waitFor();
    await main.getByRole("button", { name: "New template" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("two words");
    await dialog.getByText("Use letters, digits, - and _ only").waitFor();
    await dialog.getByLabel("Name").fill("explain");
    await dialog.getByLabel("Text").fill("Explain [[topic]] to [[reader]].");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/template-form-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await main.getByRole("button", { name: "/explain Explain" }).waitFor();
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/templates-${colorScheme}.png` });

    await main.getByRole("button", { name: "New template" }).click();
    await dialog.getByLabel("Name").fill("Explain");
    await dialog.getByText("Another template has this name").waitFor();
    await dialog.getByLabel("Name").fill("greeting");
    await dialog.getByLabel("Text").fill("Good morning!");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });

    // Deleted, and back at its place.
    await holdToasts(page);
    await main.getByRole("button", { name: "Delete explain" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await main.getByRole("button", { name: "/explain Explain" }).waitFor();
    const listStored = async () => {
      const { prompt_templates: stored } = await (await app.get("/api/settings")).json();
      return stored.map(({ name }: { name: string }) => name);
    };
    await expect.poll(listStored).toEqual(["explain", "greeting"]);
    await main.getByRole("button", { name: "Save for SillyTavern" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "Save the set “Parlor”" }).click();
    expect((await download).suggestedFilename()).toBe("Parlor.json");

    await page.goto(`${app.url}/new`);
    const composer = page.getByLabel("Message", { exact: true });
    await composer.fill("/gree");
    await page.getByRole("option", { name: "/greeting Good morning!" }).waitFor();
    await composer.press("Enter");
    await expect.poll(() => composer.inputValue()).toBe("Good morning!");
    await composer.fill("/expl");
    await page.getByRole("option", { name: /^\/explain/ }).click();
    await dialog.getByLabel("topic").fill("tides");
    await dialog.getByLabel("reader").fill("a child");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/template-insert-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Insert" }).click();
    await expect.poll(() => composer.inputValue()).toBe("Explain tides to a child.");
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("a template that another device adds meanwhile isn't lost", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/templates`);
  await page.getByRole("button", { name: "New template" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("mine");
  await dialog.getByLabel("Text").fill("Mine.");
  // The other device saves between this one's read and write.
  let isFirst = true;
  await page.route("**/api/settings", async (route) => {
    if (route.request().method() === "PATCH" && isFirst) {
      isFirst = false;
      await app.patch("/api/settings", { prompt_templates: [{ name: "theirs", text: "Theirs." }] });
    }
    await route.continue();
  });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const { prompt_templates: stored } = await (await app.get("/api/settings")).json();
  expect(stored.map(({ name }: { name: string }) => name)).toEqual(["theirs", "mine"]);
  await context.close();
});

test.each([["light", {}], ["dark", PHONE]] as const)(
  "quick replies stand above the composer, insert or send, and scripts do nothing (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    await using llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["Hello."] });
    await useModel(app, llm);
    const button = (label: string, action: string, more: object = {}) => ({ button: { label, action, ...more } });
    await app.patch("/api/settings", {
      prompt_templates: [
        { name: "plain", text: "No button" },
        { name: "wave", text: "*waves*", ...button("Wave", "insert_after") },
        { name: "ask", text: "About [[topic]]: {{input}}", ...button("Ask", "insert_after") },
        { name: "roll", text: "/roll 1d6", ...button("Roll a very long die with many sides and colors", "send") },
        { name: "go", text: "Go on.", ...button("Go on", "send") },
        { name: "mia", text: "Mia", ...button("Only Mia", "send", { character_ids: ["mia"] }) },
      ],
    });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    await page.goto(`${app.url}/new`);
    const bar = page.getByRole("group", { name: "Quick replies" });
    const long = "/Roll a very long die with many sides and colors (SillyTavern script)";
    await expect.poll(() => bar.getByRole("button").allTextContents()).toEqual(["Wave", "Ask", long, "Go on"]);
    const composer = page.getByLabel("Message", { exact: true });
    await composer.fill("Hi");
    await bar.getByRole("button", { name: "Wave" }).press("Enter");
    await expect.poll(() => composer.inputValue()).toBe("Hi *waves*");
    await bar.getByRole("button", { name: "Ask" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("topic").fill("tides");
    await dialog.getByRole("button", { name: "Insert" }).click();
    await expect.poll(() => composer.inputValue()).toBe("About tides: Hi *waves*");
    await bar.getByRole("button", { name: "Roll" }).press("Enter");
    await page.getByText("is a SillyTavern script. Parlor").waitFor();
    await expect.poll(() => composer.inputValue()).toBe("About tides: Hi *waves*");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/quick-replies-${colorScheme}.png` });
    const heights = await bar.getByRole("button").evaluateAll((all) => all.map((one) => one.clientHeight));
    expect(Math.min(...heights)).toBeGreaterThanOrEqual(device === PHONE ? 42 : 34); // without the borders
    // Only the bar itself scrolls sideways.
    const scrolled = await page.locator("*").evaluateAll((all) => all.filter((one) => one.scrollLeft > 0).length);
    expect(scrolled).toBeLessThanOrEqual(device === PHONE ? 1 : 0);
    if (device === PHONE) await expect.poll(() => bar.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(true);

    // The text is sent by itself; what is typed stays.
    await bar.getByRole("button", { name: "Go on" }).click();
    await page.getByRole("log").getByText("Go on.").waitFor();
    await page.getByRole("log").getByText("Hello.").first().waitFor();
    await expect.poll(() => composer.inputValue()).toBe("About tides: Hi *waves*");
    const sent = llm.chats[0]!.json!.messages as { role: string; content: string }[];
    expect(sent.at(-1)).toMatchObject({ role: "user", content: "Go on." });

    // The form changes a button, and takes it away.
    await page.goto(`${app.url}/settings/templates`);
    await page.getByRole("main").getByText("SillyTavern script: /roll 1d6").waitFor();
    await page.getByRole("main").getByRole("button", { name: "/wave" }).click();
    await dialog.getByLabel("When pressed").selectOption("send_before");
    await dialog.getByLabel("Label").fill("");
    await dialog.getByText("Enter a label").waitFor();
    await dialog.getByLabel("Label").fill("Wave!");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/quick-reply-form-${colorScheme}.png` });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const read = async (name: string) => {
      const { prompt_templates: stored } = await (await app.get("/api/settings")).json();
      return stored.find((one: { name: string }) => one.name === name).button;
    };
    await expect.poll(() => read("wave")).toEqual({ label: "Wave!", action: "send_before" });
    await page.getByRole("main").getByRole("button", { name: "/go" }).click();
    await dialog.getByRole("switch", { name: "Show as a button above the composer" }).click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => read("go")).toBeUndefined();
    expect(errors).toEqual([]);
    await context.close();
  },
);
