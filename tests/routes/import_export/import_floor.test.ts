/** How much of what a user has in an export, card, lorebook or preset is found after its import: at least 98 %. */
import { expect, test } from "vitest";
import { importReport } from "../../helpers/app/imported.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { agnaiBook, agnaiCharacter } from "../../helpers/files/agnai_files.ts";
import { listImportSamples } from "../../helpers/files/import_samples.ts";

/** Share of the fields that must be found. */
const FLOOR = 0.98;

/** Returns all texts of everything that the API gives. */
async function readAll(app: TestApp): Promise<string> {
  const get = async (path: string) => await (await app.get(path)).json();
  const found: unknown[] = [await get("/api/settings"), await get("/api/memories"), await get("/api/personas")];
  found.push(await get("/api/characters?view=full"));
  for (const kind of ["lorebooks", "presets"]) {
    for (const { id } of await get(`/api/${kind}`)) found.push(await get(`/api/${kind}/${id}`));
  }
  for (const { id, name } of await get("/api/documents")) {
    await expect.poll(async () => (await get(`/api/documents/${id}`)).state).toBe("ready");
    found.push(name, await get(`/api/documents/${id}/text`));
  }
  for (const { id } of await get("/api/conversations")) {
    const chat = await get(`/api/conversations/${id}`);
    found.push(chat);
    for (const message of chat.messages) {
      found.push(await get(`/api/conversations/${id}/messages/${message.id}/variants`));
    }
  }
  return JSON.stringify(found);
}

const isIn = (all: string) => (field: string) => all.includes(JSON.stringify(field).slice(1, -1));

test.each(listImportSamples().map((sample) => [sample.kind, sample] as const))(
  "the fields of an export of %s are found after the import, and its report names the others",
  async (kind, { bytes, fields, lines, name }) => {
    await using app = await openTestApp();
    const report = await importReport(app, `kind=${kind}&name=${encodeURIComponent(name)}`, bytes);
    const all = await readAll(app);
    expect(fields.filter(isIn(all)).length / fields.length).toBeGreaterThanOrEqual(FLOOR);
    const codes = report.lines.map(({ code }) => code).filter((code) => code !== "other_files");
    expect(codes.sort()).toEqual([...lines].sort());
  },
);

const CARD_FIELDS = {
  name: "Card fox",
  description: "Card: red\r\nand “sly”",
  personality: "Card: calm",
  scenario: "Card: a pier",
  first_mes: "Card: ahoy",
  mes_example: "<START>\n{{char}}: Card: an example",
};
const CARD_V2 = {
  ...CARD_FIELDS,
  creator_notes: "Card: notes",
  system_prompt: "Card: a system prompt",
  post_history_instructions: "Card: last words",
  alternate_greetings: ["Card: evening", "Card: night"],
  tags: ["card-sea"],
  creator: "Card author",
  character_version: "1.2-card",
  extensions: { depth_prompt: { prompt: "Card: at depth", depth: 2 }, "card/own": { kept: "Card: an extension" } },
  character_book: {
    name: "Card lore",
    entries: [{
      keys: ["card-mill"],
      secondary_keys: ["card-wheel"],
      comment: "Card mill",
      content: "Card: an old mill",
    }],
  },
  card_unknown: "Card: an unknown field",
};
const card = (spec: string, more: object = {}) => ({
  spec: `chara_card_v${spec[0]}`,
  spec_version: spec,
  data: { ...CARD_V2, ...more },
});
const LISTED = [
  ...["Card fox", "Card: red\r\nand “sly”", "Card: calm", "Card: a pier", "Card: ahoy", "Card: an example"],
  ...["Card: notes", "Card: a system prompt", "Card: last words", "Card: evening", "Card: night", "card-sea"],
  ...["Card author", "1.2-card", "Card: at depth", "Card: an extension", "Card lore", "card-mill", "card-wheel"],
  ...["Card mill", "Card: an old mill", "Card: an unknown field"],
];

