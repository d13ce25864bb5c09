/** The lorebook screens on the real server. */
import { Buffer } from "node:buffer";
import type { Browser } from "playwright-core";
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

const FOX = { keys: ["fox"], content: "Foxes are red.", enabled: true, insertion_order: 10, extensions: {} };
const WINTER = {
  keys: ["snow"],
  secondary_keys: ["ice"],
  selective: true,
  content: "Snow is white.",
  enabled: true,
  insertion_order: 20,
  extensions: { "odd/tool": 1, position: 4, depth: 2, role: 1, probability: 40 },
};

interface SavedBook {
  name: string;
  enabled: boolean;
  scope: string;
  character_ids: string[];
  persona_ids: string[];
  book: { scan_depth?: number; recursive_scanning?: boolean; entries: Record<string, unknown>[] };
}

async function saved(app: TestApp, id = "woods"): Promise<SavedBook> {
  return await (await app.get(`/api/lorebooks/${id}`)).json();
}

async function open(app: TestApp, path: string, options: Parameters<typeof openPage>[2] = {}) {
  const opened = await openPage(browser, app.url, options);
  await opened.page.goto(app.url + path);
  return opened;
}

async function openBook(app: TestApp, entries: unknown[] = [FOX, WINTER], options = {}) {
  await app.put("/api/lorebooks/woods", { name: "Woods", book: { extensions: {}, entries } });
  return await open(app, "/settings/lorebooks/woods", options);
}

test("what applies to all lorebooks is set below the list", async () => {
  await using app = await openTestApp();
  const { page, context, errors } = await open(app, "/settings/lorebooks");
  const section = page.getByRole("region", { name: "All lorebooks" });
  const read = async () => await (await app.get("/api/settings")).json();
  await section.getByLabel("Messages to scan for that").waitFor({ state: "detached" });
  await section.getByLabel("Fewest active entries").fill("3");
  await section.getByLabel("Fewest active entries").blur();
  await section.getByLabel("Messages to scan for that").fill("20");
  await section.getByLabel("Messages to scan for that").blur();
  await eventually(read, (now) => now.lore_min_activations === 3 && now.lore_min_activations_depth === 20);
  await section.getByLabel("Most tokens").fill("900");
  await section.getByLabel("Most tokens").blur();
  await eventually(read, (now) => now.lore_budget_tokens === 900);
  await section.getByLabel("Most tokens").fill("");
  await section.getByLabel("Most tokens").blur();
  await section.getByLabel("Lorebooks of characters").selectOption("Mixed, by the order of their entries");
  await eventually(read, (now) => now.lore_order === "evenly");
  await section.getByLabel("Scan names").click();
  await eventually(read, (now) => now.lore_budget_tokens === null && now.lore_scans_names === false);
  expect(errors).toEqual([]);
  await context.close();
});

test("imports and exports a SillyTavern file, deletes it with Undo, and then permanently", async () => {
  await using app = await openTestApp();
  const { page, context, errors, foreign } = await open(app, "/settings/lorebooks");
  await page.getByRole("heading", { name: "No lorebooks yet" }).waitFor();
  const file = {
    entries: { "0": { uid: 0, key: ["fox"], content: "Foxes are red.", order: 7, position: 4, depth: 3 } },
  };
  const upload = (name: string, text: string) =>
    page.locator("input[type=file]").setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  await upload("broken.json", "{");
  await page.getByText("Can't read the lorebook").waitFor();
  await upload("Forest.json", JSON.stringify(file));
  await page.getByRole("heading", { name: "Forest" }).waitFor();
  await page.getByRole("button", { name: "fox" }).waitFor();
  await page.getByRole("link", { name: "All lorebooks" }).click();
  await page.getByRole("link", { name: "Forest" }).waitFor();
  await page.getByRole("button", { name: "More actions for Forest" }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export for SillyTavern" }).click(),
  ]);
  const chunks: Uint8Array[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Uint8Array);
  expect(JSON.parse(Buffer.concat(chunks).toString()).entries["0"]).toMatchObject(file.entries["0"]);

  await holdToasts(page);
  const remove = async () => {
    await page.getByRole("button", { name: "More actions for Forest" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "No lorebooks yet" }).waitFor();
    return page.locator(".toast").filter({ hasText: "Forest deleted" });
  };
  await (await remove()).getByRole("button", { name: "Undo" }).click();
  await page.getByRole("link", { name: "Forest" }).waitFor();
  await (await remove()).getByRole("button", { name: "Close" }).click();
  await eventually(async () => (await (await app.get("/api/lorebooks")).json()).length, (count) => count === 0);
  expect([errors, foreign]).toEqual([[], []]);
  await context.close();
});

