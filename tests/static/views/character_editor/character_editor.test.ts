import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, findAxeProblemsInBothSchemes } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, type Opened, openUiBench, type UiBench, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

/** A card with all fields, and another program's data in card, lorebook and entry. */
function fill({ people }: FakeApi): void {
  const { card } = people.add("fox", {
    name: "Fox",
    description: "A fox.",
    first_mes: "Hello.",
    alternate_greetings: ["Good evening."],
    tags: ["forest"],
    character_book: {
      name: "Lore",
      odd: 1,
      entries: [{
        keys: ["fox"],
        content: "Foxes are red.",
        enabled: true,
        insertion_order: 5,
        extensions: { probability: 50 },
        use_regex: true,
      }],
    },
    extensions: { fav: true },
    source: ["https://cards.example/fox"],
  });
  card.create_date = "long ago";
}

const saved = (ui: Opened) => ui.api.people.characters.get("fox")!.card;
const isSaved = (ui: Opened) => ui.page.getByRole("status").filter({ hasText: /^Saved$/ }).waitFor();

/** Another device saves the card while the next save is on its way: before it, the page might still read that change. */
async function changeElsewhereDuringSave(ui: Opened): Promise<void> {
  let isFirst = true;
  await ui.page.route("**/api/characters/fox", async (route) => {
    if (route.request().method() === "PUT" && isFirst) {
      isFirst = false;
      const theirs = structuredClone(saved(ui));
      theirs.data.description = "Theirs.";
      ui.api.people.save("fox", theirs);
    }
    await route.continue();
  });
}

test("saves typed text automatically with its base version, and keeps all other fields", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  await ui.page.getByLabel("Description").fill("A fox who reads maps.");
  await ui.page.getByText("About 6 tokens").waitFor();
  await eventually(() => saved(ui).data.description, (text) => text === "A fox who reads maps.");
  await isSaved(ui);
  const [first] = ui.api.seen("PUT", "/api/characters/fox");
  expect(first!.headers.get("if-match")).toBe('"v0"');
  await expect.poll(() => saved(ui)).toMatchObject({
    create_date: "long ago",
    data: { source: ["https://cards.example/fox"], extensions: { fav: true }, character_book: { odd: 1 } },
  });
  await ui.page.getByLabel("Personality").fill("kind");
  await eventually(() => saved(ui).data.personality, (text) => text === "kind");
  await expect.poll(() => ui.api.seen("PUT", "/api/characters/fox").at(-1)!.headers.get("if-match")).toBe('"v1"');
});

test("undoes and redoes every step, and saves that, too", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  const description = ui.page.getByLabel("Description");
  await description.fill("Changed.");
  await ui.page.getByLabel("Personality").fill("Sly.");
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => ui.page.getByLabel("Personality").inputValue()).toBe("");
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => description.inputValue()).toBe("A fox.");
  await isSaved(ui);
  await ui.page.getByRole("button", { name: "Redo" }).click();
  await eventually(() => saved(ui).data.description, (text) => text === "Changed.");
});

test("doesn't overwrite a card that was changed elsewhere: lists the fields and asks", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  const description = ui.page.getByLabel("Description");
  await description.waitFor();
  await changeElsewhereDuringSave(ui);
  await description.fill("Mine.");
  await ui.page.getByText("This card was changed elsewhere").waitFor();
  await ui.page.getByText("Different fields: Description.").waitFor();
  await expect.poll(() => saved(ui).data.description).toBe("Theirs.");
  await expect.poll(() => description.inputValue()).toBe("Mine.");
  await ui.page.getByRole("button", { name: "Use the other version" }).click();
  await expect.poll(() => description.inputValue()).toBe("Theirs.");
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => description.inputValue()).toBe("Mine.");
  await eventually(() => saved(ui).data.description, (text) => text === "Mine.");
});