test.each<[string, string, object, readonly string[]]>([
  ["a card of version 1", "characters", CARD_FIELDS, LISTED.slice(0, 6)],
  ["a card of version 2", "characters", card("2.0"), LISTED],
  [
    "a card of version 3",
    "characters",
    card("3.0", {
      nickname: "Foxy card",
      group_only_greetings: ["Card: to the group"],
      creator_notes_multilingual: { de: "Karte: Notizen" },
      source: ["https://card.example/1"],
      assets: [{ type: "icon", uri: "https://card.example/a.png", name: "card-asset", ext: "png" }],
    }),
    [...LISTED, "Foxy card", "Card: to the group", "Karte: Notizen", "https://card.example/1", "card-asset"],
  ],
  ["a character of Agnai", "characters", agnaiCharacter(), [
    ...["Fox", "For evenings.", "A pier.", "Be a fox.", "Evening.", "Be sly.", "sea", "sly", "calm"],
  ]],
  [
    "World Info of SillyTavern",
    "lorebooks",
    {
      name: "Book lore",
      entries: {
        0: {
          uid: 0,
          key: ["book-mill", "/book-w.*l/i"],
          keysecondary: ["book-sea"],
          comment: "Book mill",
          content: "Book: an old mill",
        },
        7: {
          uid: 7,
          key: [],
          constant: true,
          comment: "Book always",
          content: "Book: always",
          group: "book-group",
          automationId: "book-own",
        },
      },
      extensions: { other: "Book: of another program" },
    },
    [
      ...["Book lore", "book-mill", "/book-w.*l/i", "book-sea", "Book mill", "Book: an old mill", "Book always"],
      ...["Book: always", "book-group", "book-own", "Book: of another program"],
    ],
  ],
  [
    "a lorebook of NovelAI",
    "lorebooks",
    {
      lorebookVersion: 6,
      entries: [
        {
          text: "Novel: an old mill",
          displayName: "Novel mill",
          keys: ["novel-mill", "novel-wheel"],
          enabled: true,
          id: "a",
          contextConfig: { budgetPriority: 400, prefix: "novel-prefix" },
        },
        { text: "Novel: always", displayName: "Novel always", keys: [], forceActivation: true, enabled: true, id: "b" },
      ],
      settings: { orderByKeyLocations: false },
      categories: [{ id: "c", name: "Novel category", enabled: true }],
    },
    [
      ...["Novel: an old mill", "Novel mill", "novel-mill", "novel-wheel", "novel-prefix", "Novel: always"],
      ...["Novel always", "Novel category"],
    ],
  ],
  ["a memory book of Agnai", "lorebooks", agnaiBook(), [
    ...["Harbour", "By the sea", "Pier", "It is lit.", "pier", "quay", "Off", "Never.", "off"],
  ]],
  [
    "a lorebook of RisuAI",
    "lorebooks",
    {
      type: "risu",
      ver: 1,
      data: [{
        key: "risu-mill, risu-wheel",
        secondkey: "risu-sea",
        comment: "Risu mill",
        content: "Risu: an old mill",
        insertorder: 100,
        mode: "normal",
        selective: true,
      }],
    },
    ["risu-mill", "risu-wheel", "risu-sea", "Risu mill", "Risu: an old mill"],
  ],
  [
    "a preset of SillyTavern",
    "presets",
    {
      temperature: 0.77,
      prompts: [
        { identifier: "main", name: "Preset main", role: "system", content: "Preset: be brief.", system_prompt: true },
        {
          identifier: "preset-own",
          name: "Preset note",
          role: "user",
          content: "Preset: a note",
          injection_position: 1,
          injection_depth: 3,
        },
        { identifier: "chatHistory", name: "Chat History", marker: true },
      ],
      prompt_order: [{
        character_id: 100001,
        order: [{ identifier: "main", enabled: true }, { identifier: "preset-own", enabled: false }],
      }],
      wi_format: "Preset: {0}",
      impersonation_prompt: "Preset: impersonate",
      continue_nudge_prompt: "Preset: go on",
      assistant_prefill: "Preset: prefill",
      extensions: {
        regex_scripts: [{ scriptName: "Preset bold", findRegex: "/preset/g", replaceString: "<b>preset</b>" }],
      },
      preset_unknown: "Preset: an unknown field",
    },
    [
      ...["Preset main", "Preset: be brief.", "preset-own", "Preset note", "Preset: a note", "Preset: {0}"],
      ...["Preset: impersonate", "Preset: go on", "Preset: prefill", "Preset bold", "/preset/g", "<b>preset</b>"],
      ...["Preset: an unknown field", "0.77"],
    ],
  ],
])("the fields of %s are found after the import, and after an export of all", async (_, kind, content, fields) => {
  await using app = await openTestApp();
  const form = new FormData();
  form.set("file", new File([JSON.stringify(content)], "Sample.json", { type: "application/json" }));
  const answer = await app.post(`/api/${kind}/import`, form);
  expect(answer.status, await answer.clone().text()).toBe(201);
  const measure = async (from: TestApp) => {
    const all = await readAll(from);
    return fields.filter(isIn(all)).length / fields.length;
  };
  expect(await measure(app)).toBeGreaterThanOrEqual(FLOOR);
  const zip = await (await app.get("/api/export")).bytes();
  await using other = await openTestApp();
  await importReport(other, "kind=parlor", zip);
  expect(await measure(other)).toBeGreaterThanOrEqual(FLOOR);
});

test("the measure sees what is missing", () => {
  const found = isIn(JSON.stringify({ text: 'an old "mill"' }));
  expect(['an old "mill"', "a new mill"].map(found)).toEqual([true, false]);
});
