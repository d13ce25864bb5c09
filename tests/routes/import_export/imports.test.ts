import { PRESET_LEDGER } from "../../../services/presets/preset_ledger.ts";
import { crc32, deflateRawSync } from "node:zlib";
import { strFromU8, strToU8, unzipSync } from "fflate";
import { expect, test } from "vitest";
import { writeZip } from "../../../services/storage/zip/zip_writer.ts";
import { chunksOf, sillyTavernReads } from "../../helpers/files/cards.ts";
import { added, got, importJob, importReport, NOTHING_ADDED as NOTHING, zipped } from "../../helpers/app/imported.ts";
import { parseCard } from "../../../services/characters/card/card.ts";
import { embedCard } from "../../../services/characters/png/png_card.ts";
import { picture } from "../../helpers/files/pictures.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { lines, tavernFolder } from "../../helpers/files/tavern_folder.ts";
import { joined } from "../../helpers/app/joined.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

const EVERYTHING = { ...NOTHING, conversation: 2, character: 2, persona: 1, lorebook: 1, preset: 1, attachment: 0 };

test("a zip of a SillyTavern user is imported with swipes, images, notes and links", async () => {
  await using app = await openTestApp();
  const report = await importReport(app, "kind=sillytavern", zipped(tavernFolder()));
  expect(added(report)).toEqual(EVERYTHING);
  expect(report.messages).toBe(6);
  expect(report.lines.filter(({ code }) => code !== "unused_part")).toMatchObject([
    {
      level: "left_out",
      source: "backgrounds",
      reason: expect.stringContaining("imported"),
      code: "backgrounds",
      count: 1,
    },
    { level: "kept", source: "characters/Fox.png", code: "files_in_card", count: 1 },
  ]);

  const list: { id: string; title: string }[] = (await got(app, "/api/conversations?view=summary")).items;
  const chat = await got(app, `/api/conversations/${list.find(({ title }) => title === "Evening")!.id}?variants=1`);
  const characters: { id: string; name: string }[] = await got(app, "/api/characters");
  const fox = characters.find(({ name }) => name === "Fox")!.id;
  const [persona] = await got(app, "/api/personas");
  const book = (await got(app, "/api/lorebooks"))[0];
  expect(persona).toMatchObject({ name: "Ann", description: "A sailor.", has_avatar: true });
  expect(book).toMatchObject({ name: "Harbour", scope: "global", entry_count: 1 });
  expect(chat).toMatchObject({
    character_id: fox,
    persona_id: persona.id,
    lorebook_ids: [book.id],
    note: { text: "It rains.", depth: 2, role: "system" },
  });
  const [first, second, third, fourth] = chat.messages;
  expect(first).toMatchObject({ role: "assistant", content: "Ahoy!", variant_count: 3, active_variant: 1 });
  expect(first.created_at).toBe(new Date(2023, 5, 19, 14, 20).toISOString());
  const variants = await got(app, `/api/conversations/${chat.id}/messages/${first.id}/variants`);
  expect(variants.map(({ content }: { content: string }) => content)).toEqual(["Evening.", "Ahoy!", "Psst!"]);
  expect(variants[0]).toMatchObject({ model: "m-1", reasoning: "Dusk." });
  expect(second).toMatchObject({ role: "user", content: "Grüße, 灯台。", persona_id: persona.id });
  expect(third.content).toEqual([
    { type: "text", text: "Look." },
    { type: "image_url", image_url: { url: expect.stringMatching(/^\/api\/attachments\//) } },
  ]);
  expect((await app.get(third.content[1].image_url.url)).status).toBe(200);
  expect(fourth.hidden).toBe(true);

  const group = await got(app, `/api/conversations/${list.find(({ title }) => title === "Watch")!.id}`);
  const owl = characters.find(({ name }) => name === "Owl")!.id;
  expect(group.participants.map(({ character_id }: { character_id: string }) => character_id)).toEqual([fox, owl]);
  expect(group.messages.map(({ character_id }: { character_id: string }) => character_id)).toEqual([owl, fox]);
});

test("limits of lorebook entries get the names of the cards and tags that SillyTavern names by file and ID", async () => {
  await using app = await openTestApp();
  const characterFilter = { isExclude: false, names: ["default_Fox", "Gone"], tags: ["t1", "t3"] };
  const files = tavernFolder();
  files["characters/default_Fox.png"] = files["characters/Fox.png"]!;
  delete files["characters/Fox.png"];
  files["settings.json"] = lines([{
    tags: [{ id: "t1", name: "Sailor" }, { id: "t2", name: "forest" }, null, { id: 3, name: "x" }],
    tag_map: { "default_Fox.png": ["t1", "t2"], "Owl.png": ["t9"], "Gone.png": ["t1"] },
  }]);
  files["worlds/Harbour.json"] = lines([{
    entries: {
      0: { uid: 0, key: ["pier"], content: "It is lit.", characterFilter },
      1: { uid: 1, key: [], content: "x" },
    },
  }]);
  await importReport(app, "kind=sillytavern", zipped(files));
  const [{ id }] = await got(app, "/api/lorebooks");
  const { book } = await got(app, `/api/lorebooks/${id}`);
  expect(book.entries[0].extensions["parlor/sillytavern"].characterFilter).toEqual({
    isExclude: false,
    names: ["default_Fox", "Gone", "Fox"],
    tags: ["t1", "t3", "Sailor"],
  });
  expect(book.entries[1].extensions["parlor/sillytavern"]?.characterFilter).toBeUndefined();
  const characters: { id: string; name: string; tags: string[] }[] = await got(app, "/api/characters");
  const tagsOf = (name: string) => characters.find((one) => one.name === name)!.tags;
  expect(tagsOf("Fox")).toEqual([...sillyTavernReads(files["characters/Owl.png"]!).data.tags, "Sailor", "forest"]);
  expect(tagsOf("Owl")).toEqual(sillyTavernReads(files["characters/Owl.png"]!).data.tags);
});

test("imports a chat under a fresh id while an earlier import of it is in the trash, and adds it once", async () => {
  await using app = await openTestApp();
  const chats = async (): Promise<{ id: string; title: string }[]> =>
    (await got(app, "/api/conversations?view=summary")).items;
  const importAgain = () => importReport(app, "kind=sillytavern", zipped(tavernFolder()));
  await importAgain();
  const evening = (await chats()).find(({ title }) => title === "Evening")!;
  const before = await got(app, `/api/conversations/${evening.id}`);
  await app.delete(`/api/conversations/${evening.id}`);
  expect(added(await importAgain()).conversation).toBe(1);
  const fresh = (await chats()).filter(({ title }) => title === "Evening");
  expect(fresh).toHaveLength(1);
  expect(fresh[0]!.id).not.toBe(evening.id);
  const { created_at, messages } = await got(app, `/api/conversations/${fresh[0]!.id}`);
  expect({ created_at, messages }).toEqual({ created_at: before.created_at, messages: expect.any(Array) });
  expect(messages).toHaveLength(before.messages.length);
  expect(added(await importAgain()).conversation, "once more").toBe(0);
  expect(await got(app, "/api/trash")).toMatchObject([{ id: `conversation-${evening.id}` }]);
  expect((await app.post(`/api/trash/conversation-${evening.id}/restore`)).status).toBe(204);
  expect(await got(app, `/api/conversations/${evening.id}`)).toEqual(before);
  expect(added(await importAgain()).conversation, "with both").toBe(0);
});

test("expression images are imported with their character and exported in its CHARX, with costumes", async () => {
  await using app = await openTestApp({ config: { builtinAppInstalled: true } });
  const files: Record<string, Uint8Array<ArrayBuffer>> = {
    ...tavernFolder(),
    "characters/Fox/beach/joy.png": picture(5),
    "characters/Fox/ärger ✿.webp": picture(6),
    "characters/Fox/con.png": picture(7),
    "characters/Fox/notes.txt": new Uint8Array(3),
    "characters/Nobody/joy.png": picture(8),
  };
  const trial = await importReport(app, "kind=sillytavern&dry_run=true", zipped(files));
  const report = await importReport(app, "kind=sillytavern", zipped(files));
  expect(trial.lines).toEqual(report.lines);
  const named = report.lines.filter(({ code }) => code !== "unused_part");
  expect(named.filter(({ source }) => source.startsWith("characters"))).toMatchObject([
    { level: "kept", source: "characters/Fox.png", code: "files_in_card", count: 4 },
    { level: "left_out", source: "characters/Fox", code: "expressions_only", count: 1 },
    { level: "left_out", source: "characters/Nobody", code: "expressions_only", count: 1 },
  ]);
  const [fox, owl] = await got(app, "/api/characters?view=full");
  expect([fox.has_assets, owl.has_assets]).toEqual([true, false]);

  const charx = unzipSync(await (await app.get(`/api/characters/${fox.id}/export?format=charx`)).bytes());
  const { data } = JSON.parse(strFromU8(charx["card.json"]!));
  const emotions = data.assets.filter(({ type }: { type: string }) => type === "emotion");
  const pictures = emotions.map((
    { name, uri }: Record<string, string>,
  ) => [name, charx[uri!.replace("embeded://", "")]]);
  const wanted = { "beach/joy": picture(5), con: picture(7), joy: picture(4), "ärger ✿": picture(6) };
  expect(Object.fromEntries(pictures)).toEqual(wanted);
  for (const path of Object.keys(charx)) expect(path).toMatch(/^[A-Za-z0-9_./-]+$/);
  expect(Object.keys(charx)).toContain("assets/emotion/images/_con.png");
  // The card and its image are those of the file.
  const came = sillyTavernReads(files["characters/Fox.png"]!).data;
  expect(fox.card.data).toMatchObject({ description: came.description, extensions: came.extensions });
  const shown = await (await app.get(`/api/characters/${fox.id}/avatar`)).bytes();
  const pixels = (png: Uint8Array) => chunksOf(png).filter(({ type }) => type === "IDAT").map(({ text }) => text);
  expect(pixels(shown)).toEqual(pixels(files["characters/Fox.png"]!));
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/uploads`))).toHaveLength(1); // the trial's
});

test("expression images are found by the character's name, or in the folder that the settings name", async () => {
  await using app = await openTestApp({ config: { builtinAppInstalled: true } });
  const { "characters/Fox.png": card, ...files } = tavernFolder();
  const settings = JSON.parse(strFromU8(files["settings.json"]!));
  settings.extension_settings = {
    expressionOverrides: [{ name: "Owl", path: "Birds/night" }, { name: "Gone", path: "" }],
  };
  const all = {
    ...files,
    "settings.json": strToU8(JSON.stringify(settings)),
    "characters/Reynard.png": card!,
    "characters/Birds/night/joy.png": picture(5),
    "characters/Birds/day/joy.png": picture(6),
  };
  const report = await importReport(app, "kind=sillytavern", zipped(all));
  const lines = report.lines.filter(({ code }) => code !== "unused_part");
  expect(
    lines.filter(({ source }) => source.startsWith("characters/")).toSorted((a, b) => a.source < b.source ? -1 : 1),
  )
    .toMatchObject([
      { level: "left_out", source: "characters/Birds", code: "expressions_only", count: 1 },
      { level: "kept", source: "characters/Owl.png", code: "files_in_card", count: 1 },
      { level: "kept", source: "characters/Reynard.png", code: "files_in_card", count: 1 },
    ]);
  const characters = await got(app, "/api/characters?view=full");
  expect(characters.map(({ has_assets }: { has_assets: boolean }) => has_assets)).toEqual([true, true]);
});

test("importing again adds nothing; a chat that continued there is updated, one that continued here isn't", async () => {
  await using app = await openTestApp();
  const files = tavernFolder();
  await importReport(app, "kind=sillytavern", zipped(files));
  const again = await importReport(app, "kind=sillytavern", zipped(files));
  expect(added(again)).toEqual(NOTHING);
  expect(again.counts.conversation).toMatchObject({ present: 2, updated: 0 });
  expect(again.counts.character.present).toBe(2);

  const path = "group chats/g1.jsonl";
  const longer = (mes: string) => {
    const text = new TextDecoder().decode(files[path]);
    files[path] = new TextEncoder().encode(`${text}\n${JSON.stringify({ name: "Owl", mes })}`);
    return zipped(files);
  };
  expect((await importReport(app, "kind=sillytavern", longer("More."))).counts.conversation.updated).toBe(1);
  const { items } = await got(app, "/api/conversations?view=summary");
  const { id, message_count } = items.find(({ title }: { title: string }) => title === "Watch");
  expect(message_count).toBe(3);
  expect((await app.patch(`/api/conversations/${id}`, { title: "Mine" })).status).toBe(200);
  const kept = await importReport(app, "kind=sillytavern", longer("Even more."));
  expect(kept.counts.conversation).toMatchObject({ present: 2, updated: 0 });
  expect(kept.lines).toContainEqual(expect.objectContaining({ level: "changed", source: path }));
  expect((await got(app, `/api/conversations/${id}`)).messages).toHaveLength(3);
});

test("a card that is there already is linked, with the chats that come with it, and one that differs is another one", async () => {
  await using app = await openTestApp({ config: { builtinAppInstalled: true } });
  const files = tavernFolder();
  const form = new FormData();
  form.append("file", new Blob([files["characters/Owl.png"]!]), "Owl.png");
  const owl = await (await app.request("POST", "/api/characters/import", form)).json();
  // A favorite says nothing else.
  owl.card.data.extensions.fav = true;
  await app.put(`/api/characters/${owl.id}`, owl.card);
  const report = await importReport(app, "kind=sillytavern", zipped(files));
  expect(report.counts.character).toMatchObject({ added: 1, present: 1 });
  expect(report.items).toContainEqual({ what: "character", id: owl.id, name: "Owl", state: "present" });
  const { items } = await got(app, "/api/conversations?view=summary");
  const group = items.find(({ title }: { title: string }) => title === "Watch");
  const chat = await got(app, `/api/conversations/${group.id}`);
  const fox = report.items.find(({ what, name }) => what === "character" && name === "Fox")!.id;
  expect(chat.participants.map((one: { character_id: string }) => one.character_id).sort()).toEqual(
    [fox, owl.id].sort(),
  );
  expect(JSON.stringify(chat)).toContain(owl.id);

  // Changed here, it's still the one that was imported.
  owl.card.data.description = "Sees in the dark.";
  await app.put(`/api/characters/${owl.id}`, owl.card);
  expect((await importReport(app, "kind=sillytavern", zipped(files))).counts.character.present).toBe(2);

  // Changed there, it's another one, and only once.
  const card = sillyTavernReads(files["characters/Owl.png"]!);
  card.data.description = "Wrote a letter.";
  const changed = zipped({ ...files, "characters/Owl.png": embedCard(files["characters/Owl.png"]!, parseCard(card)) });
  const trial = await importReport(app, "kind=sillytavern&dry_run=true", changed);
  expect(trial.counts.character).toMatchObject({ added: 1, present: 1 });
  expect((await importReport(app, "kind=sillytavern", changed)).counts.character).toMatchObject({ added: 1 });
  expect((await importReport(app, "kind=sillytavern", changed)).counts.character).toMatchObject({ present: 2 });
  const owls = (await got(app, "/api/characters")).filter(({ name }: { name: string }) => name === "Owl");
  expect(owls).toHaveLength(2);
});

test("a dry run changes nothing and counts like the import, which then needs no second upload", async () => {
  await using app = await openTestApp();
  const trial = await importReport(app, "kind=sillytavern&dry_run=true", zipped(tavernFolder()));
  expect(trial).toMatchObject({ dry_run: true, upload_id: expect.any(String) });
  expect(added(trial)).toEqual(EVERYTHING);
  for (const path of ["conversations", "personas", "lorebooks"]) expect(await got(app, `/api/${path}`)).toEqual([]);

  expect(added(await importReport(app, `kind=sillytavern&upload_id=${trial.upload_id}`))).toEqual(EVERYTHING);
  const late = await app.post(`/api/import?kind=sillytavern&upload_id=${trial.upload_id}`);
  expect(late.status).toBe(404);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/uploads`))).toEqual([]);
});