test("overwrites the other version if the user chooses theirs", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  await ui.page.getByLabel("Description").waitFor();
  await changeElsewhereDuringSave(ui);
  await ui.page.getByLabel("Description").fill("Mine.");
  await ui.page.getByRole("button", { name: "Save mine" }).click();
  await eventually(() => saved(ui).data.description, (text) => text === "Mine.");
  await isSaved(ui);
});

test("shows a change elsewhere at once if nothing is unsaved", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  const description = ui.page.getByLabel("Description");
  await description.waitFor();
  const theirs = structuredClone(saved(ui));
  theirs.data.description = "Theirs.";
  ui.api.people.save("fox", theirs);
  ui.api.publish("character", "fox");
  await eventually(() => description.inputValue(), (text) => text === "Theirs.");
});

test("doesn't save a card without a name, and keeps typed text after a refusal", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  await ui.page.getByLabel("Name", { exact: true }).fill("");
  await ui.page.getByText("Enter a name to save the card").waitFor();
  ui.api.refuse("PUT /api/characters/fox", { status: 507, code: "storage_full", message: "The disk is full" });
  await ui.page.getByLabel("Name", { exact: true }).fill("Reynard");
  await ui.page.getByText("The disk is full").waitFor();
  await expect.poll(() => saved(ui).data.name).toBe("Fox");
  ui.api.allow("PUT /api/characters/fox");
  await ui.page.getByRole("button", { name: "Try again" }).click();
  await eventually(() => saved(ui).data.name, (name) => name === "Reynard");
});

test("adds, edits and removes greetings; each section has its fields", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  await ui.page.getByRole("tab", { name: "Voice" }).click();
  await expect.poll(() => ui.page.getByLabel("Greeting", { exact: true }).inputValue()).toBe("Hello.");
  await ui.page.getByRole("button", { name: "Add to: Alternate greetings" }).click();
  await ui.page.getByLabel("Alternate greetings, 2", { exact: true }).fill("Psst!");
  await ui.page.getByRole("button", { name: "Remove: Alternate greetings, 1" }).click();
  await expect.poll(() => ui.page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe(
    "Add to: Alternate greetings",
  );
  await ui.page.getByRole("button", { name: "Add to: Group greetings" }).click();
  await ui.page.getByLabel("Group greetings, 1", { exact: true }).fill("All here?");
  await eventually(
    () => saved(ui).data,
    (data) => data.alternate_greetings.join() === "Psst!" && data.group_only_greetings.join() === "All here?",
  );
  const fields: [part: string, labels: string[]][] = [
    ["Identity", ["Name", "Nickname", "Description", "Personality", "Tags"]],
    ["Voice", ["Greeting", "Example dialogue"]],
    ["Scene", ["Scenario", "System prompt", "Post-history instructions"]],
    ["Advanced", ["Creator", "Version", "Creator’s notes"]],
  ];
  for (const [part, labels] of fields) {
    await ui.page.getByRole("tab", { name: part }).click();
    for (const label of labels) await ui.page.getByLabel(label, { exact: true }).fill(`${label} 1`);
  }
  await ui.page.getByText('"fav": true').waitFor();
  await eventually(() => saved(ui).data, (data) => data.creator_notes === "Creator’s notes 1");
  await expect.poll(() => saved(ui).data).toMatchObject({
    name: "Name 1",
    nickname: "Nickname 1",
    tags: ["Tags 1"],
    mes_example: "Example dialogue 1",
    system_prompt: "System prompt 1",
    post_history_instructions: "Post-history instructions 1",
    creator: "Creator 1",
    character_version: "Version 1",
  });
});

