import { DatabaseSync } from "node:sqlite";
import { z } from "@hono/zod-openapi";
import { afterEach, beforeEach, expect, test } from "vitest";
import { longJsonBody } from "../../routes/schemas/common.ts";
import { range, readConversation, say, type StoredMessage } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { filesWithText } from "../helpers/files/storage_folder.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

let app: TestApp;
// Never the same time twice: what was saved within one millisecond has no order.
let nowMs = Date.now();
beforeEach(async () => {
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

async function put(id: string, body: unknown, headers: Record<string, string> = {}) {
  return await app.put(`/api/conversations/${id}`, body as Record<string, unknown>, { headers });
}

const read = (id: string) => readConversation(app, id);

test("returns a saved conversation with unknown fields", async () => {
  const created = await put("c1", {
    title: "Tea",
    character_id: "ada",
    custom: { deep: [1, null] },
    messages: [
      { ...say("m1", "Grüße 😀\u0000\ud800"), extra: true, created_at: "2020-01-02T03:04:05Z" },
      {
        id: "m2",
        role: "assistant",
        content: [{ type: "text", text: "hi" }, { type: "image_url", image_url: { url: "data:image/png;base64,AA" } }],
        reasoning: "Hm",
      },
    ],
  });
  expect(created.status).toBe(201);
  expect(created.headers.get("etag")).toMatch(/"1"/);
  const saved = await created.json();
  expect(await read("c1")).toEqual(saved);
  expect(saved).toMatchObject({
    id: "c1",
    title: "Tea",
    character_id: "ada",
    participants: [{ character_id: "ada" }],
    custom: { deep: [1, null] },
    revision: 1,
    draft: "",
    draft_version: 0,
  });
  expect(saved.messages[0]).toMatchObject({
    ...say("m1", "Grüße 😀\u0000\ud800"),
    extra: true,
    created_at: "2020-01-02T03:04:05.000Z",
    status: "complete",
    variant_count: 1,
    active_variant: 0,
  });
  expect(saved.messages[1]).toMatchObject({
    reasoning: "Hm",
    content: [{ type: "text", text: "hi" }, { type: "image_url" }],
  });
  expect((await put("c1", { messages: [] })).status).toBe(200);
  expect(await read("c1")).toMatchObject({ revision: 2, title: "", messages: [], created_at: saved.created_at });
});

test("returns the head of a conversation without messages", async () => {
  await put("c1", { title: "Tea", custom: 1, params: { top_k: 3 }, messages: [say("m1"), say("m2")] });
  await app.patch("/api/conversations/c1/draft", { draft: "half" });
  const response = await app.get("/api/conversations/c1?view=head");
  expect(response.headers.get("etag")).toMatch(/"1"/);
  const { messages: _, ...head } = await read("c1");
  expect(await response.json()).toEqual({ ...head, message_count: 2 });
  expect((await app.get("/api/conversations/none?view=head")).status).toBe(404);
  expect((await app.get("/api/conversations/c1?view=tail")).status).toBe(400);
});

test("returns the head and the last messages of one state", async () => {
  await put("c1", { title: "Tea", messages: [say("m1"), say("m2"), say("m3")] });
  const recent = async (query: string) => await app.get(`/api/conversations/c1?view=recent${query}`);
  const response = await recent("&limit=2");
  expect(response.headers.get("etag")).toMatch(/"1"/);
  const { messages, ...head } = await read("c1");
  expect(await response.json()).toEqual({
    ...head,
    message_count: 3,
    messages: messages.slice(1),
    next_cursor: "m2",
  });
  expect(await (await recent("")).json()).toMatchObject({ messages, next_cursor: null });
  expect((await app.get("/api/conversations/none?view=recent")).status).toBe(404);
  expect((await recent("&limit=501")).status).toBe(400);
});

test("assigns missing message ids and rejects duplicates", async () => {
  const { messages } = await (await put("c1", { messages: [{ role: "user", content: "a" }] })).json();
  expect(messages[0].id).toMatch(/^[0-9a-f-]{36}$/);
  expect((await put("c2", { messages: [say("x", "1"), say("x", "2")] })).status).toBe(400);
  expect((await app.get("/api/conversations/c2")).status).toBe(404);
});

test.each(["test", "draft", "messages", "preview", "__proto__", "constructor"])("%s is an id", async (id) => {
  expect((await put(id, { messages: [say(id)] })).status).toBe(201);
  expect((await app.patch(`/api/conversations/${id}/messages/${id}`, { content: "edited" })).status).toBe(200);
  expect((await app.patch(`/api/conversations/${id}/draft`, { draft: "begun" })).status).toBe(204);
  expect(await read(id)).toMatchObject({ id, draft: "begun", messages: [{ id, content: "edited" }] });
  expect((await app.delete(`/api/conversations/${id}`)).status).toBe(204);
});

test.each(["search", "import-url", "a b", "a".repeat(65), "ä", "a%2eb", "..%2fx"])(
  "refuses %s as an ID",
  { tags: ["P01"] },
  async (id) => {
    expect((await put(id, { messages: [] })).status).toBe(400);
  },
);

test("rejects an id that differs in case only", { tags: ["P01"] }, async () => {
  await put("Tea", { messages: [] });
  expect((await put("tea", { messages: [] })).status).toBe(409);
  expect((await put("Tea", { messages: [] })).status).toBe(200);
});

test("rejects a stale save with If-Match, and overwrites without it", async () => {
  await put("c1", { messages: [say("m1", "a")] });
  expect((await put("c1", { messages: [say("m1", "b")] }, { "If-Match": '"1"' })).status).toBe(200);
  const refused = await put("c1", { messages: [say("m1", "c")] }, { "If-Match": '"1"' });
  expect(refused.status).toBe(412);
  expect((await refused.json()).error).toMatchObject({ code: "revision_mismatch" });
  expect((await put("new", { messages: [] }, { "If-Match": '"1"' })).status).toBe(412);
  expect((await put("c1", { messages: [] }, { "If-Match": '"other"' })).status).toBe(412);
  expect((await read("c1")).messages[0]!.content).toBe("b");
  const { revision } = await read("c1");
  expect(
    (await app.patch("/api/conversations/c1/messages/m1", { content: "d" }, {
      headers: { "If-Match": `W/"${revision - 1}"` },
    })).status,
  ).toBe(412);
  expect((await app.delete("/api/conversations/c1", { headers: { "If-Match": '"99"' } })).status).toBe(412);
  expect((await put("c1", { messages: [] })).status).toBe(200);
});

test("keeps the order of messages through edits, removals and block splits", async () => {
  const messages = range(700).map((i) => say(`m${i}`, `message ${i} ${"x".repeat(i % 97)}`));
  await put("c1", { messages });
  const expected = new Map<string, string>(messages.map(({ id, content }) => [id, content]));
  for (const i of [0, 1, 350, 351, 698, 699]) {
    const content = `edited ${i} ${"y".repeat(i % 2 === 0 ? 20_000 : 5)}`;
    const response = await app.patch(`/api/conversations/c1/messages/m${i}`, { content });
    expect(await response.json()).toMatchObject({ id: `m${i}`, content });
    expected.set(`m${i}`, content);
  }
  for (const i of [5, 6, 7, 352, 699]) {
    expect((await app.delete(`/api/conversations/c1/messages/m${i}`)).status).toBe(204);
    expected.delete(`m${i}`);
  }
  const conversation = await read("c1");
  expect(conversation.messages.map(({ id, content }: StoredMessage) => [id, content])).toEqual([...expected]);
  expect(conversation.revision).toBe(12);
  await app.restart();
  expect(await read("c1")).toEqual(conversation);
});

test("splits a block that grows in one place without changing the order", async () => {
  await put("c1", { messages: range(60).map((i) => say(`m${i}`, "z".repeat(200))) });
  for (let round = 0; round < 40; round++) {
    await app.patch("/api/conversations/c1/messages/m3", { content: "g".repeat(9_000 + round) });
    await app.patch("/api/conversations/c1/messages/m4", { content: "h".repeat(16_000 + round) });
    await app.patch("/api/conversations/c1/messages/m5", { content: "i".repeat(100) });
  }
  expect((await read("c1")).messages.map(({ id }: StoredMessage) => id)).toEqual(range(60).map((i) => `m${i}`));
});

test("leaves an empty conversation after all messages are removed, and returns 404 for a second removal", async () => {
  await put("c1", { messages: [say("m1", "a"), say("m2", "b")] });
  for (const mid of ["m2", "m1"]) expect((await app.delete(`/api/conversations/c1/messages/${mid}`)).status).toBe(204);
  expect((await app.delete("/api/conversations/c1/messages/m1")).status).toBe(404);
  expect((await app.patch("/api/conversations/c1/messages/m1", { content: "x" })).status).toBe(404);
  expect(await read("c1")).toMatchObject({ messages: [] });
});

test("applies fifty concurrent edits of different messages", async () => {
  await put("c1", { messages: range(50).map((i) => say(`m${i}`, "old")) });
  await Promise.all(range(50).map((i) => app.patch(`/api/conversations/c1/messages/m${i}`, { content: `new ${i}` })));
  const { messages, revision } = await read("c1");
  expect(messages.map(({ content }: StoredMessage) => content)).toEqual(range(50).map((i) => `new ${i}`));
  expect(revision).toBe(51);
});

test("clears optional fields with null, but never changes the id or variant_count", async () => {
  await put("c1", { messages: [{ ...say("m1", "a"), model: "x", hidden: true }] });
  const message = await (await app.patch("/api/conversations/c1/messages/m1", {
    id: "m9",
    model: null,
    hidden: false,
    variant_count: 7,
    colour: "red",
  })).json();
  expect(message).toMatchObject({ id: "m1", content: "a", hidden: false, variant_count: 1, colour: "red" });
  expect(message).not.toHaveProperty("model");
});

test("versions the draft independently of the conversation", async () => {
  await put("c1", { messages: [say("m1", "a")] });
  const before = await read("c1");
  const first = await app.patch("/api/conversations/c1/draft", { draft: "Dear \ud83d" });
  expect(first.status).toBe(204);
  expect(first.headers.get("etag")).toBe('"1"');
  expect(
    (await app.patch("/api/conversations/c1/draft", { draft: "Dear A" }, { headers: { "If-Match": '"1"' } })).status,
  ).toBe(204);
  expect(
    (await app.patch("/api/conversations/c1/draft", { draft: "stale" }, { headers: { "If-Match": '"1"' } })).status,
  ).toBe(412);
  expect(await read("c1")).toEqual({ ...before, draft: "Dear A", draft_version: 2 });
  const { items } = await (await app.get("/api/conversations?view=summary")).json();
  expect(items).toMatchObject([{ id: "c1", revision: 1, draft_version: 2 }]);
  expect((await app.patch("/api/conversations/none/draft", { draft: "x" })).status).toBe(404);
});

test("keeps messages with the same id in two conversations apart, also while one is in the trash", async () => {
  const first = { messages: [say("m1", "one"), say("m2", "two")] };
  expect((await put("c1", first)).status).toBe(201);
  expect((await put("c2", { ...await read("c1"), id: "c2" })).status, "a copy as it was read").toBe(201);
  await app.patch("/api/conversations/c2/messages/m1", { content: "changed" });
  await app.delete("/api/conversations/c2/messages/m2");
  await app.post("/api/conversations/c2/messages", { message: say("m3") });
  expect(await read("c1")).toMatchObject({ messages: [{ content: "one" }, { content: "two" }], revision: 1 });
  expect((await read("c2")).messages.map(({ id, content }) => [id, content])).toEqual([
    ["m1", "changed"],
    ["m3", "says m3"],
  ]);
  await app.delete("/api/conversations/c1");
  expect((await put("c3", first)).status).toBe(201);
  expect((await read("c3")).messages.map(({ content }) => content)).toEqual(["one", "two"]);
});

test("accepts a message id in the field mid", async () => {
  const saved = await (await put("c1", { messages: [{ mid: "k1", role: "user", content: "one" }] })).json();
  expect(saved.messages).toMatchObject([{ id: "k1", mid: "k1", content: "one" }]);
  expect((await app.patch("/api/conversations/c1/messages/k1", { content: "two" })).status).toBe(200);
  const added = await app.post("/api/conversations/c1/messages", { message: { mid: "k2", role: "user", content: "" } });
  expect((await added.json()).id).toBe("k2");
  await put("c1", { messages: [{ id: "k3", mid: "k1", role: "user", content: "three" }, { ...say("k4"), mid: 5 }] });
  expect((await read("c1")).messages.map(({ id }) => id), "an id counts more").toEqual(["k3", "k4"]);
  const twice = await put("c1", { messages: [say("k1"), { mid: "k1", role: "user", content: "" }] });
  expect(twice.status).toBe(400);
});

test("saves a draft with a conversation, and clears it with null", async () => {
  await put("c1", { messages: [] });
  await put("c1", { messages: [], draft: "begun" });
  expect(await read("c1")).toMatchObject({ draft: "begun", draft_version: 1 });
  await put("c1", { messages: [] });
  expect(await read("c1"), "without one it stays").toMatchObject({ draft: "begun", draft_version: 1 });
  expect((await app.patch("/api/conversations/c1/draft", { draft: null })).status).toBe(204);
  expect(await read("c1")).toMatchObject({ draft: "", draft_version: 2 });
  expect((await app.patch("/api/conversations/c1/draft", {})).status).toBe(400);
});

test("keeps a newer draft when a page saves with an older one", async () => {
  await put("c1", { messages: [], draft: "begun" });
  expect(await read("c1")).toMatchObject({ draft: "begun", draft_version: 1 });
  await app.patch("/api/conversations/c1/draft", { draft: "newer" });
  await put("c1", { messages: [], draft: "begun", draft_version: 1 });
  expect(await read("c1")).toMatchObject({ draft: "newer", draft_version: 2 });
  await put("c1", { messages: [], draft: "newest", draft_version: 2 });
  expect(await read("c1")).toMatchObject({ draft: "newest", draft_version: 3 });
});

test("lists conversations, most recently changed first, and pages summaries stably", async () => {
  for (const i of range(7)) await put(`c${i}`, { title: `T${i}`, messages: [say(`m${i}`, `text ${i}`)] });
  await app.patch("/api/conversations/c2/messages/m2", { content: "touched" });
  const all = await (await app.get("/api/conversations")).json();
  expect(all.map(({ id }: { id: string }) => id)).toEqual(["c2", "c6", "c5", "c4", "c3", "c1", "c0"]);
  expect(all[0].messages[0]!.content).toBe("touched");
  for (const item of all) expect(item).toEqual(await read(item.id));

  const first = await (await app.get("/api/conversations?view=summary&limit=3")).json();
  expect(first.items[0]).toMatchObject({ id: "c2", title: "T2", message_count: 1, snippet: "touched", revision: 2 });
  await put("c9", { messages: [] });
  const second = await (await app.get(`/api/conversations?view=summary&limit=3&cursor=${first.next_cursor}`)).json();
  const third = await (await app.get(`/api/conversations?view=summary&limit=3&cursor=${second.next_cursor}`)).json();
  expect([...first.items, ...second.items, ...third.items].map(({ id }: { id: string }) => id)).toEqual([
    "c2",
    "c6",
    "c5",
    "c4",
    "c3",
    "c1",
    "c0",
  ]);
  expect(third.next_cursor).toBeNull();
  expect((await app.get("/api/conversations?view=summary&cursor=junk")).status).toBe(400);
});

test("hides a deleted conversation at once, and frees its id when it is purged", async () => {
  await put("c1", { messages: [say("m1", "a")] });
  expect((await app.delete("/api/conversations/c1")).status).toBe(204);
  expect((await app.get("/api/conversations/c1")).status).toBe(404);
  expect((await app.delete("/api/conversations/c1")).status).toBe(404);
  expect(await (await app.get("/api/conversations")).json()).toEqual([]);
  expect((await put("c2", { messages: [say("m1", "other")] })).status).toBe(201);
  await app.delete("/api/trash");
  expect((await put("c1", { messages: [say("m1", "again")] })).status).toBe(201);
  expect((await read("c1")).messages).toHaveLength(1);
});

test("reports damage of an unreadable conversation instead of returning an empty one", {
  tags: ["K02", "K03"],
}, async () => {
  await put("good", { messages: [say("g", "fine")] });
  await put("bad", { messages: [say("b", "broken")] });
  await put("other", { messages: [say("o", "text of another")] });
  const db = openStoredDatabase(app.dataDir);
  db.exec(
    "UPDATE block SET sealed = (SELECT sealed FROM block WHERE conversation_id = 'other') WHERE conversation_id = 'bad'",
  );
  db.close();
  const single = await app.get("/api/conversations/bad");
  const found = await single.json();
  expect(found).toMatchObject({ messages: [], damaged: [{ part: "messages", message_ids: ["b"], after: null }] });
  expect(JSON.stringify(found)).not.toContain("text of another");
  const list = await (await app.get("/api/conversations")).json();
  expect(list.map(({ id }: { id: string }) => id)).toEqual(["other", "bad", "good"]);
  expect(list[1]).toEqual({ id: "bad", error: { code: "unreadable" }, messages: [] });
  expect(list[2].messages[0]!.content).toBe("fine");
  expect((await app.patch("/api/conversations/bad/messages/b", { content: "x" })).status).toBe(500);
});

test("stores no plaintext in the data folder", { tags: ["K01"] }, async () => {
  await put("c1", { title: "SecretTitleOfMine", messages: [say("m1", "SecretMessageOfMine")] });
  await app.patch("/api/conversations/c1/draft", { draft: "SecretDraftOfMine" });
  for (const text of ["SecretTitleOfMine", "SecretMessageOfMine", "SecretDraftOfMine"]) {
    expect(await filesWithText(app.dataDir, text)).toEqual([]);
  }
});

test("stores a message of ten megabytes exactly", async () => {
  const content = range(1_000_000).map((i) => String.fromCharCode(32 + (i * 7) % 90)).join("").repeat(10);
  expect((await put("c1", { messages: [say("m0", "a"), say("m1", content), say("m2", "b")] })).status).toBe(201);
  const { messages } = await read("c1");
  expect(messages[1]!.content === content).toBe(true);
  expect(messages.map(({ id }: StoredMessage) => id)).toEqual(["m0", "m1", "m2"]);
});

test.each([
  ["no body", undefined],
  ["null", null],
  ["no messages", {}],
  ["messages that are no list", { messages: "x" }],
  ["a message that is no object", { messages: [1] }],
  ["content that is a number", { messages: [{ role: "user", content: 1 }] }],
  ["a bad message id", { messages: [{ id: "..", role: "user", content: "" }] }],
  ["two different characters", { character_id: "a", participants: [{ character_id: "b" }], messages: [] }],
])("rejects %s with reasons and stores nothing", async (_, body) => {
  const response = await put("c1", body);
  expect([400, 415]).toContain(response.status);
  expect((await response.json()).error.code).toMatch(/^invalid_|unsupported_/);
  expect((await app.get("/api/conversations/c1")).status).toBe(404);
});

test("rewrites only the block of the changed message", async () => {
  const messages = range(400).map((i) => say(`m${i}`, `message ${i} ${"x".repeat(200)}`));
  const { messages: saved } = await (await put("c1", { messages })).json();
  saved[200].content = "changed";
  await put("c1", { messages: saved });
  const db = new DatabaseSync(`${app.dataDir}/app.db`, { readOnly: true });
  const rows = db.prepare("SELECT version FROM block WHERE conversation_id = 'c1' AND live = 1").all();
  db.close();
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.filter(({ version }) => version !== 1)).toEqual([{ version: 2 }]);
  expect((await read("c1")).messages[200]!.content).toBe("changed");
});

test("reports the path of an invalid field late in a long document, and saves nothing", async () => {
  const messages: Record<string, unknown>[] = range(2_234).map((i) => say(`m${i}`));
  expect((await put("c1", { messages, title: "kept" })).status).toBe(201);
  Object.assign(messages[2_201]!, { role: 7 });
  Object.assign(messages[3]!, { id: "no id" });
  const refused = await put("c1", { messages, title: 7 });
  expect(refused.status).toBe(400);
  const { error } = await refused.json();
  expect(error.issues.map(({ path }: { path: string }) => path)).toEqual([
    "title",
    "messages.3.id",
    "messages.2201.role",
  ]);
  expect(await read("c1")).toMatchObject({ title: "kept", revision: 1 });
});

test("validates long lists in steps and short ones at once, with the same result", async () => {
  const Body = z.looseObject({ title: z.string(), items: z.array(z.object({ n: z.number() })) });
  const { schema } = longJsonBody(Body, "items").content["application/json"];
  const parse = async (count: number) => {
    let hadTurn = false;
    const timer = setTimeout(() => hadTurn = true);
    const body = { title: "T", more: 1, items: range(count).map((n) => ({ n, dropped: true })) };
    const { data } = await schema.safeParseAsync(body);
    clearTimeout(timer);
    expect(data).toEqual({ title: "T", more: 1, items: range(count).map((n) => ({ n })) });
    return hadTurn;
  };
  expect(await parse(10)).toBe(false);
  expect(await parse(3_000)).toBe(true);
});

test("saves removed, added and moved messages in the right order", async () => {
  const messages = range(300).map((i) => say(`m${i}`, `message ${i} ${"x".repeat(200)}`));
  await put("c1", { messages });
  const moved = [say("new", "first"), ...messages.slice(50, 200).reverse(), ...messages.slice(210), say("end", "last")];
  expect((await (await put("c1", { messages: moved })).json()).messages.map(({ id }: StoredMessage) => id)).toEqual(
    moved.map(({ id }) => id),
  );
  for (const { id } of [moved[0]!, moved[80]!, moved.at(-1)!]) {
    expect((await app.patch(`/api/conversations/c1/messages/${id}`, { content: `edited ${id}` })).status).toBe(200);
  }
  expect((await app.patch("/api/conversations/c1/messages/m205", { content: "gone" })).status).toBe(404);
  expect((await put("c2", { messages: [say("m205", "free again")] })).status).toBe(201);
});

test("lists when the last message of each chat was made, which a new title doesn't change", async () => {
  await using app = await openTestApp();
  const early = "2020-02-03T04:05:06.000Z";
  const messages = [
    { id: "u", role: "user", content: "Then", created_at: "2019-01-01T00:00:00.000Z" },
    { id: "a", role: "assistant", content: "There", created_at: early },
  ];
  await app.put("/api/conversations/old", { title: "Old", messages });
  await app.put("/api/conversations/empty", { title: "Empty", messages: [] });
  const list = async (): Promise<Record<string, { created_at: string; last_message_at: string }>> => {
    const { items } = await (await app.get("/api/conversations?view=summary")).json();
    return Object.fromEntries(items.map((item: { id: string }) => [item.id, item]));
  };
  const { old, empty } = await list();
  expect([old!.last_message_at, empty!.last_message_at]).toEqual([early, empty!.created_at]);
  await app.patch("/api/conversations/old", { title: "Older" });
  await app.patch("/api/conversations/old/messages/u", { content: "Once" });
  expect((await list()).old!.last_message_at).toBe(early);
  const added = { message: { role: "user", content: "Now" } };
  const message = await (await app.post("/api/conversations/old/messages", added)).json();
  expect((await list()).old!.last_message_at).toBe(message.created_at);
  await app.delete(`/api/conversations/old/messages/${message.id}`);
  expect((await list()).old!.last_message_at).toBe(early);
});

test("lists which chats are branches, and which titles are only the greeting's beginning", async () => {
  await using app = await openTestApp();
  const greeting = "The door creaks open. Good evening, and welcome.";
  const participants = [{ character_id: "mira" }];
  const messages = [{ id: "g", role: "assistant", content: greeting }];
  await app.put("/api/conversations/c1", { title: "The door creaks open. Good…", participants, messages });
  await app.put("/api/conversations/c2", { title: "A storm", participants, messages });
  const fork = await (await app.post("/api/conversations/c2/fork", { message_id: "g" })).json();
  const list = async () => {
    const { items } = await (await app.get("/api/conversations?view=summary")).json();
    return Object.fromEntries(
      items.map((item: Record<string, unknown>) => [item.id, [item.is_branch, item.has_greeting_title]]),
    );
  };
  expect(await list()).toEqual({ c1: [false, true], c2: [false, false], [fork.id]: [true, false] });
  await app.post("/api/conversations/c1/messages", { message: { role: "user", content: "Hello" } });
  expect((await list()).c1).toEqual([false, true]);
  await app.patch("/api/conversations/c1", { title: "The door" });
  expect((await list()).c1).toEqual([false, false]);
});
