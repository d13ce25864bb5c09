import { Buffer } from "node:buffer";
import { encode } from "@msgpack/msgpack";
import { strFromU8, unzipSync } from "fflate";
import { expect, test } from "vitest";
import {
  added,
  got,
  importJob,
  importReport,
  jsonFile,
  NOTHING_ADDED as NOTHING,
  zipped,
} from "../../helpers/app/imported.ts";
import { picture } from "../../helpers/files/pictures.ts";
import {
  RISU_FORMS,
  risuBackup,
  risuChat,
  risuDatabase,
  risuFolder,
  risuLore,
  risuModule,
  risuPersona,
  risuPreset,
  risuSave,
  UNDEFINED,
} from "../../helpers/files/risu_files.ts";
import { DOUBLING } from "../../helpers/files/macro_attacks.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

const EVERYTHING = { ...NOTHING, conversation: 2, character: 2, persona: 2, lorebook: 4, preset: 1, attachment: 0 };

// deno-lint-ignore no-explicit-any -- as they came
const named = (items: any[], name: string) => items.find((item) => (item.name ?? item.title) === name);

test("a local backup is imported: characters, personas, lorebooks, presets, chats and their links", async () => {
  await using app = await openTestApp();
  const report = await importReport(app, "kind=risuai", risuBackup(risuSave(risuDatabase(), "packed")));
  expect(added(report)).toEqual(EVERYTHING);
  expect(report.messages).toBe(6); // with the greeting, which isn't a message there
  const lines = report.lines.map(({ level, source, code }) => `${level} ${source.split("#")[1] ?? ""}: ${code}`);
  expect(lines.toSorted()).toEqual([
    "changed characters/Fox: risu_card_scripts",
    "changed characters/Owl: avatar_missing",
    "changed chats/Watch/Night: risu_chat_images",
    "changed chats/Watch/Night: risu_memory",
    "changed personas/Cai: risu_note",
    "kept characters/Fox: files_in_card",
    "kept characters/Owl: files_in_card",
    "left_out : keys_left_out",
    "left_out characters: risu_trash",
    "left_out chats: empty_chats",
    "left_out modules/Harbour: risu_module_rest",
    "left_out presets: risu_presets",
  ]);

  const characters = await got(app, "/api/characters?view=full");
  const [fox, owl] = [named(characters, "Fox"), named(characters, "Owl")];
  expect([fox.has_avatar, owl.has_avatar]).toEqual([true, false]);
  expect(fox.card.data).toMatchObject({
    description: "A fox.",
    first_mes: "Hi.",
    post_history_instructions: "Stay short.",
    creator: "Bo",
    creation_date: 1_700_000_000,
    tags: ["sea"],
    character_book: { scan_depth: 5, token_budget: 400, entries: [{ keys: ["pier", "quay"], content: "It is lit." }] },
    extensions: { other: { kept: 1 }, depth_prompt: { depth: 3 }, risuai: { customScripts: [{ out: "b" }] } },
  });
  const personas = await got(app, "/api/personas");
  expect(named(personas, "Ann")).toMatchObject({ description: "A sailor.", has_avatar: true });
  const cai = named(personas, "Cai");

  const books = await got(app, "/api/lorebooks");
  expect(named(books, "Harbour")).toMatchObject({ scope: "global" });
  expect(named(books, "Foxes")).toMatchObject({ scope: "character", character_ids: [fox.id] });
  const foxes = await got(app, `/api/lorebooks/${named(books, "Foxes").id}`);
  expect(foxes.book.entries[0]).toMatchObject({ keys: ["/den(s)?/i"], use_regex: true });
  expect((await got(app, `/api/presets/${named(await got(app, "/api/presets"), "Calm").id}`)).sampler).toEqual({
    temperature: 0.8,
    max_tokens: 300,
  });

  const { items } = await got(app, "/api/conversations?view=summary");
  const chat = await got(app, `/api/conversations/${named(items, "Evening").id}`);
  expect(chat).toMatchObject({
    character_id: fox.id,
    persona_id: cai.id,
    folder: "Sea",
    lorebook_ids: [named(books, "Evening, lore").id],
    note: { text: "It rains.", depth: 0, role: "system" },
    created_at: "2023-11-14T22:13:20.000Z",
  });
  expect(chat.messages.map(({ role, content }: Record<string, string>) => [role, content])).toEqual([
    ["assistant", "Evening, Cai. I am Fox."],
    ["user", "Grüße, 灯台。"],
    ["assistant", "Ahoy!"],
    ["user", "Nobody reads this."],
  ]);
  const [greeting, said, answer, unseen] = chat.messages;
  expect(greeting).toMatchObject({ variant_count: 2, active_variant: 1, character_id: fox.id });
  expect(said).toMatchObject({ persona_id: cai.id, created_at: "2023-11-14T22:13:20.000Z" });
  expect(answer).toMatchObject({ reasoning: "Dusk.", model: "m-1", character_id: fox.id });
  expect(unseen.hidden).toBe(true);

  const group = await got(app, `/api/conversations/${named(items, "Night").id}`);
  expect(group.participants).toEqual([
    { character_id: fox.id, talkativeness: 0.5 },
    { character_id: owl.id, talkativeness: 1, muted: true },
  ]);
  expect(group.lorebook_ids).toEqual([named(books, "Watch").id]);
  // deno-lint-ignore no-explicit-any -- messages as they came
  expect(group.messages.map(({ character_id, hidden }: any) => [character_id, hidden])).toEqual([
    [owl.id, true],
    [fox.id, undefined],
  ]);

  const again = await importReport(app, "kind=risuai", risuBackup(risuSave(risuDatabase(), "blocks")));
  expect(added(again)).toEqual(NOTHING);
  const present = Object.entries(again.counts).map(([thing, { present, updated }]) => [thing, present - updated]);
  expect(Object.fromEntries(present)).toEqual(EVERYTHING);
});

