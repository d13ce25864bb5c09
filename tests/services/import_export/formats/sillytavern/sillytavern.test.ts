import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parseCard } from "../../../../../services/characters/card/card.ts";
import { embedCard, parsePngCard } from "../../../../../services/characters/png/png_card.ts";
import { readImport } from "../../../../../services/import_export/import_reading.ts";
import { toQuickReplySets } from "../../../../../services/import_export/formats/sillytavern/quick_replies.ts";
import { parseTemplates, type PromptTemplate } from "../../../../../services/settings/prompt_templates.ts";
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

test("the author's note of a character is in its card with its place, unless it's off", async () => {
  const chara = [
    { name: "Mia", prompt: "Mia is tired.", useChara: true, position: 2 },
    { name: "Bo", prompt: "Second.", useChara: true },
    { name: "Cy", prompt: "Unused.", useChara: false },
  ];
  const { cards, codes } = await read({
    "settings.json": { extension_settings: { note: { chara } } },
    "characters/Mia.png": cardOf("Mia"),
    "characters/Bo.png": cardOf("Bo", { extensions: { depth_prompt: { prompt: "First." }, parlor: { folder: "B" } } }),
    "characters/Cy.png": cardOf("Cy"),
  });
  expect(cards.Mia!.extensions.parlor).toEqual({ note: { text: "Mia is tired.", place: "after" } });
  expect(cards.Bo!.extensions).toMatchObject({
    depth_prompt: { prompt: "First." },
    parlor: { folder: "B", note: { text: "Second.", place: "replace" } },
  });
  expect(cards.Cy!.extensions.parlor).toBeUndefined();
  expect(codes).toEqual(["tavern_note_off"]);
});

test("a persona that is connected to characters is for new chats with them; the first one of two is", async () => {
  const connected = (...files: string[]) => ({
    description: "",
    connections: files.map((id) => ({ type: "character", id })),
  });
  const { steps } = await read({
    "settings.json": {
      power_user: {
        personas: { "a.png": "Ann", "b.png": "Bea" },
        persona_descriptions: { "a.png": connected("Mia.png", "Gone.png"), "b.png": connected("Mia.png", "Bo.png") },
      },
    },
    "characters/Mia.png": cardOf("Mia"),
    "characters/Bo.png": cardOf("Bo"),
  });
  const ids = new Map(steps.flatMap((step) => step.what === "character" ? [[step.name, step.id] as const] : []));
  expect(steps.flatMap((step) => step.what === "persona" ? [[step.name, step.characterIds]] : [])).toEqual([
    ["Ann", [ids.get("Mia")]],
    ["Bea", [ids.get("Bo")]],
  ]);
});

test("a set of quick replies is the same after an import and an export; other actions get a set of their own", async () => {
  const reply = (id: number, label: string, message: string, more: object = {}) => ({
    ...{ id, icon: "fa-star", showLabel: true, label, title: "Tip", message, preventAutoExecute: false },
    ...{ contextList: [{ set: "Mine", isChained: false }], isHidden: false, executeOnStartup: false },
    ...{ executeOnUser: true, executeOnAi: false, executeOnChatChange: false, executeOnGroupMemberDraft: false },
    ...{ executeOnNewChat: false, executeBeforeGeneration: false, automationId: "x", ...more },
  });
  const set = {
    ...{ version: 2, name: "Mine", disableSend: false, placeBeforeInput: true, injectInput: true },
    ...{ color: "rgba(1, 2, 3, 1)", onlyBorderColor: true, idIndex: 9, sorting: "own" },
    qrList: [
      reply(4, "Wave", "*waves*"),
      reply(9, "L".repeat(70), "Long"),
      reply(5, "Hid", "Hidden", { isHidden: true }),
    ],
  };
  const setList = [{ set: "Mine", isVisible: true }];
  const { steps } = await read({
    "settings.json": { extension_settings: { quickReplyV2: { isEnabled: true, config: { setList } } } },
    "QuickReplies/Mine.json": set,
  });
  const settings = steps.flatMap((step) => step.what === "settings" ? [step.settings] : []);
  const templates = parseTemplates(settings[0]!.prompt_templates)!;
  expect(toQuickReplySets(templates)).toEqual([set]);
  const [wave, ...others] = templates;
  const [mine, sent] = toQuickReplySets([
    { ...wave!, text: "*nods*", button: { label: "Nod", action: "send_before" } },
    ...others,
    { name: "plain", text: "Plain." },
    { name: "quick", text: "Quick.", button: { label: "Quick", action: "send" } },
  ]);
  expect(mine!.qrList[0]).toEqual(reply(4, "Nod", "*nods*"));
  expect(sent).toMatchObject({
    ...{ version: 2, name: "Parlor", disableSend: false, injectInput: false },
    qrList: [
      { id: 1, label: "plain", message: "Plain.", isHidden: true },
      { id: 2, label: "Quick", message: "Quick.", isHidden: false },
    ],
  });
});

