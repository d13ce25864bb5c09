import { afterEach, beforeEach, expect, test } from "vitest";
import { beginReply, savedMessage } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { fixtureImage, withOrientation } from "../../helpers/files/image_files.ts";
import { noise, picturePart, putPicture } from "../../helpers/files/pictures.ts";
import { idsOf, range, readConversation, say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const read = (id?: string) => readConversation(app, id);

async function fill(count: number, content?: string) {
  await app.put("/api/conversations/c1", { title: "Tea", messages: range(count).map((i) => say(`m${i}`, content)) });
}

async function page(query: string) {
  const response = await app.get(`/api/conversations/c1/messages?${query}`);
  expect(response.status).toBe(200);
  return await response.json();
}

test("pages from the end to the beginning, oldest first within a page, despite concurrent writes", async () => {
  await fill(500, "x".repeat(300));
  const seen: string[][] = [];
  let { items, next_cursor: cursor } = await page("limit=120");
  for (let i = 0;; i++) {
    seen.unshift(idsOf(items));
    if (cursor === null) break;
    await app.post("/api/conversations/c1/messages", { message: say(`late${i}`, "y".repeat(9000)) });
    await app.patch("/api/conversations/c1/messages/m250", { content: "z".repeat(30_000 + i) });
    ({ items, next_cursor: cursor } = await page(`limit=120&before=${cursor}`));
  }
  expect(seen.map((ids) => ids.length)).toEqual([20, 120, 120, 120, 120]);
  expect(seen.flat()).toEqual(range(500).map((i) => `m${i}`));
});

test("returns no cursor for the page with the first message", async () => {
  await fill(4);
  expect(await page("limit=4")).toMatchObject({ items: [{ id: "m0" }, {}, {}, {}], next_cursor: null });
  expect(await page("limit=3")).toMatchObject({ items: [{ id: "m1" }, {}, {}], next_cursor: "m1" });
  expect(await page("before=m0")).toEqual({ items: [], next_cursor: null });
  expect((await app.get("/api/conversations/c1/messages?before=none")).status).toBe(404);
  expect((await app.get("/api/conversations/none/messages")).status).toBe(404);
  expect((await app.get("/api/conversations/c1/messages?limit=0")).status).toBe(400);
});

test("adds a message at the end or after another, and raises the revision", async () => {
  await fill(3);
  const added = await app.post("/api/conversations/c1/messages", { message: { role: "assistant", content: "end" } });
  expect(added.status).toBe(201);
  const last = await added.json();
  expect(last).toMatchObject({ role: "assistant", content: "end", status: "complete", variant_count: 1 });
  expect((await app.post("/api/conversations/c1/messages", { message: say("n"), after: "m0" })).status).toBe(201);
  const { messages, revision } = await read();
  expect(idsOf(messages)).toEqual(["m0", "n", "m1", "m2", last.id]);
  expect(revision).toBe(3);
  expect(await (await app.get(`/api/conversations/c1/messages/${last.id}`)).json()).toEqual(last);
  const { items } = await (await app.get("/api/conversations?view=summary")).json();
  expect(items).toMatchObject([{ message_count: 5, snippet: "end" }]);
});

test("accepts a message as large as a chat request", async () => {
  await fill(1);
  const content = "x".repeat(3 * 1024 * 1024);
  expect((await app.post("/api/conversations/c1/messages", { message: say("big", content) })).status).toBe(201);
  const patched = await app.patch("/api/conversations/c1/messages/m0", { content: `${content}!` });
  expect(patched.status).toBe(200);
  expect((await read()).messages.map(({ content }) => content.length)).toEqual([content.length + 1, content.length]);
});

test("keeps the order when messages are inserted repeatedly in one place", async () => {
  await fill(30, "x".repeat(1000));
  const expected = range(30).map((i) => `m${i}`);
  for (const i of range(60)) {
    const message = say(`n${i}`, "y".repeat(2000));
    await app.post("/api/conversations/c1/messages", { message, after: "m4" });
    expected.splice(5, 0, `n${i}`);
  }
  expect(idsOf((await read()).messages)).toEqual(expected);
  expect((await app.patch("/api/conversations/c1/messages/n7", { content: "found" })).status).toBe(200);
});

test("rejects a message with a taken id, a missing neighbor or conversation, or a stale revision", async () => {
  await fill(2);
  await app.put("/api/conversations/c2", { messages: [say("other")] });
  const add = (body: Record<string, unknown>, id = "c1", headers = {}) =>
    app.post(`/api/conversations/${id}/messages`, body, { headers });
  expect((await add({ message: say("m1") })).status).toBe(409);
  expect((await add({ message: say("n"), after: "other" })).status).toBe(404);
  expect((await add({ message: say("n") }, "none")).status).toBe(404);
  expect((await add({ message: say("n") }, "c1", { "If-Match": '"7"' })).status).toBe(412);
  expect((await add({ message: { content: 1 } })).status).toBe(400);
  expect(await read()).toMatchObject({ revision: 1, messages: [{ id: "m0" }, { id: "m1" }] });
});

test("returns the current revision with every response about messages", async () => {
  await app.put("/api/conversations/c1", { messages: range(5).map((i) => say(`m${i}`)) });
  let tag = (await app.get("/api/conversations/c1/messages/m1")).headers.get("etag")!;
  expect((await app.get("/api/conversations/c1/messages")).headers.get("etag")).toBe(tag);
  const changes: [string, string, Record<string, unknown>?][] = [
    ["PATCH", "/messages/m1", { content: "edited" }],
    ["POST", "/messages", { message: say("m9") }],
    ["DELETE", "/messages/m2"],
    ["DELETE", "/messages/m3?following=true"],
    ["PATCH", "/messages/m1", { content: "edited again" }],
  ];
  for (const [method, path, body] of changes) {
    const change = () => app.request(method, `/api/conversations/c1${path}`, body, { headers: { "If-Match": tag } });
    const done = await change();
    expect(done.ok, `${method} ${path}`).toBe(true);
    expect((await change()).status, "the tag before is stale").toBe(412);
    tag = done.headers.get("etag")!;
  }
  expect((await app.get("/api/conversations/c1")).headers.get("etag")).toBe(tag);
});

test("removes a message and everything after it in one revision", async () => {
  await fill(200, "x".repeat(500));
  expect((await app.delete("/api/conversations/c1/messages/m70?following=true")).status).toBe(204);
  const { messages, revision } = await read();
  expect(idsOf(messages)).toEqual(range(70).map((i) => `m${i}`));
  expect(revision).toBe(2);
  await app.post("/api/conversations/c1/messages", { message: say("m150", "the id is free again") });
  expect((await read()).messages.at(-1)).toMatchObject({ id: "m150", content: "the id is free again" });
  expect((await app.delete("/api/conversations/c1/messages/m0?following=true")).status).toBe(204);
  expect(await read()).toMatchObject({ messages: [] });
  const { items } = await (await app.get("/api/conversations?view=summary")).json();
  expect(items).toMatchObject([{ message_count: 0, snippet: "" }]);
});

test("shows the text of a running reply, and rejects removing its message", async () => {
  await using llm = await openFakeLlm();
  const { call, reply } = await beginReply(app, llm, "Hel");
  expect(await page("")).toMatchObject({ items: [{ id: "u1" }, { id: "a1", content: "Hel", status: "streaming" }] });
  expect((await app.delete("/api/conversations/c1/messages/u1?following=true")).status).toBe(409);
  await call.finish();
  await reply;
  expect(await savedMessage(app, "a1")).toMatchObject({ status: "complete" });
});

test("creates a conversation with characters and a persona, without inventing a greeting", async () => {
  const response = await app.post("/api/conversations", {
    character_ids: ["ada", "bob"],
    persona_id: "me",
    greeting: 0,
  });
  expect(response.status).toBe(201);
  expect(response.headers.get("etag")).toMatch(/"1"/);
  const conversation = await response.json();
  expect(conversation).toMatchObject({
    participants: [{ character_id: "ada" }, { character_id: "bob" }],
    character_id: "ada",
    persona_id: "me",
    revision: 1,
    messages: [],
  });
  expect(await read(conversation.id)).toEqual(conversation);
  expect((await app.post("/api/conversations", {})).status).toBe(201);
  expect((await app.post("/api/conversations", { character_ids: ["../x"] })).status).toBe(400);
});

test("patches fields of a conversation, clears them with null, and keeps its messages", async () => {
  await fill(3);
  const before = await read();
  const patch = (body: Record<string, unknown>, headers = {}) => app.patch("/api/conversations/c1", body, { headers });
  const changed = await patch({ pinned: true, folder: "Work", custom: { a: 1 } }, { "If-Match": '"1"' });
  expect(changed.status).toBe(200);
  expect(changed.headers.get("etag")).toMatch(/"2"/);
  const answer = await changed.json();
  expect(answer).toMatchObject({ title: "Tea", pinned: true, folder: "Work", custom: { a: 1 }, message_count: 3 });
  expect(answer).not.toHaveProperty("messages");
  await patch({ folder: null, character_id: "ada" });
  const after = await read();
  expect(after).not.toHaveProperty("folder");
  expect(after).toMatchObject({ character_id: "ada", pinned: true, revision: 3, messages: before.messages });
  await patch({ participants: [{ character_id: "ada" }, { character_id: "bob", muted: true }] });
  await patch({ character_id: "cat" });
  expect(await read()).toMatchObject({
    participants: [{ character_id: "cat" }, { character_id: "bob", muted: true }],
    revision: 5,
  });
  const { items } = await (await app.get("/api/conversations?view=summary")).json();
  expect(items).toMatchObject([{ pinned: true, character_ids: ["cat", "bob"], snippet: "says m2", message_count: 3 }]);
});

test("rejects a patch that is stale, contains messages, or names no conversation", async () => {
  await fill(1);
  const before = await read();
  const patch = (body: Record<string, unknown>, headers = {}) => app.patch("/api/conversations/c1", body, { headers });
  expect((await patch({ title: "x" }, { "If-Match": '"9"' })).status).toBe(412);
  expect((await patch({ messages: [] })).status).toBe(400);
  expect((await patch({ title: 1 })).status).toBe(400);
  expect((await patch({ draft: "x", draft_version: 4 })).status).toBe(412);
  expect((await app.patch("/api/conversations/none", { title: "x" })).status).toBe(404);
  expect(await read()).toEqual(before);
  expect((await patch({ draft: "Dear", revision: 77, id: "c9" })).status).toBe(200);
  expect(await read()).toEqual({ ...before, draft: "Dear", draft_version: 1 });
});

test("gives the sizes of pictures with the messages, as they are shown, and stores none that a client sends", async () => {
  const photo = withOrientation(fixtureImage("quarters.jpg"), 6);
  await putPicture(app, "part.png", noise(40, 30));
  await putPicture(app, "photo.jpg", photo);
  await putPicture(app, "other.png", noise(7, 8));
  const messages = [
    { id: "m0", role: "user", content: [picturePart("/api/attachments/part.png")] },
    { id: "m1", role: "assistant", content: "Here", attachments: ["photo.jpg", "gone.png"] },
    { id: "m2", role: "user", content: "Thanks" },
  ];
  await app.put("/api/conversations/c1", { title: "Tea", messages, image_sizes: { "part.png": { width: 1 } } });
  const part = { "part.png": { width: 40, height: 30 } };
  const both = { ...part, "photo.jpg": { width: 32, height: 48 } };
  expect((await page("limit=3")).image_sizes).toEqual(both);
  expect((await page("limit=5&before=m1")).image_sizes).toEqual(part);
  expect((await page("limit=1")).image_sizes).toBeUndefined();
  const recent = async () => await (await app.get("/api/conversations/c1?view=recent&limit=2")).json();
  expect((await recent()).image_sizes).toEqual({ "photo.jpg": both["photo.jpg"] });
  expect(await read()).not.toHaveProperty("image_sizes");
});