test("the report says of each card and preset what has no effect, also in a dry run", async () => {
  await using app = await openTestApp();
  const files = {
    ...tavernFolder(),
    "OpenAI Settings/Own.json": lines([{
      ...{ temperature: 1, show_thoughts: true, openai_model: "gpt-4" },
      prompts: [{ identifier: "main", role: "system", content: "Be {{char}}. {{nothinghere}}" }],
    }]),
  };
  const read = async (query: string) => {
    const report = await importReport(app, query, zipped(files));
    const unused = report.lines.filter(({ code }) => code === "unused_part");
    return {
      preset: unused.filter(({ source }) => source.includes("Own.json")).map(({ level, params }) => [level, params]),
      card: unused.filter(({ source }) => source === "characters/Fox.png").map(({ params }) => params?.kind),
      ledger: report.ledger.filter(({ kind }) => kind === "unused_part").map(({ params }) => params?.kind),
    };
  };
  const trial = await read("kind=sillytavern&dry_run=true");
  expect(await read("kind=sillytavern")).toEqual(trial);
  const say = (kind: keyof typeof PRESET_LEDGER, names: string) => ["kept", { kind, part: PRESET_LEDGER[kind], names }];
  expect(trial.preset).toEqual([
    say("unknown_macro", "{{nothinghere}}"),
    say("preset_setting", "show_thoughts"),
    say("preset_connection", "openai_model"),
  ]);
  expect(trial.card).toContain("program_data");
  expect(new Set(trial.ledger).size).toBe(trial.ledger.length);
});