test("saves every field of an entry automatically, and keeps those of other programs", async () => {
  await using app = await openTestApp();
  const { page, context, errors } = await openBook(app);
  await page.getByRole("button", { name: "snow" }).click();
  await page.getByLabel("Title").fill("");
  await page.getByLabel("Title").pressSequentially("Deep winter");
  await page.getByLabel("Keywords", { exact: true }).fill("snow\n/sn[oö]w/i");
  await page.getByLabel("Activates when").selectOption("all");
  await page.getByText("Matching").click();
  await page.getByLabel("Allow regular expressions").check();
  await page.getByLabel("Match whole words").check();
  await page.getByLabel("Scan depth (messages)").fill("6");
  await page.getByText("Placement").click();
  await expect.poll(() => page.getByLabel("Position", { exact: true }).inputValue()).toBe("at_depth");
  await page.getByLabel("Depth (messages from the end)").fill("9");
  await page.getByLabel("Role").selectOption("assistant");
  await page.getByLabel("Order", { exact: true }).fill("many");
  await page.getByText("Enter a number from -999999 to 999999").waitFor();
  await page.getByLabel("Order", { exact: true }).fill("33");
  await page.getByText("Probability and timing").click();
  await page.getByLabel("Probability (percent)").fill("75");
  await page.getByLabel("Sticky (messages)").fill("2");
  await page.getByLabel("Cooldown (messages)").fill("3");
  await page.getByLabel("Delay (messages)").fill("4");
  await page.getByText("Groups", { exact: true }).click();
  await page.getByLabel("Group", { exact: true }).fill("weather");
  await page.getByLabel("Group weight").fill("50");
  await page.getByLabel("Takes priority in its group").check();
  await page.getByText("Recursion", { exact: true }).click();
  await page.getByLabel("Can’t be activated by other entries").check();
  await page.getByLabel("Can’t activate other entries").check();
  await page.getByLabel("Delay until recursion").fill("1");
  await page.getByLabel("Enabled").uncheck();
  const { book } = await eventually(() => saved(app), ({ book }) => book.entries[1]!.enabled === false);
  expect(book.entries[1]).toEqual({
    ...WINTER,
    comment: "Deep winter",
    keys: ["snow", "/sn[oö]w/i"],
    enabled: false,
    insertion_order: 33,
    use_regex: true,
    extensions: {
      "odd/tool": 1,
      position: 4,
      depth: 9,
      role: 2,
      probability: 75,
      useProbability: true,
      selectiveLogic: 3,
      match_whole_words: true,
      scan_depth: 6,
      sticky: 2,
      cooldown: 3,
      delay: 4,
      group: "weather",
      group_weight: 50,
      group_override: true,
      exclude_recursion: true,
      prevent_recursion: true,
      delay_until_recursion: 1,
    },
  });
  await page.getByLabel("Position", { exact: true }).selectOption("before_char");
  await eventually(() => saved(app), ({ book }) => book.entries[1]!.position === "before_char");
  await expect.poll(async () => (await saved(app)).book.entries[1]!.extensions).toMatchObject({ position: 0 });
  await holdToasts(page);
  await page.getByRole("button", { name: "Delete entry" }).click();
  await eventually(() => saved(app), ({ book }) => book.entries.length === 1);
  await page.getByRole("button", { name: "Undo" }).click();
  await eventually(() => saved(app), ({ book }) => book.entries.length === 2);
  expect(errors).toEqual([]);
  await context.close();
});

