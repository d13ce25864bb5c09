/** The preset screens on the real server. */
import { Buffer } from "node:buffer";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblemsInBothSchemes, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { eventually, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const PRESET = {
  name: "Calm",
  sampler: { temperature: 0.7, dry_base: 1.75 },
  prompts: [
    { identifier: "main", name: "Main prompt", role: "system", content: "Be calm.", odd: 1 },
    { identifier: "jailbreak", name: "After", role: "system", content: "Stay calm." },
    { identifier: "chatHistory", marker: true },
    { identifier: "charDescription", marker: true },
    { identifier: "spare", name: "Spare", role: "user", content: "Not in use." },
  ],
  prompt_order: [
    { character_id: 7, order: [{ identifier: "main", enabled: false }] },
    {
      character_id: 100001,
      order: ["main", "charDescription", "chatHistory", "jailbreak"].map((identifier) => ({
        identifier,
        enabled: true,
      })),
    },
  ],
};

interface SavedPreset {
  rest: Record<string, unknown>;
  extra_body?: Record<string, unknown>;
  id: string;
  name: string;
  models: string[];
  sampler: Record<string, number>;
  prompts: Record<string, unknown>[];
  prompt_order: { order: { identifier: string; enabled: boolean }[] }[];
}

async function saved(app: TestApp, id = "calm"): Promise<SavedPreset> {
  return await (await app.get(`/api/presets/${id}`)).json();
}

const orderOf = ({ prompt_order }: SavedPreset) => prompt_order[1]!.order.map(({ identifier }) => identifier).join();

async function open(app: TestApp, path: string, options: Parameters<typeof openPage>[2] = {}) {
  const opened = await openPage(browser, app.url, options);
  await opened.page.goto(app.url + path);
  return opened;
}

async function openPreset(app: TestApp, options: Parameters<typeof openPage>[2] = {}) {
  await app.put("/api/presets/calm", PRESET);
  const opened = await open(app, "/settings/presets/calm", options);
  await opened.page.getByRole("list", { name: "Prompt order" }).waitFor();
  return opened;
}

const focusedName = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));

test("buttons reorder prompts, keep the focus and announce the position", async () => {
  await using app = await openTestApp();
  const { page, context, errors } = await openPreset(app);
  const up = page.getByRole("button", { name: "Move After up" });
  await up.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("status").filter({ hasText: "After: position 3 of 4" }).waitFor();
  await expect.poll(() => focusedName(page)).toBe("Move After up");
  await eventually(() => saved(app), (preset) => orderOf(preset) === "main,charDescription,jailbreak,chatHistory");
  await page.keyboard.press("Enter");
  await eventually(() => saved(app), (preset) => orderOf(preset) === "main,jailbreak,charDescription,chatHistory");
  await page.getByRole("button", { name: "Undo" }).click();
  const preset = await eventually(
    () => saved(app),
    (preset) => orderOf(preset) === "main,charDescription,jailbreak,chatHistory",
  );
  expect(preset.prompt_order[0]!.order).toEqual([{ identifier: "main", enabled: false }]);
  expect(errors).toEqual([]);
  await context.close();
});

test("dragging reorders prompts", async () => {
  await using app = await openTestApp();
  const { page, context } = await openPreset(app);
  const rows = page.getByRole("list", { name: "Prompt order" }).getByRole("listitem");
  await rows.nth(3).locator(".sortable-grip").hover(); // once it stands still
  await page.mouse.down();
  const target = await rows.nth(0).boundingBox();
  await page.mouse.move(target!.x + 20, target!.y + target!.height / 2, { steps: 4 });
  await page.locator(".sortable-row.is-before").waitFor();
  await page.mouse.up();
  await eventually(() => saved(app), (preset) => orderOf(preset) === "jailbreak,main,charDescription,chatHistory");
  await context.close();
});