test("broken items are named, and the rest is imported", async () => {
  await using app = await openTestApp();
  const files = tavernFolder();
  files["characters/Bad.png"] = new TextEncoder().encode("no picture");
  files["chats/Fox/Half.jsonl"] = new TextEncoder().encode('{"name":"Fox","mes":"One"}\n{"name":');
  files["worlds/Odd.json"] = new TextEncoder().encode("[]");
  files["../../evil.json"] = new TextEncoder().encode("{}");
  const report = await importReport(app, "kind=sillytavern", zipped(files));
  expect(added(report)).toEqual({ ...EVERYTHING, conversation: 3 });
  const refused = report.lines.filter(({ level }) => level === "refused").map(({ source }) => source).sort();
  expect(refused).toEqual(["../../evil.json", "characters/Bad.png", "chats/Fox/Half.jsonl", "worlds/Odd.json"]);
});

test.each([
  ["bytes that are nothing", new TextEncoder().encode("nothing"), "unprocessable"],
  ["a zip that is cut off", zipped(tavernFolder()).slice(0, 400), "unprocessable"],
  [
    "several users at once",
    zipped({ "a/settings.json": lines([{}]), "b/settings.json": lines([{}]) }),
    "unprocessable",
  ],
])("%s: the job fails with a reason", async (_, bytes, code) => {
  await using app = await openTestApp();
  const job = await importJob(app, "kind=sillytavern", bytes as Uint8Array<ArrayBuffer>);
  expect(job).toMatchObject({ state: "failed", error: { code } });
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/uploads`))).toEqual([]);
});

test("a zip bomb is rejected", async () => {
  await using app = await openTestApp();
  // Compressed once for all of its files.
  const pack = (content: Uint8Array) => {
    const packed = deflateRawSync(content);
    const sizes = { sizeBytes: content.length, packedBytes: packed.length };
    return { isDeflated: true, crc: crc32(content), ...sizes, content: [packed] };
  };
  const chat = pack(new Uint8Array(60 * 1024 * 1024).fill(32));
  const chats = Array.from({ length: 8 }, (_, i) => ({ path: `chats/Fox/${i}.jsonl`, ...chat }));
  const entries = [{ path: "settings.json", ...pack(lines([{}])) }, ...chats];
  const bomb = joined(await Array.fromAsync(writeZip(entries, { isLarge: false })));
  const report = await importReport(app, "kind=sillytavern", bomb);
  expect(added(report)).toEqual(NOTHING);
  expect(report.lines.filter(({ reason }) => reason.includes("100 times"))).not.toEqual([]);
});

test("a body above the limit is rejected while it is read, and none of it is stored", async () => {
  await using app = await openTestApp({ config: { maxImportBodyBytes: 1000 } });
  const body = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 5; i++) controller.enqueue(new Uint8Array(500));
      controller.close();
    },
  });
  const answer = await fetch(`${app.url}/api/import?kind=tavern`, {
    method: "POST",
    body,
    headers: { "content-type": "application/octet-stream" },
  });
  expect(answer.status).toBe(413);
  await answer.body?.cancel();
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/uploads`))).toEqual([]);
});