test("applies a lorebook globally, to characters, to personas, or to selected chats", async () => {
  await using app = await openTestApp();
  await app.put("/api/characters/vixen", {
    card: { spec: "chara_card_v3", spec_version: "3.0", data: { name: "Vixen" } },
  });
  await app.put("/api/personas/robin", { name: "Robin" });
  await app.put("/api/conversations/c1", { title: "In the woods", messages: [] });
  const { page, context, errors } = await openBook(app);
  await page.getByRole("tab", { name: "Settings" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Deep woods");
  await page.getByLabel("Scan depth (messages)").fill("8");
  await page.getByLabel("Recursive scanning").selectOption("no");
  const scope = page.getByLabel("Applies to");
  await expect.poll(() => scope.inputValue()).toBe("global");
  await scope.selectOption("character");
  await page.getByLabel("Find a character").fill("vix");
  await page.getByRole("button", { name: "Add Vixen" }).click();
  await page.getByRole("button", { name: "Remove Vixen" }).waitFor();
  await eventually(() => saved(app), ({ character_ids }) => character_ids.join() === "vixen");
  await scope.selectOption("persona");
  await page.getByRole("switch", { name: "Robin" }).check();
  await eventually(() => saved(app), ({ persona_ids }) => persona_ids.join() === "robin");
  await scope.selectOption("chat");
  await page.getByLabel("Chat", { exact: true }).selectOption("c1");
  await page.getByRole("switch", { name: "Use in this chat" }).check();
  await eventually(
    async () => (await (await app.get("/api/conversations/c1")).json()).lorebook_ids,
    (ids) => ids?.join() === "woods",
  );
  expect(await eventually(() => saved(app), ({ scope }) => scope === "chat")).toMatchObject({
    name: "Deep woods",
    book: { scan_depth: 8, recursive_scanning: false },
  });
  await page.getByLabel("Enabled").uncheck();
  await eventually(() => saved(app), ({ enabled }) => !enabled);
  expect(errors).toEqual([]);
  await context.close();
});

test("doesn't overwrite a lorebook that was changed elsewhere, and asks", async () => {
  await using app = await openTestApp();
  const { page, context } = await openBook(app);
  await page.getByRole("tab", { name: "Settings" }).click();
  const name = page.getByLabel("Name", { exact: true });
  await name.waitFor();
  // During the save, so that the change elsewhere is a conflict.
  let isFirst = true;
  await page.route("**/api/lorebooks/woods", async (route) => {
    if (route.request().method() === "PUT" && isFirst) {
      isFirst = false;
      await app.put("/api/lorebooks/woods", { name: "Theirs", book: { entries: [] } });
    }
    await route.continue();
  });
  await name.fill("Mine");
  await page.getByText("This lorebook was changed elsewhere").waitFor();
  await page.getByText("Different fields: Name, Entries.").waitFor();
  await expect.poll(async () => (await saved(app)).name).toBe("Theirs");
  await page.getByRole("button", { name: "Save mine" }).click();
  expect((await eventually(() => saved(app), ({ name }) => name === "Mine")).book.entries).toHaveLength(2);
  await context.close();
});

test("the test shows matched keys, positions, and what was left out and why", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", {
    title: "In the woods",
    messages: [{ id: "m1", role: "user", content: "Deep snow and thin ice." }],
  });
  const { page, context, errors } = await openBook(app);
  await page.getByRole("tab", { name: "Test activation" }).click();
  const run = page.getByRole("button", { name: "Test", exact: true });
  await expect.poll(() => run.isDisabled()).toBe(true);
  await page.getByLabel("Text to scan").fill("A fox in the snow.");
  await run.click();
  await page.getByRole("status").filter({ hasText: "1 entry activated" }).waitFor();
  const fired = page.getByRole("list", { name: "1 entry activated" });
  await expect.poll(() => fired.textContent()).toContain("matched “fox”");
  await expect.poll(() => page.getByRole("list", { name: "Matched, but not included" }).textContent())
    .toContain("secondary keywords didn’t match");
  await page.getByLabel("Text to scan").fill("");
  await page.getByLabel("Chat to scan").selectOption("c1");
  await run.click();
  const inChat = page.getByRole("list", { name: "1 entry activated" }).filter({ hasText: "snow" });
  await inChat.waitFor();
  await expect.poll(() => inChat.textContent()).toMatch(/In the chat \(depth 2\).*in 40% of cases/);
  expect(errors).toEqual([]);
  await context.close();
});

test("searches a thousand entries while typing, and mounts only those in view", async () => {
  await using app = await openTestApp();
  const many = Array.from({ length: 1000 }, (_, n) => ({ ...FOX, keys: [`key ${n}`], content: `Text ${n}.` }));
  const { page, context } = await openBook(app, many);
  const list = page.getByRole("list", { name: "Entries" });
  await list.getByRole("button", { name: "key 0" }).waitFor();
  await expect.poll(() => list.getByRole("listitem").count()).toBeLessThan(40);
  await page.getByLabel("Find an entry").fill("text 777");
  await list.getByRole("button", { name: "key 777" }).click();
  await page.getByLabel("Text", { exact: true }).fill("Changed.");
  await eventually(() => saved(app), ({ book }) => book.entries[777]!.content === "Changed.");
  await page.getByRole("button", { name: "All entries" }).click();
  await page.getByLabel("Find an entry").fill("no such thing");
  await page.getByText("No entries match.").waitFor();
  await context.close();
});

test.each(WIDTHS)(
  "axe finds nothing on the lorebook screens, light and dark, %s",
  async (_, device) => {
    await using app = await openTestApp();
    const { page, context } = await openBook(app, [FOX, WINTER], device);
    const list = page.getByRole("list", { name: "Entries" });
    await list.waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await list.getByRole("button", { name: "snow" }).click();
    for (const fold of await page.locator(".fold > summary").all()) await fold.click();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await page.getByRole("tab", { name: "Settings" }).click();
    await page.getByLabel("Applies to").selectOption("character");
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await page.getByRole("tab", { name: "Test activation" }).click();
    await page.getByLabel("Text to scan").fill("A fox in the snow.");
    await page.getByRole("button", { name: "Test", exact: true }).click();
    await page.getByRole("list", { name: "1 entry activated" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.getByRole("link", { name: "All lorebooks" }).click();
    await page.getByRole("link", { name: "Woods" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await context.close();
  },
);