test("edits all fields of a lorebook entry, and keeps those of other programs", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  await ui.page.getByRole("tab", { name: "Lorebook" }).click();
  await ui.page.getByRole("button", { name: "fox" }).click();
  await ui.page.getByLabel("Keywords", { exact: true }).fill("fox\nred, orange\n");
  await ui.page.getByLabel("Text", { exact: true }).fill("Foxes are red or white.");
  await ui.page.getByLabel("Require secondary keywords").check();
  await ui.page.getByLabel("Secondary keywords", { exact: true }).fill("winter");
  await ui.page.getByText("Matching").click();
  await ui.page.getByLabel("Match case").check();
  await ui.page.getByLabel("Always active").check();
  await ui.page.getByText("Placement").click();
  await ui.page.getByLabel("Order").fill("70");
  await ui.page.getByLabel("Position").selectOption("after_char");
  await ui.page.getByLabel("Enabled").uncheck();
  await eventually(() => saved(ui).data.character_book!.entries[0]!.enabled, (isOn) => !isOn);
  await expect.poll(() => saved(ui).data.character_book!.entries[0]).toEqual({
    keys: ["fox", "red, orange"],
    secondary_keys: ["winter"],
    content: "Foxes are red or white.",
    enabled: false,
    selective: true,
    case_sensitive: true,
    constant: true,
    insertion_order: 70,
    position: "after_char",
    extensions: { probability: 50 },
    use_regex: true,
  });
  await ui.page.getByRole("button", { name: "Add entry" }).click();
  await eventually(() => saved(ui).data.character_book!.entries.length, (count) => count === 2);
  await ui.page.getByRole("button", { name: "Delete entry" }).click();
  await eventually(() => saved(ui).data.character_book!.entries.length, (count) => count === 1);
});

test("edits the author's note of a character, and keeps its folder", async () => {
  await using ui = await bench.open("/characters/fox/edit", {
    prepare: (api) => {
      fill(api);
      saved({ api } as Opened).data.extensions = { fav: true, parlor: { folder: "Woods" } };
    },
  });
  await ui.page.getByRole("tab", { name: "Scene" }).click();
  await ui.page.getByLabel("Author’s note", { exact: true }).fill("The fox yawns.");
  await ui.page.getByLabel("Chat’s own author’s note").selectOption("Follows it");
  const note = { text: "The fox yawns.", place: "before" };
  await expect.poll(() => saved(ui).data.extensions).toEqual({ fav: true, parlor: { folder: "Woods", note } });
  await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
  await ui.page.getByLabel("Author’s note", { exact: true }).fill("");
  await ui.page.getByLabel("Chat’s own author’s note").waitFor({ state: "detached" });
  await expect.poll(() => saved(ui).data.extensions).toEqual({ fav: true, parlor: { folder: "Woods" } });
});

test("saves on leaving the editor", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  await ui.page.getByLabel("Description").fill("Late.");
  await ui.page.getByRole("link", { name: "Done" }).click();
  await eventually(() => saved(ui).data.description, (text) => text === "Late.");
});

test("creates a character with a name and continues in the editor", async () => {
  await using ui = await bench.open("/characters");
  await ui.page.getByRole("button", { name: "New character" }).first().click();
  await ui.page.getByRole("dialog").getByLabel("Name").fill("Mira");
  await ui.page.keyboard.press("Enter");
  await ui.page.getByRole("heading", { name: "Edit Mira" }).waitFor();
  await expect.poll(() => [...ui.api.people.characters.values()].map(({ name }) => name)).toEqual(["Mira"]);
});

const CARD = {
  id: "somebody/fox",
  name: "Site fox",
  tagline: "From afar",
  creator: "somebody",
  tags: ["forest"],
  avatar_url: "/api/characters/search/somebody/fox/avatar",
  page_url: "https://cards.example/characters/somebody/fox",
  downloads: 12,
  stars: 3,
  updated_at: null,
};

test("searches the card site and loads its images through our own server; imports with one click", async () => {
  await using ui = await bench.open("/characters/browse", {
    prepare: ({ people }) =>
      people.found = [CARD, { ...CARD, id: "x/evil", name: "Evil fox", avatar_url: "https://evil.example/a.png" }],
  });
  await ui.page.getByLabel("Search for").fill("fox");
  await ui.page.keyboard.press("Enter");
  await ui.page.getByRole("heading", { name: "Site fox" }).waitFor();
  await ui.page.locator(".found-card img").first().waitFor();
  await expect.poll(() => ui.page.locator(".found-card img").count()).toBe(1);
  await ui.page.getByRole("button", { name: "Import Site fox" }).click();
  await ui.page.getByText("1 character imported").waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/characters/import-url")[0]!.body).toEqual({ url: CARD.page_url });
  await ui.page.getByRole("link", { name: "Open" }).click();
  await ui.page.getByRole("heading", { level: 2, name: "fox" }).waitFor();
  expect(ui.foreign).toEqual([]);
});