test.each(RISU_FORMS)("a database in the format %s has the same content", async (form) => {
  await using app = await openTestApp();
  const report = await importReport(
    app,
    "kind=risuai&name=database.bin",
    new Uint8Array(risuSave(risuDatabase(), form)),
  );
  expect(added(report)).toEqual(EVERYTHING);
});

test("RisuAI's encoding of undefined becomes nothing, and nothing else is lost", async () => {
  await using app = await openTestApp();
  const [fox] = risuDatabase().characters as object[];
  const database = encode({ characters: [{ ...fox, scenario: UNDEFINED, trashTime: UNDEFINED }] });
  await importReport(app, "kind=risuai&name=database.risudat", database);
  const characters = await got(app, "/api/characters?view=full");
  expect(named(characters, "Fox").card.data.scenario).toBe("");
});

test("an absurdly nested character doesn't affect others", async () => {
  await using app = await openTestApp();
  const database = risuDatabase();
  const [fox] = database.characters as Record<string, unknown>[];
  const extentions = { deep: "DEEP-MARK" };
  (database.characters as unknown[]).unshift({
    ...fox,
    name: "Deep",
    chaId: "deep",
    chats: [],
    modules: [],
    extentions,
  });
  // No encoder writes this: a list in a list, 200,000 levels deep.
  const shallow = Buffer.from(risuSave(database, "bare"));
  const at = shallow.indexOf("DEEP-MARK") - 1;
  const deep = [Buffer.alloc(200_000, 0x91), Buffer.of(1)];
  const bytes = new Uint8Array(Buffer.concat([shallow.subarray(0, at), ...deep, shallow.subarray(at + 10)]));
  const report = await importReport(app, "kind=risuai&name=database.bin", bytes);
  expect(added(report)).toEqual(EVERYTHING);
  expect(report.lines).toContainEqual(
    expect.objectContaining({ level: "refused", source: expect.stringMatching(/Deep$/) }),
  );
});

test("the data folder of its server is imported, with chats in cold storage", async () => {
  await using app = await openTestApp();
  const report = await importReport(app, "kind=risuai", zipped(risuFolder()));
  expect(added(report)).toEqual(EVERYTHING);
  const { items } = await got(app, "/api/conversations?view=summary");
  expect(named(items, "Evening").message_count).toBe(4);
});

test("a chat without its cold storage is named, and the rest is imported", async () => {
  await using app = await openTestApp();
  const files = risuFolder();
  delete files[Buffer.from("coldstorage/cold-1").toString("hex")];
  const report = await importReport(app, "kind=risuai", zipped(files));
  expect(added(report)).toEqual({ ...EVERYTHING, conversation: 1, lorebook: 3 });
  expect(report.lines).toContainEqual({
    level: "refused",
    source: expect.stringContaining("Evening"),
    code: "risu_cold",
    reason: expect.stringContaining("cold storage"),
  });
});