test("toggles, edits, inserts, removes, creates and deletes prompts; unknown fields stay", async () => {
  await using app = await openTestApp();
  const { page, context, errors } = await openPreset(app);
  await page.getByRole("switch", { name: "Send Character" }).uncheck();
  await eventually(() => saved(app), ({ prompt_order }) => prompt_order[1]!.order[1]!.enabled === false);
  await expect.poll(() => page.getByRole("switch", { name: "Send Chat history" }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Edit: Main prompt" }).click();
  await page.getByLabel("Text", { exact: true }).fill("Be very calm.");
  await page.getByLabel("Role").selectOption("user");
  await page.getByLabel("Position", { exact: true }).selectOption("depth");
  await page.getByLabel("Depth (messages from the end)").fill("2");
  await page.getByLabel("Order at the same depth").fill("50");
  await page.getByRole("switch", { name: "Don’t let cards override" }).check();
  const { prompts } = await eventually(() => saved(app), ({ prompts }) => prompts[0]!.forbid_overrides === true);
  expect(prompts[0]).toEqual({
    identifier: "main",
    name: "Main prompt",
    role: "user",
    content: "Be very calm.",
    odd: 1,
    injection_position: 1,
    injection_depth: 2,
    injection_order: 50,
    forbid_overrides: true,
  });
  await page.getByRole("button", { name: "All prompts" }).click();
  await page.getByRole("button", { name: "Add Spare to the order" }).click();
  await eventually(() => saved(app), (preset) => orderOf(preset).endsWith("jailbreak,spare"));
  await page.getByRole("button", { name: "Edit: Spare" }).click();
  await page.getByRole("button", { name: "Remove from the order" }).click();
  await page.getByRole("button", { name: "Add Spare to the order" }).waitFor();
  await page.getByRole("button", { name: "New prompt" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Mine");
  await eventually(() => saved(app), ({ prompts }) => prompts.some(({ name }) => name === "Mine"));
  await page.getByRole("button", { name: "Delete prompt" }).click();
  const end = await eventually(() => saved(app), ({ prompts }) => prompts.every(({ name }) => name !== "Mine"));
  expect(orderOf(end)).toBe("main,charDescription,chatHistory,jailbreak");
  expect(errors).toEqual([]);
  await context.close();
});

test("sets and clears sampling parameters, including those that only a file has", async () => {
  await using app = await openTestApp();
  const { page, context } = await openPreset(app);
  await page.getByRole("tab", { name: "Sampling" }).click();
  await expect.poll(() => page.getByLabel("Temperature").inputValue()).toBe("0.7");
  await page.getByLabel("Temperature").fill("9");
  await page.getByText("Enter a number from 0 to 5").waitFor();
  await page.getByLabel("Temperature").fill("1,25");
  await page.getByLabel("dry_base").fill("");
  await page.getByLabel("Context (tokens)").fill("8192");
  const { sampler } = await eventually(() => saved(app), ({ sampler }) => sampler.context_size === 8192);
  expect(sampler).toEqual({ temperature: 1.25, context_size: 8192 });
  const body = page.getByLabel("Extra body");
  await body.fill('{"cache_prompt": tru');
  await page.getByText("Not valid JSON").waitFor();
  await body.fill('{"cache_prompt": true}');
  await eventually(() => saved(app), ({ extra_body }) => extra_body?.cache_prompt === true);
  await body.fill("");
  await eventually(() => saved(app), ({ extra_body }) => extra_body === undefined);
  await page.getByRole("button", { name: "Add text" }).click();
  await page.getByLabel("Text 1", { exact: true }).fill(" wolf");
  await page.getByLabel("Bias of text 1").fill("-5");
  await page.getByLabel("Bias of text 1").blur();
  const bias = [{ text: " wolf", value: -5 }];
  await eventually(() => saved(app), ({ rest }) => JSON.stringify(rest.logit_bias) === JSON.stringify(bias));
  await page.getByRole("button", { name: "Remove text 1" }).click();
  await eventually(() => saved(app), ({ rest }) => rest.logit_bias === undefined);
  await context.close();
});

test("edits, empties and resets templates; unknown ones stay", async () => {
  await using app = await openTestApp();
  await app.put("/api/presets/calm", { ...PRESET, rest: { wi_format: "[{0}]", odd_field: 3 } });
  const { page, context, errors } = await open(app, "/settings/presets/calm");
  await page.getByRole("tab", { name: "Utility prompts" }).click();
  const begin = page.getByLabel("Before the first message", { exact: true });
  await expect.poll(() => begin.inputValue()).toBe("[A new chat begins]");
  await expect.poll(() => page.getByLabel("Lorebook entry format", { exact: true }).inputValue()).toBe("[{0}]");
  await begin.fill("[They meet]");
  await page.getByLabel("Before each dialogue example", { exact: true }).fill("");
  await page.getByLabel("Reply prefill", { exact: true }).fill("Well,");
  const rest = async () => (await (await app.get("/api/presets/calm")).json()).rest as Record<string, unknown>;
  const own = { new_chat_prompt: "[They meet]", new_example_chat_prompt: "", assistant_prefill: "Well," };
  const kept = await eventually(rest, ({ assistant_prefill }) => assistant_prefill === "Well,");
  expect(kept).toEqual({ wi_format: "[{0}]", odd_field: 3, ...own });

  // These settings are what a chat with a character sends.
  await app.put("/api/characters/fox", { card: { name: "Fox", mes_example: "<START>\nFox: Hush." } });
  await app.put("/api/conversations/c1", {
    preset_id: "calm",
    character_id: "fox",
    messages: [{ id: "m1", role: "user", content: "Hello" }],
  });
  const { messages } = await (await app.post("/api/chat/preview", {
    conversation_id: "c1",
    assistant_message_id: "a1",
    context: "server",
  })).json();
  const sent: string[] = messages.map(({ content }: { content: string }) => content);
  expect(sent.join("\n")).toContain("[They meet]");
  expect(sent.at(-1)).toBe("Well,");

  // A continuation uses a prompt only if the preset says so; the options are SillyTavern's fields.
  const nudge = page.getByLabel("Continue prompt", { exact: true });
  await expect.poll(() => nudge.count()).toBe(0);
  await page.getByRole("switch", { name: "Continue replies with prefill" }).uncheck();
  await nudge.fill("[Carry on.]");
  await page.getByLabel("Separator between a reply and its continuation").selectOption({ label: "Empty line" });
  await page.getByRole("switch", { name: "Merge system messages" }).check();
  const how = { continue_prefill: false, continue_nudge_prompt: "[Carry on.]", continue_postfix: "\n\n" };
  const chosen = await eventually(rest, ({ squash_system_messages }) => squash_system_messages === true);
  expect(chosen).toMatchObject(how);

  await page.getByRole("button", { name: "Restore default: Before the first message", exact: true }).click();
  await expect.poll(() => begin.inputValue()).toBe("[A new chat begins]");
  await eventually(rest, (all) => !("new_chat_prompt" in all));
  expect(errors).toEqual([]);
  await context.close();
});

test("uses a preset by default, for models, and where a chat pins it", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "In the woods", messages: [] });
  const { page, context, errors } = await openPreset(app);
  await page.getByRole("tab", { name: "Usage" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Calmer");
  await page.getByLabel("For these models").fill("llama-*\nqwen*");
  await page.getByRole("switch", { name: "Set as default" }).check();
  await page.getByLabel("Chat", { exact: true }).selectOption("c1");
  await page.getByRole("switch", { name: "Pinned to this chat" }).check();
  const chat = async () => await (await app.get("/api/conversations/c1")).json();
  await eventually(chat, ({ preset_id }) => preset_id === "calm");
  await eventually(async () => (await (await app.get("/api/settings")).json()).preset_id, (id) => id === "calm");
  expect((await eventually(() => saved(app), ({ models }) => models.length === 2)).name).toBe("Calmer");
  await page.getByRole("switch", { name: "Pinned to this chat" }).uncheck();
  await eventually(chat, ({ preset_id }) => preset_id == null);
  await page.getByRole("link", { name: "All presets" }).click();
  const row = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: "Calmer" }) });
  await row.getByText("Default", { exact: true }).waitFor();
  expect(errors).toEqual([]);
  await context.close();
});