test("shows why a card site search failed, or that it found nothing", async () => {
  await using ui = await bench.open("/characters/browse");
  ui.api.refuse("GET /api/characters/search", { status: 502, code: "upstream_error", message: "The site is away" });
  await ui.page.getByRole("button", { name: "Search" }).click();
  await ui.page.getByText("The site is away").waitFor();
  ui.api.allow("GET /api/characters/search");
  await ui.page.getByRole("button", { name: "Try again" }).click();
  await ui.page.getByText("No results").waitFor();
});

test.each(WIDTHS)(
  "axe finds nothing in the editor and the card site, light and dark, %s",
  async (_, options) => {
    await using ui = await bench.open("/characters/fox/edit", {
      ...options,
      prepare: (api) => {
        fill(api);
        api.people.found = [CARD];
      },
    });
    await ui.page.getByLabel("Description").waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    for (const part of ["Voice", "Scene", "Lorebook", "Advanced"]) {
      await ui.page.getByRole("tab", { name: part }).click();
      if (part === "Lorebook") await ui.page.getByRole("button", { name: "fox" }).click();
      await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    }
    await ui.page.goto(`${ui.api.origin}/characters/browse`);
    await ui.page.getByRole("button", { name: "Search" }).click();
    await ui.page.getByRole("heading", { name: "Site fox" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    expect(ui.errors).toEqual([]);
  },
);

test("edits notes in further languages, shows them in the user's, and removes them completely", async () => {
  await using ui = await bench.open("/characters/fox/edit", { prepare: fill });
  const { page } = ui;
  await page.getByRole("tab", { name: "Advanced" }).click();
  await page.getByLabel("Creator’s notes").fill("Everywhere");
  await page.getByLabel("Add a language").selectOption({ label: "German" });
  await page.getByRole("textbox", { name: "Notes in German" }).fill("Nur hier");
  await page.getByLabel("Add a language").selectOption({ label: "English" });
  await page.getByRole("textbox", { name: "Notes in English" }).fill("Only here");
  const notes = { de: "Nur hier", en: "Only here" };
  await eventually(
    () => JSON.stringify(saved(ui).data.creator_notes_multilingual),
    (text) => text === JSON.stringify(notes),
  );
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.getByRole("link", { name: "Done" }).click();
  await page.getByText("Creator’s notes").click();
  await page.getByText("Only here").waitFor();
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByRole("tab", { name: "Advanced" }).click();
  for (const language of ["English", "German"]) {
    await page.getByRole("button", { name: `Remove notes in ${language}` }).click();
  }
  await eventually(() => saved(ui).data, (data) => !("creator_notes_multilingual" in data));
});

test("shows the card's origin, except an unknown date", async () => {
  await using ui = await bench.open("/characters/fox/edit", {
    prepare: (api) => {
      fill(api);
      const data = api.people.characters.get("fox")!.card.data;
      data.creation_date = 1_700_000_000;
      data.modification_date = 0;
      data.assets = [{ type: "emotion", uri: "embeded://joy.png", name: "joy", ext: "png" }, null];
    },
  });
  await ui.page.getByRole("tab", { name: "Advanced" }).click();
  const link = ui.page.getByRole("link", { name: "https://cards.example/fox" });
  await expect.poll(() => link.getAttribute("rel")).toContain("noreferrer");
  await ui.page.getByText("2023").waitFor();
  await ui.page.getByText("emotion · joy · png").waitFor();
  await expect.poll(() => ui.page.getByText("Last exported").count()).toBe(0);
});