test("single files: a character, its chats, a persona, a lorebook and a preset find each other", async () => {
  await using app = await openTestApp();
  const card = {
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: { name: "Fox, Jr.", first_mes: "Hi, {{user}}.", creation_date: 7, assets: [] },
  };
  const chats = {
    type: "risuAllChats",
    ver: 2,
    data: [risuChat({ folderId: "f", fmIndex: -1 })],
    folders: [{ id: "f", name: "Sea" }],
  };
  const report = await importReport(
    app,
    "kind=risuai",
    zipped({
      "Fox Jr_export.json": jsonFile(card),
      "Fox Jr_all_chats_2025-12-31T06-03-20-123Z.json": jsonFile(chats),
      "Owl_2025-12-31T060320123Z_chat.json": jsonFile({
        type: "risuChat",
        ver: 2,
        data: risuChat({ id: "o" }),
        folders: [],
      }),
      "Cai_export.png": risuPersona({ name: "Cai", personaPrompt: "A cook." }),
      "lorebook_export.json": jsonFile({ type: "risu", ver: 1, data: [risuLore("pier", "It is lit.")] }),
      "Calm_preset.json": jsonFile({ name: "Calm", temperature: 80, mainPrompt: "Write.", maxContext: 4000 }),
      "Pack.risum": new Uint8Array(9),
    }),
  );
  expect(added(report)).toEqual({ ...NOTHING, conversation: 2, character: 1, persona: 1, lorebook: 1, preset: 1 });
  expect(report.lines.map(({ level, source }) => [level, source])).toEqual([
    ["refused", "Pack.risum"],
    ["left_out", "Calm_preset.json"],
    ["changed", "Owl_2025-12-31T060320123Z_chat.json"],
  ]);
  const [fox] = await got(app, "/api/characters");
  const chats2 = await got(app, "/api/conversations");
  const linked = chats2.find(({ folder }: { folder?: string }) => folder === "Sea");
  expect(linked.messages[0]).toMatchObject({ character_id: fox.id, role: "assistant" });
  expect(linked.participants).toEqual([{ character_id: fox.id }]);
  expect(named(await got(app, "/api/personas"), "Cai")).toMatchObject({ description: "A cook.", has_avatar: true });
});

test("a CHARX is imported with its image, alone and among others", async () => {
  await using app = await openTestApp();
  const icon = { type: "icon", name: "main", uri: "embeded://assets/icon/image/main.png", ext: "png" };
  const charx = (name: string) =>
    zipped({
      "assets/icon/image/main.png": picture(3),
      "assets/other/image/x.png": picture(4),
      "x_meta/main.json": jsonFile({ type: "PNG" }),
      "module.risum": new Uint8Array(9),
      "card.json": jsonFile({ spec: "chara_card_v3", spec_version: "3.0", data: { name, assets: [icon] } }),
    });
  const alone = await importReport(app, "kind=risuai&name=Fox.charx", charx("Fox"));
  expect(alone.lines).toMatchObject([
    { level: "kept", source: "card.json", code: "files_in_card", count: 1 },
  ]);
  const [{ id }] = await got(app, "/api/characters?q=Fox");
  const files = unzipSync(await (await app.get(`/api/characters/${id}/export?format=charx`)).bytes());
  expect([files["assets/other/image/x.png"], files["module.risum"]]).toEqual([picture(4), new Uint8Array(9)]);
  await importReport(app, "kind=risuai", zipped({ "Fox.charx": charx("Fox"), "Owl.charx": charx("Owl") }));
  const characters = (await got(app, "/api/characters?view=full")).slice(0, 2); // before Pim
  // deno-lint-ignore no-explicit-any -- characters as they came
  expect(characters.map(({ name, has_avatar }: any) => [name, has_avatar])).toEqual([["Fox", true], ["Owl", true]]);
  expect(characters[0].card.data.assets).toEqual([icon]);
});