test("the last of two changes of a chat wins, even if the first one takes longer", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "In the woods", messages: [] });
  const { page, context, errors } = await openPreset(app);
  const sent: unknown[] = [];
  const held = Promise.withResolvers<void>();
  await page.route("**/api/conversations/c1", async (route) => {
    if (route.request().method() !== "PATCH") return await route.continue();
    sent.push(route.request().postDataJSON().preset_id);
    if (sent.length === 1) await held.promise;
    await route.continue();
  });
  await page.getByRole("tab", { name: "Usage" }).click();
  await page.getByLabel("Chat", { exact: true }).selectOption("c1");
  const pinned = page.getByRole("switch", { name: "Pinned to this chat" });
  await pinned.check();
  await pinned.uncheck();
  // A change that doesn't wait for the one before has been saved by now.
  await page.evaluate(async () => await (await fetch("/healthz")).text());
  held.resolve();
  await eventually(() => sent, ({ length }) => length === 2);
  expect(sent).toEqual(["calm", null]);
  const chat = async () => await (await app.get("/api/conversations/c1")).json();
  expect((await eventually(chat, ({ revision }) => revision === 3)).preset_id).toBeUndefined();
  await expect.poll(() => pinned.isChecked()).toBe(false);
  expect(errors).toEqual([]);
  await context.close();
});

