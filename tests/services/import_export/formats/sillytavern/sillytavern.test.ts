import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parseCard } from "../../../../../services/characters/card/card.ts";
import { embedCard, parsePngCard } from "../../../../../services/characters/png/png_card.ts";
import { readImport } from "../../../../../services/import_export/import_reading.ts";
import { Sandbox } from "../../../../../services/platform/sandbox/sandbox.ts";
import { picture } from "../../../../helpers/files/pictures.ts";
import { tempFolder } from "../../../../helpers/files/storage_folder.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());

const cardOf = (name: string, more: object = {}) =>
  embedCard(
    picture(),
    parseCard({ spec: "chara_card_v2", spec_version: "2.0", data: { name, extensions: {}, ...more } }),
  );

/** Reads a user folder with these files. */
async function read(files: Record<string, Uint8Array | object>) {
  await using folder = await tempFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder.path, "user", name);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeFile(
      path,
      content instanceof Uint8Array ? content : new TextEncoder().encode(JSON.stringify(content)),
    );
  }
  const request = {
    kind: "sillytavern",
    path: join(folder.path, "user"),
    scratch: join(folder.path, "scratch"),
  } as const;
  const steps = await Array.fromAsync(readImport(sandbox, request));
  const cards = steps.flatMap((step) =>
    step.what === "character" ? [[step.name, parsePngCard(step.file as Uint8Array<ArrayBuffer>).data] as const] : []
  );
  return { steps, cards: Object.fromEntries(cards), codes: steps.flatMap((step) => "code" in step ? [step.code] : []) };
}

test("the author's note of a character becomes its character's note, unless it's off", async () => {
  const chara = [
    { name: "Mia", prompt: "Mia is tired.", useChara: true, depth: 2, role: 1 },
    { name: "Bo", prompt: "Second.", useChara: true },
    { name: "Cy", prompt: "Unused.", useChara: false },
  ];
  const { cards, codes } = await read({
    "settings.json": { extension_settings: { note: { chara } } },
    "characters/Mia.png": cardOf("Mia"),
    "characters/Bo.png": cardOf("Bo", { extensions: { depth_prompt: { prompt: "First.", depth: 7, role: "system" } } }),
    "characters/Cy.png": cardOf("Cy"),
  });
  expect(cards.Mia!.extensions.depth_prompt).toEqual({ prompt: "Mia is tired.", depth: 2, role: "user" });
  expect(cards.Bo!.extensions.depth_prompt).toEqual({ prompt: "First.\nSecond.", depth: 7, role: "system" });
  expect(cards.Cy!.extensions.depth_prompt).toBeUndefined();
  expect(codes).toEqual(["tavern_note_off"]);
});

test("further books of a character belong to it, and the linked book replaces the one in the card", async () => {
  const book = { entries: [{ keys: ["mill"], content: "Stale", extensions: {}, enabled: true, insertion_order: 1 }] };
  const world = { entries: { 0: { uid: 0, key: ["mill"], content: "Fresh" } } };
  const { steps, cards, codes } = await read({
    "settings.json": {
      world_info_settings: {
        world_info: { charLore: [{ name: "Mia", extraBooks: ["Extra"] }, { name: "Gone", extraBooks: ["Other"] }] },
      },
    },
    "worlds/Extra.json": world,
    "worlds/Linked.json": world,
    "worlds/Other.json": world,
    "characters/Mia.png": cardOf("Mia", { character_book: book, extensions: { world: "Linked" } }),
    "characters/Bo.png": cardOf("Bo", { character_book: book, extensions: { world: "Missing" } }),
  });
  const [mia] = steps.filter((step) => step.what === "character" && step.name === "Mia");
  const books = steps.flatMap((step) => step.what === "lorebook" ? [[step.name, step.scope, step.characterIds]] : []);
  expect(books).toEqual([
    ["Extra", "character", [(mia as { id: string }).id]],
    ["Linked", "chat", undefined],
    ["Other", "chat", undefined],
  ]);
  expect([cards.Mia!.character_book, cards.Bo!.character_book?.entries.length]).toEqual([undefined, 1]);
  expect(codes).toEqual(["tavern_book_linked"]);
});

const chatOf = (header: object, ...messages: object[]) =>
  new TextEncoder().encode([header, ...messages].map((line) => JSON.stringify(line)).join("\n"));

test("a branch says which message of its chat it follows, and a chat keeps its newest summary", async () => {
  const [hi, hello, bye] = [
    { mes: "Hi", is_user: true, send_date: 1700000000000 },
    { mes: "Hello", send_date: 1700000001000, extra: { branches: ["Branch #1"], memory: "They met." } },
    { mes: "Bye", is_user: true, send_date: 1700000002000, extra: { memory: " " } },
  ];
  const branchOf = (main: string, ...messages: object[]) =>
    chatOf({ create_date: "2024-1-2", chat_metadata: { main_chat: main } }, ...messages);
  const { steps, codes } = await read({
    "characters/Mia.png": cardOf("Mia"),
    // The edited message is named by its chat, so the branch still follows it.
    "chats/Mia/Branch #1.jsonl": branchOf("Mia", hi!, { ...hello, mes: "Hello!" }, { mes: "Stay", is_user: true }),
    // A checkpoint from elsewhere: the last message that both have.
    "chats/Mia/Checkpoint.jsonl": branchOf("Mia", hi!, { mes: "Who?" }),
    "chats/Mia/Lost.jsonl": branchOf("Gone", hi!),
    "chats/Mia/Mia.jsonl": chatOf({ create_date: "2024-1-1" }, hi!, hello!, bye!),
  });
  const chats = new Map(steps.flatMap((step) => step.what === "conversation" ? [[step.name, step]] : []));
  const { id, head } = chats.get("Mia")!;
  expect(chats.get("Branch #1")!.head.forked_from).toEqual({ conversation_id: id, message_id: `${id}-1` });
  expect(chats.get("Checkpoint")!.head.forked_from).toEqual({ conversation_id: id, message_id: `${id}-0` });
  expect(chats.get("Lost")!.head.forked_from).toBeUndefined();
  expect(codes).toEqual(["tavern_parent_missing"]);
  expect(head).toMatchObject({ summary: { text: "They met.", up_to_message_id: `${id}-1` } });
});

