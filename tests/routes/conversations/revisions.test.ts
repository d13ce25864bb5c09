import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { countRows, idsOf, range, readConversation, say, type StoredMessage } from "../../helpers/app/stored_chat.ts";
import { passTime } from "../../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
let app: TestApp;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.parse("2026-01-01T00:00:00Z");
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const put = (body: Record<string, unknown>) => app.put("/api/conversations/c1", body);
const read = () => readConversation(app);
const list = async () => await (await app.get("/api/conversations/c1/revisions")).json();
const restore = (n: number, headers = {}) =>
  app.post(`/api/conversations/c1/revisions/${n}/restore`, undefined, { headers });

/** Counts rows of blocks that no longer belong to the conversation. */
const keptBlocks = (where = "live = 0") => countRows(app, "block", where);

test("stores the state before a save, and restoring it can be undone", async () => {
  await put({ title: "Old", custom: 1, messages: range(80).map((i) => say(`m${i}`, `old ${i} ${"x".repeat(500)}`)) });
  const old = await read();
  await put({ title: "New", messages: [say("m3", "kept but changed"), say("n1")] });
  const young = await read();
  expect(await list()).toMatchObject([{ n: 1, cause: "put", message_count: 80 }]);
  const answer = await restore(1, { "If-Match": '"2"' });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("etag")).toMatch(/"3"/);
  const back = await answer.json();
  expect(back).toMatchObject({ title: "Old", custom: 1, revision: 3 });
  expect(back.messages).toEqual(old.messages);
  expect(await read()).toEqual(back);
  expect(await list()).toMatchObject([{ n: 2, cause: "restore", message_count: 2 }, { n: 1 }]);
  await app.restart();
  expect((await (await restore(2)).json()).messages).toEqual(young.messages);
  expect((await app.patch("/api/conversations/c1/messages/n1", { content: "alive" })).status).toBe(200);
  expect((await (await restore(1)).json()).messages).toEqual(old.messages);
});

test("restores a single edited or removed message and leaves the others unchanged", async () => {
  await put({ messages: range(5).map((i) => say(`m${i}`)) });
  await app.patch("/api/conversations/c1/messages/m1", { content: "edited", model: "x" });
  await app.delete("/api/conversations/c1/messages/m3");
  await app.post("/api/conversations/c1/messages", { message: say("later") });
  expect(await list()).toMatchObject([
    { n: 2, cause: "message_delete", message_count: 5 },
    { n: 1, cause: "message_patch", message_count: 5 },
  ]);
  expect((await restore(1)).status).toBe(200);
  const { messages, revision } = await (await restore(2)).json();
  expect(idsOf(messages)).toEqual(["m0", "m1", "m2", "m3", "m4", "later"]);
  expect(messages[1]!.content).toBe("says m1");
  expect(messages[1]).not.toHaveProperty("model");
  expect(revision).toBe(6);
  expect((await restore(2)).status).toBe(409);
});

test("restores messages removed from a point on, with all versions, in their place", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await gather(await ask(app, 1));
  await gather(await ask(app, 1, { action: "regenerate", messages: [{ role: "user", content: "again" }] }));
  const variants = await (await app.get("/api/conversations/c1/messages/a1/variants")).json();
  expect(variants).toHaveLength(2);
  const before = await read();
  await app.delete("/api/conversations/c1/messages/u1?following=true");
  await app.post("/api/conversations/c1/messages", { message: say("later") });
  const [{ n }] = await list();
  expect(idsOf((await (await restore(n)).json()).messages)).toEqual(["u1", "a1", "later"]);
  expect(await savedMessage(app, "a1")).toEqual(before.messages[1]);
  expect(await (await app.get("/api/conversations/c1/messages/a1/variants")).json()).toEqual(variants);
});

test("restores versions that a save dropped when it is undone", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await gather(await ask(app, 1));
  await gather(await ask(app, 1, { action: "regenerate", messages: [{ role: "user", content: "again" }] }));
  const variants = await (await app.get("/api/conversations/c1/messages/a1/variants")).json();
  const { revision } = await read();
  await put({ messages: [say("u1")] });
  await restore(revision);
  expect(await (await app.get("/api/conversations/c1/messages/a1/variants")).json()).toEqual(variants);
});

test("stores a revision without blocks if only fields change, and none if nothing does", async () => {
  await put({ title: "One", messages: range(40).map((i) => say(`m${i}`, "x".repeat(1000))) });
  await app.patch("/api/conversations/c1", { title: "Two", folder: "F" });
  await put(await read());
  expect(await list()).toMatchObject([{ n: 1, cause: "patch" }]);
  expect(keptBlocks("kept = 1")).toBe(0);
  const { messages } = await read();
  const back = await (await restore(1)).json();
  expect(back).toMatchObject({ title: "One", messages });
  expect(back).not.toHaveProperty("folder");
});

test("keeps fifty revisions and only the blocks they use", async () => {
  await put({ messages: range(30).map((i) => say(`m${i}`, "x".repeat(2000))) });
  const saved = await read();
  for (const i of range(60)) {
    saved.messages[i % 30]!.content = `save ${i} ${"y".repeat(2000)}`;
    await put(saved);
  }
  const revisions = await list();
  expect(revisions.map(({ n }: { n: number }) => n)).toEqual(range(50).map((i) => 60 - i));
  expect((await restore(10)).status).toBe(404);
  expect(keptBlocks()).toBe(50);
  const oldest = await (await restore(11)).json();
  expect(oldest.messages.map(({ content }: StoredMessage) => content.split(" ")[1])).toEqual([
    ...range(10).map(String),
    ...range(20).map(() => undefined),
  ]);
  for (const i of range(50)) await app.patch("/api/conversations/c1/messages/m0", { content: `patch ${i}` });
  expect(await list()).toHaveLength(50);
  expect(keptBlocks()).toBe(0);
  expect(keptBlocks("kept = 1")).toBe(0);
  expect((await read()).messages[0]!.content).toBe("patch 49");
});

