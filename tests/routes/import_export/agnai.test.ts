import { expect, test } from "vitest";
import { formatDescription } from "../../../services/characters/card/foreign_cards.ts";
import { agnaiBook, agnaiCharacter, agnaiExport, agnaiFolder } from "../../helpers/files/agnai_files.ts";
import { sillyTavernCard, sillyTavernPng } from "../../helpers/files/cards.ts";
import {
  added,
  got,
  importJob,
  importReport,
  jsonFile,
  NOTHING_ADDED as NOTHING,
  zipped,
} from "../../helpers/app/imported.ts";
import { lines } from "../../helpers/files/tavern_folder.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

// deno-lint-ignore no-explicit-any -- as they came
const named = (items: any[], name: string) => items.find((item) => item.name === name);

test("the data folder of a server is imported with a chat's branches, texts, guests and links", async () => {
  await using app = await openTestApp();
  const report = await importReport(app, "kind=agnai", zipped(agnaiFolder()));
  expect(added(report)).toEqual({ ...NOTHING, conversation: 2, character: 2, persona: 1, lorebook: 1, preset: 1 });
  expect(report.lines.map(({ level, source, code }) => `${level} ${source}: ${code}`).toSorted()).toEqual([
    "left_out db/presets.json: agnai_presets",
    "left_out db/scenario.json: agnai_scenarios",
    "left_out db/user.json: keys_left_out",
  ]);
  const characters = await got(app, "/api/characters?view=full");
  const [fox, owl] = [named(characters, "Fox"), named(characters, "Owl")];
  expect([fox.has_avatar, owl.has_avatar]).toEqual([true, false]);
  const [persona] = await got(app, "/api/personas");
  const [book] = await got(app, "/api/lorebooks");
  expect(persona).toMatchObject({ name: "Ann" });
  const preset = named(await got(app, "/api/presets"), "Calm");
  expect((await got(app, `/api/presets/${preset.id}`)).sampler).toEqual({
    temperature: 0.5,
    top_p: 0.9,
    max_tokens: 300,
  });

  const chats = await got(app, "/api/conversations");
  const chat = chats.find((one: Record<string, unknown>) => one.forked_from === undefined);
  const branch = chats.find((one: Record<string, unknown>) => one.forked_from !== undefined);
  expect(branch.forked_from).toEqual({ conversation_id: chat.id, message_id: chat.messages[1].id });
  expect(branch.messages.slice(0, 3).map(({ content }: { content: string }) => content)).toEqual([
    ...["Hi.", "Grüße.", "First."],
  ]);
  expect(chat).toMatchObject({
    title: "Evening",
    persona_id: persona.id,
    lorebook_ids: [book.id],
    system_prompt: "Rain falls.",
    participants: [{ character_id: fox.id }, { character_id: owl.id }],
    created_at: "2024-01-02T03:04:00.000Z",
  });
  expect(chat.messages.map(({ role, content }: Record<string, string>) => [role, content])).toEqual([
    ["assistant", "Hi."],
    ["user", "Grüße."],
    ["assistant", "Second."],
    ["user", "(Brb.)"],
  ]);
  const [, said, answer, aside] = chat.messages;
  expect(said.persona_id).toBe(persona.id);
  expect(answer).toMatchObject({ character_id: owl.id, variant_count: 4, active_variant: 1 });
  expect(aside.hidden).toBe(true);
  const variants = await got(app, `/api/conversations/${chat.id}/messages/${answer.id}/variants`);
  expect(variants.map(({ content }: { content: string }) => content)).toEqual([
    "First.",
    "Second.",
    "Third.",
    "Fourth.",
  ]);

  const again = await importReport(app, "kind=agnai", zipped(agnaiFolder()));
  expect(added(again)).toEqual(NOTHING);
  expect(again.counts.conversation).toMatchObject({ present: 2, updated: 0 });
});

test("single files are imported, a character with the fields of Agnai's own export", async () => {
  await using app = await openTestApp();
  const files = {
    "Fox.json": jsonFile(agnaiCharacter()),
    "Owl.card.png": sillyTavernPng(sillyTavernCard("Owl")),
    "Pygmalion.json": jsonFile({ char_name: "Bo", char_persona: "A cook.", char_greeting: "Hm." }),
    "book-b1-Harbour.json": jsonFile(agnaiBook()),
    "chat-1f2e.json": jsonFile(agnaiExport()),
    "Tavern.jsonl": lines([{ user_name: "Ann" }, { name: "Fox", mes: "Hm." }]),
    "notes.txt": new Uint8Array(3),
  };
  const report = await importReport(app, "kind=agnai", zipped(files));
  expect(added(report)).toEqual({ ...NOTHING, conversation: 2, character: 3, lorebook: 1 });
  expect(report.lines.map(({ level, source }) => [level, source])).toEqual([
    ["changed", "chat-1f2e.json"],
    ["changed", "chat-1f2e.json"],
    ["left_out", "notes.txt"],
  ]);
  expect(report.lines[1]!.reason).toContain("scenario");
  const fox = named(await got(app, "/api/characters?view=full"), "Fox");
  expect(fox.has_avatar).toBe(true);
  expect(fox.card.data).toMatchObject({
    description: '[character("Fox") {\nspecies("fox")\nmind("sly" + "calm")\n}]',
    first_mes: "Hi, {{user}}.",
    scenario: "A pier.",
    mes_example: "{{char}}: Hm.",
    creator_notes: "For evenings.",
    tags: ["sea"],
    system_prompt: "Be a fox.",
    alternate_greetings: ["Evening."],
    extensions: { depth_prompt: { depth: 3, prompt: "Be sly." }, agnai: { persona: { kind: "wpp" } } },
  });
  const book = await got(app, `/api/lorebooks/${(await got(app, "/api/lorebooks"))[0].id}`);
  expect(book).toMatchObject({ name: "Harbour" });
  expect(book.book.entries).toMatchObject([
    { keys: ["pier", "quay"], content: "It is lit.", priority: 5, insertion_order: 7, enabled: true },
    { enabled: false },
  ]);
  expect(added(await importReport(app, "kind=agnai", zipped(files)))).toEqual(NOTHING);
});

test.each([
  ["wpp", '[character("Fox") {\nmind("sly" + "calm")\nage("3")\n}]'],
  ["sbf", '[ character: "Fox"; mind: "sly", "calm"; age: "3" ]'],
  ["boostyle", "Fox + sly + calm + 3"],
  ["attributes", "Name: Fox\nmind: sly, calm\nage: 3"],
])("a persona of the kind %s is written as in Agnai's format", (kind, text) => {
  expect(formatDescription("Fox", { kind, attributes: { mind: ["sly", "calm"], age: ["3"] } })).toBe(text);
});

test("a persona that is a text becomes that text", () => {
  expect(formatDescription("Fox", { kind: "text", attributes: { text: ["A fox."] } })).toBe("A fox.");
});

test("a folder with a broken list of chats is rejected with the file's name", async () => {
  await using app = await openTestApp();
  const files = { ...agnaiFolder(), "db/chats.json": new TextEncoder().encode("[{") };
  const job = await importJob(app, "kind=agnai", zipped(files));
  expect(job).toMatchObject({ state: "failed", error: { message: expect.stringContaining("db/chats.json") } });
});