test("shows the built-in preset read-only, copies it, and imports and exports files", async () => {
  await using app = await openTestApp();
  const { page, context, errors } = await open(app, "/settings/presets");
  await page.getByRole("link", { name: "Parlor" }).click();
  await page.getByText("Built-in presets can’t be changed").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Edit: Main prompt" }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Duplicate" }).click();
  await page.getByRole("heading", { name: "Parlor (copy)" }).waitFor();
  await page.getByRole("button", { name: "Edit: Main prompt" }).click();
  await page.getByLabel("Text", { exact: true }).fill("Mine.");
  await page.getByRole("status").filter({ hasText: /^Saved$/ }).waitFor();
  await page.getByRole("link", { name: "All presets" }).click();
  await page.locator("input[type=file]").setInputFiles({
    name: "Samplers.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify({ temp: 0.4, rep_pen: 1.1 })),
  });
  await page.getByRole("heading", { name: "Samplers", level: 2 }).waitFor();
  await page.getByRole("button", { name: "Customize prompts" }).click();
  await page.getByRole("button", { name: "Edit: Main prompt" }).waitFor();
  await page.getByRole("link", { name: "All presets" }).click();
  await page.getByRole("button", { name: "More actions for Samplers" }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export for SillyTavern" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("Samplers.json");
  await holdToasts(page);
  await page.getByRole("button", { name: "More actions for Samplers" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.locator(".toast").filter({ hasText: "Samplers deleted" }).getByRole("button", { name: "Undo" }).click();
  await page.getByRole("link", { name: "Samplers" }).waitFor();
  expect(errors).toEqual([]);
  await context.close();
});

test.each(WIDTHS)(
  "axe finds nothing on the preset screens, light and dark, %s",
  async (_, device) => {
    await using app = await openTestApp();
    const { page, context } = await openPreset(app, device);
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Edit: Main prompt" }).click();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    for (const part of ["Utility prompts", "Sampling", "Usage"]) {
      await page.getByRole("tab", { name: part }).click();
      await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    }
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.getByRole("link", { name: "All presets" }).click();
    await page.getByRole("link", { name: "Calm" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await page.goto(`${app.url}/settings/presets/default`);
    await page.getByRole("button", { name: "Duplicate" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await context.close();
  },
);