test("a folder on this machine is read in place, without following links", async () => {
  await using app = await openTestApp();
  await using home = await tempFolder();
  for (const [path, bytes] of Object.entries(tavernFolder())) {
    const file = home.file(path);
    await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    await Deno.writeFile(file, bytes);
  }
  await Deno.symlink("/etc", home.file("chats/etc"));
  const report = await (await app.services.imports()).importPath({
    kind: "sillytavern",
    isDryRun: false,
    path: home.file("."),
    signal: new AbortController().signal,
  });
  expect(added(report)).toEqual(EVERYTHING);
  expect(report.lines).toContainEqual(expect.objectContaining({ level: "refused", source: "chats/etc" }));
});

test("a single SillyTavern chat can be imported", async () => {
  await using app = await openTestApp();
  const chat = tavernFolder()["chats/Fox/Evening.jsonl"];
  const report = await importReport(app, "kind=tavern&name=Evening.jsonl", chat);
  expect(added(report)).toEqual({ ...NOTHING, conversation: 1 });
  expect((await got(app, "/api/conversations"))[0]).toMatchObject({ title: "Evening", participants: [] });
});

test("lists what can be imported, and the report links to the imported items", async () => {
  await using app = await openTestApp({ config: { maxImportBodyBytes: 12_345_678 } });
  const { kinds, max_bytes } = await (await app.get("/api/import")).json();
  expect(max_bytes).toBe(12_345_678);
  expect(kinds).toEqual(expect.arrayContaining(["sillytavern", "tavern", "chatgpt", "openwebui", "parlor"]));
  const files = tavernFolder();
  for (let index = 0; index < 60; index++) {
    files[`chats/Fox/Chat ${index}.jsonl`] = files["chats/Fox/Evening.jsonl"]!;
  }
  const trial = await importReport(app, "kind=sillytavern&dry_run=true", zipped(files));
  const report = await importReport(app, `kind=sillytavern&upload_id=${trial.upload_id}`);
  expect(report.items).toEqual(trial.items);
  const of = (what: string) => report.items.filter((item) => item.what === what);
  expect(of("conversation")).toHaveLength(50);
  expect(report.counts.conversation.added).toBeGreaterThan(60);
  expect(of("character").map(({ name }) => name).sort()).toEqual(["Fox", "Owl"]);
  expect(of("conversation")[0]!.name).toBe("Chat 0");
  const addresses = {
    conversation: "conversations",
    character: "characters",
    persona: "personas",
    lorebook: "lorebooks",
  };
  for (const [what, path] of Object.entries(addresses)) {
    const [item] = of(what);
    expect((await app.get(`/api/${path}/${item!.id}`)).status, what).toBe(200);
  }
  const again = await importReport(app, "kind=sillytavern", zipped(files));
  expect(again.items.map(({ state }) => state)).toEqual(again.items.map(() => "present"));
  expect(again.items.length).toBe(report.items.length);
});
