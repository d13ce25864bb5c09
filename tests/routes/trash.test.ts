import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, until, useModel } from "../helpers/chat_client.ts";
import { openFakeLlm } from "../helpers/fake_llm.ts";
import { openTestApp, type TestApp } from "../helpers/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
let app: TestApp;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.parse("2026-01-01T00:00:00Z");
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const say = (id: string, content = `says ${id}`) => ({ id, role: "user", content });
const put = (id: string, body: Record<string, unknown>) => app.put(`/api/conversations/${id}`, body);
const read = async (id = "c1") => await (await app.get(`/api/conversations/${id}`)).json();
const list = async (): Promise<{ id: string; kind: string; title: string; deleted_at: string }[]> =>
  await (await app.get("/api/trash")).json();
const restore = (id: string) => app.post(`/api/trash/${id}/restore`);
const idsNow = async () => (await read()).messages.map(({ id }: { id: string }) => id);

function rows(table: string): number {
  const db = new DatabaseSync(`${app.dataDir}/app.db`, { readOnly: true });
  const { count } = db.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number };
  db.close();
  return count;
}

test("a removed conversation comes back whole: messages, texts, draft, revisions and revision", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await gather(await ask(app, 1));
  await gather(await ask(app, 1, { action: "regenerate", messages: [{ role: "user", content: "again" }] }));
  await app.patch("/api/conversations/c1/messages/u1", { content: "edited" });
  await app.patch("/api/conversations/c1/draft", { draft: "Dear" });
  const before = await read();
  const variants = await (await app.get("/api/conversations/c1/messages/a1/variants")).json();
  await app.delete("/api/conversations/c1");
  const [item] = await list();
  expect(item).toMatchObject({ kind: "conversation", title: before.title });
  expect(Date.parse(item!.deleted_at)).toBeLessThan(nowMs);
  await app.restart();
  expect((await restore(item!.id)).status).toBe(204);
  expect(await read()).toEqual(before);
  expect(await (await app.get("/api/conversations/c1/messages/a1/variants")).json()).toEqual(variants);
  expect(await (await app.get("/api/conversations/c1/revisions")).json()).toHaveLength(1);
  expect(await list()).toEqual([]);
  expect((await restore(item!.id)).status).toBe(404);
});

test("a conversation removed while a reply is written comes back with the text so far, stopped", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hel");
  const following = gather(await asked);
  await until(async () => (await read()).messages[1].content === "Hel", "the reply has begun");
  expect((await app.delete("/api/conversations/c1")).status).toBe(204);
  await following;
  expect((await restore((await list())[0]!.id)).status).toBe(204);
  expect((await read()).messages[1]).toMatchObject({ content: "Hel", status: "stopped" });
  expect((await read()).messages[1]).not.toHaveProperty("error");
});

test("an id that a new conversation has taken leaves nothing of the old one to restore", async () => {
  await put("c1", { title: "Old", messages: [say("m1")] });
  await app.delete("/api/conversations/c1");
  const [item] = await list();
  await put("c1", { title: "New", messages: [say("m1")] });
  expect(await list()).toEqual([]);
  expect((await restore(item!.id)).status).toBe(404);
  await app.delete("/api/conversations/c1");
  expect(await list()).toMatchObject([{ title: "New" }]);
});

test.each([
  ["one after another", ["m2", "m3"], [0, 1]],
  ["one after another, last first", ["m2", "m3"], [1, 0]],
  ["backwards", ["m3", "m2"], [0, 1]],
  ["backwards, last first", ["m3", "m2"], [1, 0]],
  ["at the end", ["m3", "m4"], [0, 1]],
  ["at the begin", ["m0", "m1"], [1, 0]],
  ["all of them", ["m0", "m1", "m2", "m3", "m4"], [3, 1, 0, 4, 2]],
])("messages removed %s come back to their places", async (_, removed, order) => {
  await put("c1", { messages: range(5).map((i) => say(`m${i}`)) });
  for (const mid of removed) await app.delete(`/api/conversations/c1/messages/${mid}`);
  const items = (await list()).reverse();
  expect(items.map(({ kind, title }) => [kind, title])).toEqual(removed.map((mid) => ["message", `says ${mid}`]));
  for (const index of order) expect((await restore(items[index]!.id)).status).toBe(204);
  expect(await idsNow()).toEqual(range(5).map((i) => `m${i}`));
  expect(await list()).toEqual([]);
});