test("deletes revisions older than thirty days with their blocks, at the next change or start", async () => {
  await put({ messages: [say("m0", "first")] });
  await put({ messages: [say("m0", "second")] });
  await passTime(app, 29 * DAY_MS, (stepMs) => nowMs += stepMs);
  await put({ messages: [say("m0", "third")] });
  expect(await list()).toMatchObject([{ n: 2 }, { n: 1 }]);
  nowMs += 2 * DAY_MS;
  await app.restart();
  await app.services.runMaintenance();
  expect(await list()).toMatchObject([{ n: 2 }]);
  expect(keptBlocks()).toBe(1);
  await passTime(app, 27 * DAY_MS, (stepMs) => nowMs += stepMs);
  expect(await list()).toMatchObject([{ n: 2 }]);
  nowMs += 2 * DAY_MS;
  await app.patch("/api/conversations/c1/messages/m0", { content: "fourth" });
  expect(await list()).toMatchObject([{ n: 3 }]);
  expect(keptBlocks()).toBe(0);
});

test("rejects a stale or unknown restore, and allows ids used in another conversation", async () => {
  await put({ messages: [say("m0"), say("m1", "mine")] });
  await put({ messages: [say("m0")] });
  await app.put("/api/conversations/c2", { messages: [say("m1", "theirs")] });
  expect((await restore(1, { "If-Match": '"1"' })).status).toBe(412);
  expect((await restore(7)).status).toBe(404);
  expect((await app.post("/api/conversations/c1/revisions/x/restore")).status).toBe(400);
  expect(await read()).toMatchObject({ revision: 2, messages: [{ id: "m0" }] });
  expect((await restore(1)).status).toBe(200);
  expect(await read()).toMatchObject({ messages: [{ id: "m0" }, { id: "m1", content: "mine" }] });
  expect((await (await app.get("/api/conversations/c2")).json()).messages).toMatchObject([{ content: "theirs" }]);
  expect((await app.get("/api/conversations/none/revisions")).status).toBe(404);
});

test("rejects a restore while a reply is running", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await put({ title: "A", messages: [say("m0", "old")] });
  await app.patch("/api/conversations/c1/messages/m0", { content: "new" });
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hel");
  expect((await restore(1)).status).toBe(409);
  await call.finish();
  await gather(await asked);
  expect((await restore(1)).status).toBe(200);
});

test("fails to open a revision that was moved to another number", { tags: ["K02"] }, async () => {
  await put({ messages: [say("m0", "one")] });
  await app.patch("/api/conversations/c1/messages/m0", { content: "two" });
  await app.patch("/api/conversations/c1/messages/m0", { content: "three" });
  const db = openStoredDatabase(app.dataDir);
  db.exec("UPDATE revision SET sealed = (SELECT sealed FROM revision WHERE n = 1) WHERE n = 2");
  db.close();
  expect((await restore(2)).status).toBe(500);
  expect((await read()).messages[0]!.content).toBe("three");
});

test("compares a revision of the whole conversation with the current state", async () => {
  await put({ title: "Old", messages: range(80).map((i) => say(`m${i}`, `old ${i} ${"x".repeat(500)}`)) });
  await put({
    title: "New",
    messages: [...range(79).map((i) => say(`m${i}`, i === 3 ? "changed" : `old ${i} ${"x".repeat(500)}`)), say("n1")],
  });
  const difference = await (await app.get("/api/conversations/c1/revisions/1")).json();
  expect(difference).toMatchObject({ n: 1, cause: "put", message_count: 80, fields: ["title"], more: 0 });
  expect(difference.messages).toEqual([
    { id: "m3", role: "user", change: "changed", before: `old 3 ${"x".repeat(500)}`, after: "changed" },
    { id: "m79", role: "user", change: "removed", before: `old 79 ${"x".repeat(500)}` },
    { id: "n1", role: "user", change: "added", after: "says n1" },
  ]);
});

test("compares a revision of one message, and lists at most 200 differences", async () => {
  await put({ messages: range(300).map((i) => say(`m${i}`)) });
  await app.patch("/api/conversations/c1/messages/m1", { content: "edited" });
  await app.delete("/api/conversations/c1/messages/m2");
  const compare = async (n: number) => await (await app.get(`/api/conversations/c1/revisions/${n}`)).json();
  expect((await compare(1)).messages).toEqual([
    { id: "m1", role: "user", change: "changed", before: "says m1", after: "edited" },
  ]);
  expect((await compare(2)).messages).toEqual([{ id: "m2", role: "user", change: "removed", before: "says m2" }]);
  await put({ messages: [] });
  const { messages, more } = await compare(3);
  expect([messages.length, more]).toEqual([200, 99]);
  expect((await app.get("/api/conversations/c1/revisions/9")).status).toBe(404);
  expect((await app.get("/api/conversations/none/revisions/1")).status).toBe(404);
});