test("pictures and sounds beside the one that shows a character are in its CHARX, called as in RisuAI's own", async () => {
  await using app = await openTestApp();
  const database = risuDatabase();
  const [fox] = database.characters as Record<string, unknown>[];
  const key = `assets/${"10".repeat(32)}.png`;
  fox!.additionalAssets = [["theme ✿", key, "png"], ["gone", "assets/gone.mp3", "mp3"]];
  fox!.ccAssets = [{ type: "background", uri: key, name: "theme ✿", ext: "png" }];
  const report = await importReport(app, "kind=risuai", risuBackup(risuSave(database, "packed")));
  const ofFox = report.lines.filter(({ source }) => source.endsWith("#characters/Fox"));
  expect(ofFox.map(({ level, reason, count }) => [level, count ?? reason])).toEqual([
    ["changed", "its scripts stay in the card for RisuAI and have no effect in Parlor"],
    ["changed", "missing images and sounds: 1"],
    ["kept", 3],
  ]);
  const [{ id }] = await got(app, "/api/characters?q=Fox");
  const files = unzipSync(await (await app.get(`/api/characters/${id}/export?format=charx`)).bytes());
  const { assets } = JSON.parse(strFromU8(files["card.json"]!)).data;
  const [icon, ...others] = assets as { type: string; uri: string; name: string; ext: string }[];
  expect(icon).toMatchObject({ type: "icon", name: "main" });
  expect(others.map(({ type, name, ext }) => [type, name, ext])).toEqual([
    ["background", "theme ✿", "png"],
    ["x-risu-asset", "theme ✿", "png"],
    ["emotion", "joy", "png"],
  ]);
  for (const { uri } of others) expect(files[uri.replace("embeded://", "")]).toEqual(picture(2));
});

test("the lorebook of a module and the numbers of a preset are imported from RisuAI's packed files", async () => {
  await using app = await openTestApp();
  const preset = { name: "Calm", temperature: 80, maxResponse: 300, mainPrompt: "Write." };
  const lore = [risuLore("/den(s)?/i", "Below.", { useRegex: true })];
  const report = await importReport(
    app,
    "kind=risuai",
    zipped({
      "Foxes.risum": risuModule({ name: "Foxes", id: "m", description: "", lorebook: lore, regex: [{}], assets: [] }),
      "Scripts.risum": risuModule({ name: "Scripts", id: "s", description: "", regex: [{}] }),
      "Calm_preset.risup": await risuPreset(preset),
      "Older.risupreset": await risuPreset({ ...preset, name: "Older" }, true),
      "Cut.risum": risuModule({ name: "Foxes", lorebook: lore }).slice(0, 60),
      "Cut.risup": (await risuPreset(preset)).slice(0, -9),
    }),
  );
  expect(added(report)).toEqual({ ...NOTHING, lorebook: 1, preset: 2 });
  expect(report.lines.map(({ level, source }) => `${level} ${source}`).toSorted()).toEqual([
    ...["changed Foxes.risum", "left_out Calm_preset.risup", "left_out Older.risupreset", "left_out Scripts.risum"],
    ...["refused Cut.risum", "refused Cut.risup"],
  ]);
  const [book] = await got(app, "/api/lorebooks");
  expect((await got(app, `/api/lorebooks/${book.id}`)).book.entries[0]).toMatchObject({ keys: ["/den(s)?/i"] });
  const calm = named(await got(app, "/api/presets"), "Calm");
  expect((await got(app, `/api/presets/${calm.id}`)).sampler).toEqual({ temperature: 0.8, max_tokens: 300 });
});

test.each([
  ["a backup that is cut off before its database", risuBackup(risuSave(risuDatabase(), "packed")).slice(0, -5)],
  ["a database that is cut off", new Uint8Array(risuSave(risuDatabase(), "blocks").slice(0, -5))],
  ["a database of nothing", new TextEncoder().encode("\0RISUSAVE\0\x08nothing")],
])("%s: the job fails and says so", async (_, bytes) => {
  await using app = await openTestApp();
  const job = await importJob(app, "kind=risuai&name=database.bin", bytes);
  expect(job).toMatchObject({ state: "failed", error: { code: "unprocessable" } });
});

test("a greeting whose macros exceed the budget is imported as written, a blank one not at all", {
  tags: ["F01"],
}, async () => {
  await using app = await openTestApp();
  const card = {
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: { name: "Fox", first_mes: DOUBLING, alternate_greetings: [`${" ".repeat(500_000)}\n`] },
  };
  const chats = { type: "risuAllChats", ver: 2, data: [risuChat({ fmIndex: -1 })], folders: [] };
  const files = {
    "Fox_export.json": jsonFile(card),
    "Fox_all_chats_2025-12-31T06-03-20-123Z.json": jsonFile(chats),
  };
  expect(added(await importReport(app, "kind=risuai", zipped(files))).conversation).toBe(1);
  const [{ id }] = await got(app, "/api/conversations");
  const { messages } = await got(app, `/api/conversations/${id}`);
  expect(messages[0]).toMatchObject({ role: "assistant", content: DOUBLING, variant_count: 1 });
});