test("what was removed from a message on is one entry and comes back before what was said since", async () => {
  await put("c1", { messages: range(120).map((i) => say(`m${i}`, `${i} ${"x".repeat(700)}`)) });
  const { messages } = await read();
  await app.delete("/api/conversations/c1/messages/m20?following=true");
  await app.post("/api/conversations/c1/messages", { message: say("later") });
  const items = await list();
  expect(items).toMatchObject([{ kind: "message" }]);
  expect((await restore(items[0]!.id)).status).toBe(204);
  expect((await read()).messages.slice(0, 120)).toEqual(messages);
  expect((await idsNow()).at(-1)).toBe("later");
});

test("a message whose conversation is gone or whose id is taken stays in the trash", async () => {
  await put("c1", { messages: [say("m0"), say("m1")] });
  await app.delete("/api/conversations/c1/messages/m1");
  const [item] = await list();
  await put("c2", { messages: [say("m1")] });
  expect((await restore(item!.id)).status).toBe(409);
  await app.delete("/api/conversations/c2/messages/m1");
  await app.post("/api/conversations/c1/messages", { message: say("m1", "again") });
  expect((await restore(item!.id)).status).toBe(409);
  await app.delete("/api/conversations/c1");
  expect((await restore(item!.id)).status).toBe(409);
  expect((await list()).map(({ id }) => id)).toContain(item!.id);
  expect((await restore("none")).status).toBe(404);
  expect((await restore("a.b")).status).toBe(400);
});

test("emptying the trash removes everything in it for good and nothing else", async () => {
  await put("c1", { messages: [say("m0"), say("m1")] });
  await put("c2", { messages: [say("n0")] });
  await app.delete("/api/conversations/c1/messages/m1");
  await app.delete("/api/conversations/c2");
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect(await list()).toEqual([]);
  expect([rows("trash"), rows("conversation"), rows("block"), rows("message")]).toEqual([0, 1, 1, 1]);
  expect(await idsNow()).toEqual(["m0"]);
});

test("after seven days nothing can be restored, and the next start removes it for good", async () => {
  await put("c1", { messages: [say("m0"), say("m1")] });
  await app.delete("/api/conversations/c1/messages/m1");
  await app.delete("/api/conversations/c1");
  nowMs += 7 * DAY_MS - 1000;
  await app.restart();
  const items = await list();
  expect(items).toHaveLength(2);
  nowMs += 2000;
  expect(await list()).toEqual([]);
  expect((await restore(items[0]!.id)).status).toBe(404);
  await app.restart();
  expect([rows("trash"), rows("conversation"), rows("block"), rows("message")]).toEqual([0, 0, 0, 0]);
});

test("K01 nothing of what was removed is found in the data folder", async () => {
  await put("c1", { title: "SecretTitleOfMine", messages: [say("m0", "SecretMessageOfMine"), say("m1")] });
  await app.patch("/api/conversations/c1/messages/m1", { content: "SecretEditOfMine" });
  await app.delete("/api/conversations/c1/messages/m0");
  await app.delete("/api/conversations/c1");
  expect((await list()).map(({ title }) => title)).toEqual(["SecretTitleOfMine", "SecretMessageOfMine"]);
  for (const name of ["app.db", "app.db-wal"]) {
    const bytes = await Deno.readFile(`${app.dataDir}/${name}`);
    expect(new TextDecoder("latin1").decode(bytes)).not.toMatch(/Secret(Title|Message|Edit)OfMine/);
  }
});