test("the default persona and quick replies become settings, and the other settings are named", async () => {
  const { steps } = await read({
    "settings.json": {
      power_user: { personas: { "ann.png": "Ann" }, default_persona: "ann.png", custom_css: "body {}" },
      extension_settings: { regex: [{ scriptName: "Bold" }, { scriptName: "Trim" }], note: { default: "" } },
      tags: [],
      kai_settings: { temp: 1 },
    },
    "QuickReplies/Bad.json": new TextEncoder().encode("{"),
    "QuickReplies/Mine.json": {
      version: 2,
      name: "Mine",
      qrList: [
        { label: "Look around!", message: "*looks around*" },
        { label: "look  around", message: "*looks again*" },
        { label: "Roll", message: "/roll 1d6 | /echo" },
        { label: "Empty", message: "" },
      ],
    },
    "QuickReplies/Old.json": { name: "Old", quickReplySlots: [{ label: "🦊", mes: "Fox!" }] },
  });
  const ann = steps.find((step) => step.what === "persona")!;
  expect(steps.filter((step) => step.what === "settings")).toMatchObject([{
    settings: {
      default_persona_id: (ann as { id: string }).id,
      prompt_templates: [
        { name: "Look-around", text: "*looks around*" },
        { name: "look-around-2", text: "*looks again*" },
        { name: "reply", text: "Fox!" },
      ],
    },
  }]);
  const notes = steps.flatMap((step) => step.what === "note" ? [[step.code, step.count, step.params]] : []);
  expect(notes).toEqual([
    ["not_json", undefined, undefined],
    ["quick_reply_scripts", 1, { names: "Roll" }],
    ["tavern_regex", 2, { names: "Bold, Trim" }],
    ["tavern_own_settings", 1, { names: "power_user.custom_css" }],
    ["tavern_settings", 1, { names: "kai_settings" }],
  ]);
});

test("the user's World Info settings apply to entries that don't have their own", async () => {
  const entry = (more: object = {}) => ({ uid: 0, key: ["mill"], content: "Old", caseSensitive: null, ...more });
  const world_info_settings = {
    ...{ world_info_match_whole_words: true, world_info_case_sensitive: false, world_info_use_group_scoring: true },
    ...{ world_info_depth: 5, world_info_recursive: false },
  };
  const { steps } = await read({
    "settings.json": { world_info_settings },
    "worlds/Mill.json": { entries: { 0: entry(), 1: entry({ matchWholeWords: false, scanDepth: 0 }) } },
  });
  const [step] = steps.filter(({ what }) => what === "lorebook");
  const { recursive_scanning, entries } = (step as { book: { recursive_scanning?: boolean; entries: object } }).book;
  expect(recursive_scanning).toBe(false);
  expect(Object.values(entries)).toMatchObject([
    { extensions: { match_whole_words: true, case_sensitive: null, use_group_scoring: true, scan_depth: 5 } },
    { extensions: { match_whole_words: false, use_group_scoring: true, scan_depth: 0 } },
  ]);
});

test("a chat's note with its place and interval, its scenario, prompt and variables are imported", async () => {
  const chat = (metadata: object) => {
    const header = { user_name: "Ann", character_name: "Mia", chat_metadata: metadata };
    const lines = [header, { name: "Ann", is_user: true, mes: "Hi" }].map((line) => JSON.stringify(line));
    return new TextEncoder().encode(lines.join("\n"));
  };
  const note = { note_prompt: "It rains.", note_depth: 3, note_role: 1 };
  const { steps } = await read({
    "settings.json": {},
    "characters/Mia.png": cardOf("Mia"),
    "chats/Mia/a.jsonl": chat({
      ...note,
      note_position: 2,
      note_interval: 4,
      variables: { hp: 5, mood: "calm" },
      scenario: "A mill.",
      system_prompt: "Be Mia.",
    }),
    "chats/Mia/b.jsonl": chat({ ...note, note_position: 1, note_interval: 1 }),
  });
  const heads = steps.flatMap((step) => step.what === "conversation" ? [step.head] : []);
  const text = { text: "It rains.", depth: 3, role: "user" };
  const pick = ({ note, scenario, system_prompt, variables }: Record<string, unknown>) => ({
    ...{ note, scenario, system_prompt, variables },
  });
  expect(heads.map(pick)).toEqual([
    {
      ...{ note: { ...text, position: "before_main", interval: 4 }, scenario: "A mill.", system_prompt: "Be Mia." },
      variables: { hp: "5", mood: "calm" },
    },
    { note: text, scenario: undefined, system_prompt: undefined, variables: undefined },
  ]);
});