test("a preset has the list of logit bias that it names", async () => {
  const bias_presets = { Mine: [{ id: "1", text: " wolf", value: -500 }, { text: "", value: 1 }], Other: [] };
  const { steps } = await read({
    "settings.json": { oai_settings: { bias_presets } },
    "OpenAI Settings/A.json": { temperature: 1, bias_preset_selected: "Mine" },
    "OpenAI Settings/B.json": { temperature: 1, bias_preset_selected: "Other" },
  });
  expect(steps.flatMap((step) => step.what === "preset" ? [step.json] : [])).toMatchObject([
    { rest: { logit_bias: [{ text: " wolf", value: -100 }] } },
    { rest: { logit_bias: [] } },
  ]);
});

test.each([
  [{ prefix: "<think>", suffix: "</think>", auto_parse: true, add_to_prompts: false }, false],
  [{ prefix: "<think>", suffix: "</think>", auto_parse: true, add_to_prompts: true }, true],
  [{ prefix: "(thinks)", suffix: "(says)", auto_parse: true }, true],
  [{ prefix: "(thinks)", suffix: "(says)", auto_parse: false }, false],
])("the report names reasoning settings that Parlor doesn't follow: %j", async (reasoning, isNamed) => {
  const { steps } = await read({ "settings.json": { power_user: { reasoning } } });
  expect(JSON.stringify(steps).includes("power_user.reasoning")).toBe(isNamed);
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

const BOLD = { id: "b1", scriptName: "Bold", findRegex: "/\\*/g", replaceString: "**", placement: [2] };

test("the default persona, quick replies and regex scripts are read, and the other settings are named", async () => {
  const { steps } = await read({
    "settings.json": {
      power_user: { personas: { "ann.png": "Ann" }, default_persona: "ann.png", custom_css: "body {}" },
      extension_settings: { regex: [BOLD, { scriptName: "Trim", findRegex: "a" }], note: { default: "" } },
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
  expect(steps.filter((step) => step.what === "regex_script")).toMatchObject([
    { name: "Bold", source: "settings.json", json: BOLD },
    { name: "Trim", json: { findRegex: "a" } },
  ]);
  const notes = steps.flatMap((step) => step.what === "note" ? [[step.code, step.count, step.params]] : []);
  expect(notes).toEqual([
    ["not_json", undefined, undefined],
    ["quick_reply_scripts", 1, { names: "Roll" }],
    ["tavern_own_settings", 1, { names: "power_user.custom_css" }],
    ["tavern_settings", 1, { names: "kai_settings" }],
  ]);
});

test("the place of a persona's description is imported; a chat without a persona has that of its character", async () => {
  const descriptions = {
    "a.png": { description: "A", position: 4, depth: 6, role: 2 },
    "b.png": { description: "B", position: 3, connections: [{ type: "character", id: "Mia.png" }] },
    "c.png": { description: "C", position: 0 },
    "d.png": { description: "D", position: 9, depth: "x" },
  };
  const personas = Object.fromEntries(Object.keys(descriptions).map((file) => [file, file[0]]));
  const lines = (metadata: object) => {
    const header = { user_name: "Ann", character_name: "Mia", chat_metadata: metadata };
    const all = [header, { name: "Ann", is_user: true, mes: "Hi" }].map((line) => JSON.stringify(line));
    return new TextEncoder().encode(all.join("\n"));
  };
  const { steps } = await read({
    "settings.json": { power_user: { personas, persona_descriptions: descriptions } },
    "characters/Mia.png": cardOf("Mia"),
    "chats/Mia/a.jsonl": lines({}),
    "chats/Mia/b.jsonl": lines({ persona: "c.png" }),
  });
  const found = steps.flatMap((step) => step.what === "persona" ? [step] : []);
  expect(found.map(({ name, placement }) => [name, placement])).toEqual([
    ["a", { position: "at_depth", depth: 6, role: "assistant" }],
    ["b", { position: "note_bottom", depth: undefined, role: "system" }],
    ["c", undefined],
    ["d", { position: "none", depth: "x", role: "system" }],
  ]);
  const ids = Object.fromEntries(found.map(({ name, id }) => [name, id]));
  const chats = steps.flatMap((step) => step.what === "conversation" ? [[step.name, step.head.persona_id]] : []);
  expect(Object.fromEntries(chats)).toEqual({ a: ids.b, b: ids.c });
});

test("quick replies of sets that are shown get buttons: in all chats, or with a character or chat", async () => {
  const set = (name: string, label: string, more: object = {}) => ({
    ...{ version: 2, name, disableSend: false, injectInput: false, placeBeforeInput: false, ...more },
    qrList: [{ label, message: `*${label}*` }],
  });
  const header = { user_name: "Ann", chat_metadata: { quickReply: { setList: [{ set: "Chat", isVisible: true }] } } };
  const lines = [header, { name: "Ann", is_user: true, mes: "Hi" }].map((line) => JSON.stringify(line));
  const qrList = [
    { label: "Wave", title: "A wave", message: "*waves*", executeOnStartup: true, contextList: [{ set: "Mia" }] },
    { label: "Roll", message: "/roll 1d6 | /echo" },
    { label: "Secret", message: "*hides*", isHidden: true },
    { label: "Quiet", message: "/roll 2d6", isHidden: true },
  ];
  const files = (isEnabled: boolean) => ({
    "settings.json": {
      extension_settings: {
        quickReplyV2: {
          isEnabled,
          config: { setList: [{ set: "Main", isVisible: true }, { set: "Off", isVisible: false }, { set: "Gone" }] },
          characterConfigs: { "Mia.png": { setList: [{ set: "Mia" }] }, "Gone.png": { setList: [{ set: "Main" }] } },
        },
      },
    },
    "characters/Mia.png": cardOf("Mia"),
    "chats/Mia/a.jsonl": new TextEncoder().encode(lines.join("\n")),
    "QuickReplies/Chat.json": set("Chat", "Chat", { injectInput: true, placeBeforeInput: true }),
    "QuickReplies/Main.json": { ...set("Main", ""), disableSend: true, qrList },
    "QuickReplies/Mia.json": set("Mia", "Mia", { injectInput: true }),
    "QuickReplies/Off.json": set("Off", "Off"),
    "QuickReplies/Old.json": { name: "Old", quickReplySlots: [{ label: "Old", mes: "Old" }] },
  });
  const { steps } = await read(files(true));
  const getId = (what: string) => (steps.find((step) => step.what === what) as { id: string }).id;
  const [settings] = steps.filter((step) => step.what === "settings");
  expect(settings).toMatchObject({ settings: { prompt_templates: expect.any(Array) } });
  const { prompt_templates } = (settings as { settings: { prompt_templates: PromptTemplate[] } }).settings;
  expect(prompt_templates.map(({ quick_reply: _, ...template }) => template)).toEqual([
    { name: "Wave", text: "*waves*", button: { label: "Wave", action: "insert_after" } },
    { name: "Roll", text: "/roll 1d6 | /echo", button: { label: "Roll", action: "insert_after" } },
    { name: "Secret", text: "*hides*" },
    {
      ...{ name: "Chat", text: "*Chat*" },
      button: { label: "Chat", action: "send_before", conversation_ids: [getId("conversation")] },
    },
    { name: "Mia", text: "*Mia*", button: { label: "Mia", action: "send_after", character_ids: [getId("character")] } },
    { name: "Off", text: "*Off*" },
    { name: "Old", text: "Old" },
  ]);
  const notes = steps.flatMap((step) => step.what === "note" ? [[step.code, step.count, step.params?.names]] : []);
  expect(notes).toEqual([
    ["quick_reply_scripts", 1, "Quiet"],
    ["quick_reply_scripts_shown", 1, "Roll"],
    ["quick_reply_menus", 1, "Wave"],
    ["quick_reply_automatic", 1, "Wave"],
  ]);

  const off = await read(files(false));
  const [without] = off.steps.filter((step) => step.what === "settings");
  expect(JSON.stringify(without)).toContain("*waves*");
  expect(JSON.stringify(without)).not.toContain("button");
});

test("the user's World Info settings apply to entries that don't have their own", async () => {
  const entry = (more: object = {}) => ({ uid: 0, key: ["mill"], content: "Old", caseSensitive: null, ...more });
  const world_info_settings = {
    ...{ world_info_match_whole_words: true, world_info_case_sensitive: false, world_info_use_group_scoring: true },
    ...{ world_info_depth: 5, world_info_recursive: false, world_info_budget: 40, world_info_budget_cap: 900 },
    ...{ world_info_min_activations: 3, world_info_min_activations_depth_max: 0, world_info_max_recursion_steps: 1 },
    ...{ world_info_include_names: false, world_info_character_strategy: 2 },
  };
  const { steps } = await read({
    "settings.json": { world_info_settings },
    "worlds/Mill.json": { entries: { 0: entry(), 1: entry({ matchWholeWords: false, scanDepth: 0 }) } },
  });
  const [step] = steps.filter(({ what }) => what === "lorebook");
  const { entries, ...book } = (step as { book: { recursive_scanning?: boolean; entries: object } }).book;
  expect(book).toEqual({ recursive_scanning: false, scan_depth: 5 });
  expect(steps.flatMap((step) => step.what === "settings" ? [step.settings] : [])).toEqual([{
    ...{ lore_budget_percent: 40, lore_budget_tokens: 900, lore_min_activations: 3, lore_max_recursion: 0 },
    ...{ lore_order: "global_first", lore_scans_names: false },
  }]);
  expect(Object.values(entries)).toMatchObject([
    { extensions: { match_whole_words: true, case_sensitive: null, use_group_scoring: true } },
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
