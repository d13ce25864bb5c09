import { afterEach, beforeEach, expect, test } from "vitest";
import worldInfo from "../fixtures/sillytavern/world_info.json" with { type: "json" };
import { useModel } from "../helpers/app/chat_client.ts";
import { say } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

let app: TestApp;
// Never the same time twice: what was saved within one millisecond has no order.
let nowMs = Date.now();
beforeEach(async () => {
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const BOOK = {
  entries: [{ keys: ["dragon"], content: "It is old.", enabled: true, insertion_order: 1, extensions: {} }],
};
const json = async (response: Response | Promise<Response>) => await (await response).json();

function upload(path: string, file: BlobPart, fileName = "world.json", fields: Record<string, string> = {}) {
  const form = new FormData();
  form.set("file", new File([file], fileName));
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return app.post(path, form);
}

test("a lorebook is created, read, listed without its entries, changed and removed", async () => {
  const created = await app.put("/api/lorebooks/b1", { name: "Beasts", book: { ...BOOK, unknown: { x: [1] } } });
  expect(created.status).toBe(201);
  expect(created.headers.get("etag")).toBe('"1"');
  const stored = await created.json();
  expect(stored).toMatchObject({
    id: "b1",
    name: "Beasts",
    enabled: true,
    scope: "global",
    character_ids: [],
    persona_ids: [],
    entry_count: 1,
    book: { ...BOOK, unknown: { x: [1] } },
  });
  expect(await json(app.get("/api/lorebooks/b1"))).toEqual(stored);
  const { book: _, ...item } = stored;
  expect(await json(app.get("/api/lorebooks"))).toEqual([item]);

  const changed = await app.put("/api/lorebooks/b1", {
    scope: "character",
    character_ids: ["c1"],
    book: { entries: [] },
  });
  expect(changed.status).toBe(200);
  expect(changed.headers.get("etag")).toBe('"2"');
  expect(await changed.json()).toMatchObject({
    name: "Beasts",
    scope: "character",
    character_ids: ["c1"],
    entry_count: 0,
    book: { entries: [] },
    created_at: stored.created_at,
  });
  expect(await json(app.put("/api/lorebooks/b1", { scope: null, character_ids: null, enabled: false, book: BOOK })))
    .toMatchObject({ scope: "global", character_ids: [], enabled: false });

  expect((await app.delete("/api/lorebooks/b1")).status).toBe(204);
  expect((await app.get("/api/lorebooks/b1")).status).toBe(404);
  expect((await app.delete("/api/lorebooks/b1")).status).toBe(404);
});

test("books survive a restart, in the list and completely", async () => {
  await app.put("/api/lorebooks/b1", { name: "One", book: BOOK });
  await app.put("/api/lorebooks/b2", { name: "Two", scope: "chat", book: worldInfo });
  const before = [await json(app.get("/api/lorebooks")), await json(app.get("/api/lorebooks/b2"))];
  expect(before[0].map(({ id }: { id: string }) => id)).toEqual(["b2", "b1"]);
  await app.restart();
  expect([await json(app.get("/api/lorebooks")), await json(app.get("/api/lorebooks/b2"))]).toEqual(before);
});

test("the body of a PUT may be the book itself, also in SillyTavern's format", async () => {
  expect(await json(app.put("/api/lorebooks/b1", BOOK))).toMatchObject({ name: "Lorebook", book: BOOK });
  expect(await json(app.put("/api/lorebooks/b2", { name: "Velm", ...worldInfo }))).toMatchObject({
    name: "Velm",
    entry_count: 7,
  });
  expect(await json(app.put("/api/lorebooks/b3", { spec: "lorebook_v3", data: { name: "V3", ...BOOK } })))
    .toMatchObject({ name: "V3", entry_count: 1 });
});

test("a write with another version is rejected and changes nothing", async () => {
  await app.put("/api/lorebooks/b1", { book: BOOK });
  await app.put("/api/lorebooks/b1", { book: BOOK });
  const stale = { headers: { "If-Match": '"1"' } };
  expect((await app.put("/api/lorebooks/b1", { name: "New", book: BOOK }, stale)).status).toBe(412);
  expect((await app.delete("/api/lorebooks/b1", stale)).status).toBe(412);
  expect((await app.put("/api/lorebooks/b9", { book: BOOK }, stale)).status).toBe(412);
  const present = await app.get("/api/lorebooks/b1");
  expect(present.headers.get("etag")).toBe('"2"');
  expect((await present.json()).name).toBe("Lorebook");
  const current = { headers: { "If-Match": '"2"' } };
  expect((await app.put("/api/lorebooks/b1", { book: BOOK }, current)).headers.get("etag")).toBe('"3"');
});

test("two concurrent writes both take effect", async () => {
  const writes = ["A", "B", "C"].map((name) => app.put("/api/lorebooks/b1", { name, book: BOOK }));
  const answers = await Promise.all(writes);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
  expect((await app.get("/api/lorebooks/b1")).headers.get("etag")).toBe('"3"');
});

test("SillyTavern's file is imported and exported unchanged, whatever its name in Parlor", async () => {
  const imported = await upload("/api/lorebooks/import", JSON.stringify(worldInfo), "Velm by the sea.json");
  expect(imported.status).toBe(201);
  const { id, name, entry_count } = await imported.json();
  expect({ name, entry_count }).toEqual({ name: "Velm by the sea", entry_count: 7 });
  const file = await app.get(`/api/lorebooks/${id}/export`);
  expect(file.headers.get("content-disposition")).toContain('filename="Velm by the sea.json"');
  expect(await file.json()).toEqual(worldInfo);
  const v3 = await json(app.get(`/api/lorebooks/${id}/export?format=lorebook_v3`));
  expect(v3).toMatchObject({ spec: "lorebook_v3", data: { name, extensions: { "somebody/else": { x: 1 } } } });
  const again = await json(upload("/api/lorebooks/import", JSON.stringify(v3), "x.json", { name: "Other" }));
  expect(again.name).toBe("Velm by the sea");
  expect(await json(app.get(`/api/lorebooks/${again.id}/export?format=sillytavern`)))
    .toEqual({ ...worldInfo, name: "Velm by the sea" });
});

test("a card's own book is imported and exported as in the card", async () => {
  const character_book = { name: "Own", entries: BOOK.entries, somebody: { else: 1 } };
  const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Ann", character_book } };
  const { id, name } = await json(upload("/api/lorebooks/import", JSON.stringify(card)));
  expect(name).toBe("Own");
  expect(await json(app.get(`/api/lorebooks/${id}/export?format=character_book`))).toEqual(character_book);
});

test.each<[string, BlobPart]>([
  ["no JSON", "PNG"],
  ["no lorebook", '{"name":"x"}'],
  ["nested without end (P07)", `{"entries":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ["no UTF-8", new Uint8Array([0x7b, 0xff])],
])("a file that is %s is rejected and leaves nothing behind", async (_, file) => {
  expect((await upload("/api/lorebooks/import", file)).status).toBe(422);
  expect(await json(app.get("/api/lorebooks"))).toEqual([]);
});

test(
  "invalid IDs, bodies and forms are rejected and leave nothing behind",
  { tags: ["P01", "P03", "P04"] },
  async () => {
    for (const id of ["..", "%2e%2e", "a%00b", "import", "x".repeat(65), "a.b", "ä"]) {
      expect([400, 404, 405]).toContain((await app.put(`/api/lorebooks/${id}`, { book: BOOK })).status);
    }
    const put = async (body: Record<string, unknown>) => (await app.put("/api/lorebooks/b1", body)).status;
    expect(await put({ name: "x".repeat(201), book: BOOK })).toBe(400);
    expect(await put({ scope: "nobody", book: BOOK })).toBe(400);
    expect(await put({ character_ids: ["../x"], book: BOOK })).toBe(400);
    expect(await put({ book: [] })).toBe(400);
    expect(await put({ book: { entries: "none" } })).toBe(422);
    expect(await put({})).toBe(422);
    const nested = `{"book":{"entries":[],"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`;
    const headers = { "Content-Type": "application/json" };
    expect((await app.put("/api/lorebooks/b1", nested, { headers })).status).toBe(400);
    const tooLong = { book: { entries: [], x: "x".repeat(11 * 1024 * 1024) } };
    expect((await app.put("/api/lorebooks/b1", tooLong)).status).toBe(413);
    expect((await app.post("/api/lorebooks/import", "x", { headers: { "Content-Type": "text/plain" } })).status).toBe(
      415,
    );
    const form = new FormData();
    form.set("file", "no file");
    expect((await app.post("/api/lorebooks/import", form)).status).toBe(400);
    expect(await json(app.get("/api/lorebooks"))).toEqual([]);
  },
);

test("rejects an ID that differs from another only in case", async () => {
  await app.put("/api/lorebooks/Book", { book: BOOK });
  expect((await app.put("/api/lorebooks/book", { book: BOOK })).status).toBe(409);
});

test("a deleted one is restored unchanged, unless its ID is taken", async () => {
  const stored = await json(app.put("/api/lorebooks/b1", { name: "Beasts", book: worldInfo }));
  await app.delete("/api/lorebooks/b1");
  const [entry] = await json(app.get("/api/trash"));
  expect(entry).toMatchObject({ kind: "lorebook", title: "Beasts" });
  await (await app.services.lorebooks()).lorebooks.put("b1", { name: "Newer", book: BOOK });
  expect((await app.post(`/api/trash/${entry.id}/restore`)).status).toBe(409);
  await app.delete("/api/lorebooks/b1");
  await app.restart();
  expect((await app.post(`/api/trash/${entry.id}/restore`)).status).toBe(204);
  expect(await json(app.get("/api/lorebooks/b1"))).toEqual(stored);
  expect(await json(app.get("/api/trash"))).toMatchObject([{ title: "Newer" }]);
  expect((await app.delete("/api/trash")).status).toBe(204);
  const rows = (await app.services.lorebooks()).lorebooks.list();
  expect(rows).toHaveLength(1);
});

test("writes and deletions publish events", async () => {
  const told: unknown[] = [];
  app.services.events.subscribe((event) => void told.push(event));
  await app.put("/api/lorebooks/b1", { book: BOOK });
  await app.put("/api/lorebooks/b1", { book: BOOK });
  await app.delete("/api/lorebooks/b1");
  expect(told).toEqual([
    { kind: "lorebook", id: "b1", revision: 1 },
    { kind: "lorebook", id: "b1", revision: 2 },
    { kind: "lorebook", id: "b1" },
    { kind: "trash", id: "trash" },
  ]);
});

test("an unreadable book is listed as such, doesn't affect others, and can be replaced or deleted", {
  tags: ["K03"],
}, async () => {
  await app.put("/api/lorebooks/bad", { name: "Bad", book: BOOK });
  await app.put("/api/lorebooks/worse", { name: "Worse", book: BOOK });
  await app.put("/api/lorebooks/good", { name: "Good", book: BOOK });
  await app.restart(() => {
    const db = openStoredDatabase(app.dataDir);
    const flip = (id: string, at: string) =>
      db.exec(`UPDATE document SET sealed = CAST(substr(sealed, 1, ${at}) || x'00' || substr(sealed, ${at} + 2) AS BLOB)
               WHERE kind = 'lorebook' AND id = '${id}'`);
    flip("bad", "length(sealed) - 2"); // in the body
    flip("worse", "30"); // in the head
    db.close();
    return Promise.resolve();
  });
  const list: { id: string; error?: unknown }[] = await json(app.get("/api/lorebooks"));
  expect(list.map(({ id, error }) => [id, error])).toEqual([
    ["good", undefined],
    ["worse", { code: "unreadable" }],
    ["bad", undefined],
  ]);
  for (const id of ["bad", "worse"]) expect((await app.get(`/api/lorebooks/${id}`)).status).toBe(500);
  expect(await (await app.services.lorebooks()).lorebooks.findBooks({ lorebookIds: ["worse"] })).toMatchObject({
    books: [{ id: "good" }],
    unreadable: ["worse", "bad"],
  });
  expect((await app.put("/api/lorebooks/bad", { name: "Mended", book: BOOK })).status).toBe(200);
  expect((await app.get("/api/lorebooks/bad")).status).toBe(200);
  expect((await app.delete("/api/lorebooks/worse")).status).toBe(204);
});

test("finds the books of a chat, its characters, its persona and of all chats, each once", async () => {
  const put = (id: string, fields: Record<string, unknown>) =>
    app.put(`/api/lorebooks/${id}`, { name: id, book: BOOK, ...fields });
  await put("all", {});
  await put("off", { enabled: false });
  await put("hers", { scope: "character", character_ids: ["ann"] });
  await put("his", { scope: "character", character_ids: ["bob"] });
  await put("linked", { scope: "chat", name: "Velm" });
  await put("mine", { scope: "persona", persona_ids: ["p1"] });
  await put("other", { scope: "persona", persona_ids: ["p2"] });
  await put("chat", { scope: "chat" });
  await put("both", {});
  const { books } = await (await app.services.lorebooks()).lorebooks.findBooks({
    characters: [{ id: "ann", name: "Ann", world: "velm", book: BOOK }],
    personaId: "p1",
    lorebookIds: ["chat", "both", "gone"],
  });
  // Books saved within the same millisecond have no order.
  expect(books.map(({ id, scope }) => `${id}: ${scope}`).toSorted()).toEqual([
    ...["all: global", "both: chat", "character:ann: character", "chat: chat"],
    ...["hers: character", "linked: character", "mine: persona"],
  ]);
});

test("a draft is tested against a conversation: which entries activate, by which key, and which nearly do", async () => {
  await app.put("/api/characters/ann", {
    spec: "chara_card_v2",
    data: {
      name: "Ann",
      description: "A smith of the coast.",
      personality: "",
      scenario: "",
      first_mes: "",
      mes_example: "",
    },
  });
  await app.put("/api/conversations/c1", {
    participants: [{ character_id: "ann" }],
    messages: [
      say("m0", "the dragon"),
      { ...say("m1", "Hidden: kraken"), hidden: true },
      { ...say("m2", "What do you know of it?"), role: "assistant" },
    ],
  });
  const entry = (content: string, keys: string[], fields = {}) => ({
    keys,
    content,
    enabled: true,
    insertion_order: 1,
    extensions: {},
    ...fields,
  });
  const book = {
    entries: [
      entry("Old.", ["wyrm", "dragon"], { comment: "Dragons" }),
      entry("Deep.", ["kraken"]),
      entry("{{char}} knows.", ["{{char}}"], { extensions: { probability: 30, position: 4, depth: 1, role: 0 } }),
      entry("Of her.", ["of the coast"], { extensions: { match_character_description: true } }),
      entry("Gold.", ["dragon"], { selective: true, secondary_keys: ["hoard"] }),
    ],
  };
  const answer = await app.post("/api/lorebooks/test", { book, conversation_id: "c1" });
  expect(answer.status).toBe(200);
  const named = { lorebook_id: "draft", lorebook_name: "" };
  expect(await answer.json()).toEqual({
    entries: [
      {
        ...named,
        entry_id: "#3",
        entry_name: "of the coast",
        content: "Of her.",
        position: "before_char",
        order: 1,
        tokens: 2,
        reason: { kind: "key", key: "of the coast" },
      },
      {
        ...named,
        entry_id: "#2",
        entry_name: "{{char}}",
        content: "Ann knows.",
        position: "at_depth",
        order: 1,
        depth: 1,
        role: "system",
        tokens: 3,
        probability: 30,
        reason: { kind: "key", key: "Ann" },
      },
      {
        ...named,
        entry_id: "#0",
        entry_name: "Dragons",
        content: "Old.",
        position: "before_char",
        order: 1,
        tokens: 1,
        reason: { kind: "key", key: "dragon" },
      },
    ],
    dropped: [{ ...named, entry_id: "#4", entry_name: "dragon", reason: "secondary_keys", key: "dragon" }],
    tokens: 6,
    disabled_prompts: [],
  });
});

test("a saved book is tested against a text, after a conversation if one is named", async () => {
  await app.put("/api/lorebooks/b1", { name: "Velm", book: worldInfo });
  const text = "Where is captain Orla tonight? The lighthouse is dark in the storm.";
  const found = await json(app.post("/api/lorebooks/test", { lorebook_id: "b1", text }));
  expect(found.entries.map(({ entry_name, reason }: { entry_name: string; reason: unknown }) => [entry_name, reason]))
    .toEqual([
      ["The town", { kind: "constant" }],
      ["Winch", { kind: "recursion", key: "winch" }],
      ["Orla", { kind: "key", key: "/\\bcaptain\\s+(orla|orsa)\\b/i" }],
      ["Lighthouse", { kind: "key", key: "lighthouse" }],
    ]);
  await app.put("/api/conversations/c1", { messages: [say("m0", "nothing")] });
  const both = await json(
    app.post("/api/lorebooks/test", { lorebook_id: "b1", text: "the docks", conversation_id: "c1" }),
  );
  expect(both.entries).toHaveLength(2);
});

test("a test keeps to the same limits as a prompt: tokens, recursion, the minimum of entries, and scanned names", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.contextSize = 4_096;
  await useModel(app, llm);
  const entry = (comment: string, key: string, content: string, insertion_order = 1) => (
    { ...BOOK.entries[0]!, ...{ keys: [key], comment, content, insertion_order } }
  );
  const book = {
    recursive_scanning: true,
    entries: [
      entry("first", "dragon", "A hoard."),
      entry("second", "hoard", "A cave."),
      entry("third", "cave", "A bat."),
      entry("earlier", "kraken", "Deep."),
      entry("name", "Dora", "Who speaks."),
      entry("long", "dragon", "gold ".repeat(300), 0),
    ],
  };
  await app.put("/api/personas/p1", { name: "Dora", description: "" });
  await app.patch("/api/settings", { default_persona_id: "p1" });
  await app.put("/api/conversations/c1", {
    messages: [say("m0", "the kraken"), ...["m1", "m2", "m3"].map((id) => say(id, "no")), say("m4", "the dragon")],
  });
  const list = async (settings: Record<string, unknown>, fields = {}) => {
    const changed = await app.patch("/api/settings", settings);
    expect(changed.status).toBe(200);
    const tested = await json(app.post("/api/lorebooks/test", { book, conversation_id: "c1", ...fields }));
    return tested.entries.map(({ entry_name }: { entry_name: string }) => entry_name).sort();
  };
  expect(await list({})).toEqual(["first", "long", "name", "second", "third"]);
  expect(await list({ lore_scans_names: false })).toEqual(["first", "long", "second", "third"]);
  expect(await list({ lore_max_recursion: 1 })).toEqual(["first", "long", "second"]);
  expect(await list({ lore_max_recursion: 0 })).toEqual(["first", "long"]);
  expect(await list({ lore_max_recursion: null, lore_min_activations: 5 }))
    .toEqual(["earlier", "first", "long", "second", "third"]);
  expect(await list({ lore_min_activations_depth: 2 })).toEqual(["first", "long", "second", "third"]);
  expect(await list({ lore_max_recursion: 0, lore_budget_percent: 10 })).toEqual(["first"]);
  expect(await list({}, { budget_tokens: 1_000 })).toEqual(["first", "long"]);
  expect(await list({ lore_budget_percent: 100, lore_budget_tokens: 100 })).toEqual(["first"]);
  expect(await list({ lore_budget_percent: 0 })).toEqual([]);
});

test("a test requires a book and a text, both of limited size", async () => {
  const status = async (body: Record<string, unknown>) => (await app.post("/api/lorebooks/test", body)).status;
  expect(await status({ text: "x" })).toBe(400);
  expect(await status({ book: BOOK })).toBe(400);
  expect(await status({ book: BOOK, text: "x".repeat(200_001) })).toBe(400);
  expect(await status({ book: BOOK, text: "x", budget_tokens: -1 })).toBe(400);
  expect(await status({ book: {}, text: "x" })).toBe(422);
  expect(await status({ lorebook_id: "none", text: "x" })).toBe(404);
  expect(await status({ book: BOOK, conversation_id: "none" })).toBe(404);
});

test("an endless pattern in a test blocks no other request and is reported as too slow", async () => {
  const entries = [{ ...BOOK.entries[0]!, keys: ["/^(\\w+\\s?)+$/i"], use_regex: true }];
  const text = `${"word ".repeat(30)}!`;
  const trial = app.post("/api/lorebooks/test", { book: { entries }, text });
  let answered = 0;
  let isDone = false;
  void trial.then(() => isDone = true);
  while (!isDone) {
    expect((await app.get("/api/lorebooks")).status).toBe(200);
    answered++;
  }
  expect(answered).toBeGreaterThan(3);
  expect((await json(trial)).dropped).toMatchObject([{ reason: "too_slow", key: "/^(\\w+\\s?)+$/i" }]);
});

test("an import leaves out entries without keys and text and names them, and a change keeps those of the editor", async () => {
  const entries = [{ keys: ["fox"], content: "Red." }, { keys: [], content: " ", comment: "=== Places ===" }];
  const imported = await json(upload("/api/lorebooks/import", JSON.stringify({ name: "Forest", entries })));
  expect(imported).toMatchObject({ entry_count: 1, book: { entries: [{ keys: ["fox"] }] } });
  const leftOut = { kind: "empty_entry_left_out", count: 1, examples: ["=== Places ==="] };
  expect(imported.ledger).toMatchObject([leftOut]);
  // The editor adds such an entry.
  const path = `/api/lorebooks/${imported.id}`;
  const book = { entries: [...imported.book.entries, { keys: [], content: "" }] };
  expect(await json(app.put(path, { book }))).toMatchObject({ entry_count: 2 });
  expect((await json(app.get(path))).ledger).toMatchObject([leftOut, { kind: "empty_entry", count: 1 }]);
});
