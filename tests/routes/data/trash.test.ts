import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChangeEvent } from "../../../services/events/event_hub.ts";
import { ask, beginReply, gather, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { countRows, idsOf, range, readConversation, say } from "../../helpers/app/stored_chat.ts";
import { passTime } from "../../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
let app: TestApp;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.parse("2026-01-01T00:00:00Z");
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const put = (id: string, body: Record<string, unknown>) => app.put(`/api/conversations/${id}`, body);
const read = () => readConversation(app);
const list = async (): Promise<{ id: string; kind: string; title: string; deleted_at: string }[]> =>
  await (await app.get("/api/trash")).json();
const restore = (id: string) => app.post(`/api/trash/${id}/restore`);
const idsNow = async () => idsOf((await read()).messages);
const rows = (table: string) => countRows(app, table);

test("a deleted conversation is restored with messages, draft, revisions and revision number", async () => {
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

test("a conversation deleted during a reply is restored with the text so far, stopped", async () => {
  await using llm = await openFakeLlm();
  const { reply: following } = await beginReply(app, llm, "Hel");
  expect((await app.delete("/api/conversations/c1")).status).toBe(204);
  await following;
  expect((await restore((await list())[0]!.id)).status).toBe(204);
  expect((await read()).messages[1]).toMatchObject({ content: "Hel", status: "stopped" });
  expect((await read()).messages[1]).not.toHaveProperty("error");
});

test("refuses every write to the id of a deleted conversation and names the trash item that restores it", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await put("c1", { title: "Old", messages: [say("m1")] });
  await app.patch("/api/conversations/c1/draft", { draft: "Dear" });
  const before = await read();
  await app.delete("/api/conversations/c1");
  const [item] = await list();
  const writes: [string, () => Promise<Response>][] = [
    ["PUT", () => put("c1", { title: "New", messages: [] })],
    ["PUT with If-Match", () => app.put("/api/conversations/c1", { messages: [] }, { headers: { "If-Match": '"1"' } })],
    ["PATCH", () => app.patch("/api/conversations/c1", { title: "New" })],
    ["draft", () => app.patch("/api/conversations/c1/draft", { draft: "Other" })],
    ["POST messages", () => app.post("/api/conversations/c1/messages", { message: say("m2") })],
    ["PATCH message", () => app.patch("/api/conversations/c1/messages/m1", { content: "New" })],
    ["chat", () => ask(app, 1)],
    ["regenerate", () => ask(app, 1, { action: "regenerate", assistant_message_id: "m1" })],
    ["impersonate", () => ask(app, 1, { action: "impersonate" })],
  ];
  for (const [what, write] of writes) {
    const refused = await write();
    const { error } = await refused.json();
    expect([refused.status, error.code, error.trash_id], what).toEqual([409, "in_trash", item!.id]);
    expect(error.message).toContain(`/api/trash/${item!.id}/restore`);
  }
  expect(llm.requests).toHaveLength(0);
  expect((await app.get("/api/conversations/c1")).status).toBe(404);
  expect((await restore(item!.id)).status).toBe(204);
  expect(await read()).toEqual(before);
});

test("frees the id of a deleted conversation once it is purged, without its draft or its dates", async () => {
  await put("c1", { title: "Old", messages: [say("m1")], created_at: "2020-01-01T00:00:00.000Z" });
  await app.patch("/api/conversations/c1/draft", { draft: "Dear" });
  await app.delete("/api/conversations/c1");
  await app.delete("/api/trash");
  expect((await put("c1", { title: "New", messages: [say("m1")] })).status).toBe(201);
  const { created_at, ...rest } = await read();
  expect(rest).toMatchObject({ title: "New", draft: "", draft_version: 0, revision: 1 });
  expect(Date.parse(created_at as string)).toBeGreaterThan(Date.parse("2026-01-01T00:00:00Z") - 1);
});

test("every change of the trash publishes an event", async () => {
  const told: ChangeEvent[] = [];
  await put("c1", { messages: [say("m0"), say("m1")] });
  const end = app.services.events.subscribe((event) => void told.push(event));
  const tells = async (work: () => Promise<Response>) => {
    told.length = 0;
    expect((await work()).status).toBeLessThan(300);
    expect(told).toContainEqual({ kind: "trash", id: "trash" });
  };
  await tells(() => app.delete("/api/conversations/c1/messages/m0"));
  await tells(async () => restore((await list())[0]!.id));
  await tells(() => app.delete("/api/conversations/c1"));
  await tells(async () => restore((await list())[0]!.id));
  await app.delete("/api/conversations/c1");
  await tells(() => app.delete("/api/trash"));
  told.length = 0;
  await app.delete("/api/trash");
  expect(told).toEqual([]);
  end();
});

test.each([
  ["one after another", ["m2", "m3"], [0, 1]],
  ["one after another, last first", ["m2", "m3"], [1, 0]],
  ["backwards", ["m3", "m2"], [0, 1]],
  ["backwards, last first", ["m3", "m2"], [1, 0]],
  ["at the end", ["m3", "m4"], [0, 1]],
  ["at the begin", ["m0", "m1"], [1, 0]],
  ["all of them", ["m0", "m1", "m2", "m3", "m4"], [3, 1, 0, 4, 2]],
])("messages deleted %s are restored in their places", async (_, removed, order) => {
  await put("c1", { messages: range(5).map((i) => say(`m${i}`)) });
  for (const mid of removed) await app.delete(`/api/conversations/c1/messages/${mid}`);
  const items = (await list()).reverse();
  expect(items.map(({ kind, title }) => [kind, title])).toEqual(removed.map((mid) => ["message", `says ${mid}`]));
  for (const index of order) expect((await restore(items[index]!.id)).status).toBe(204);
  expect(await idsNow()).toEqual(range(5).map((i) => `m${i}`));
  expect(await list()).toEqual([]);
});

test("deleting from a message on makes one entry, restored before later messages", async () => {
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

test("deleting messages returns the trash entry that restores them", async () => {
  await put("c1", { messages: range(5).map((i) => say(`m${i}`)) });
  for (const path of ["m1", "m2?following=true"]) {
    const removed = await app.delete(`/api/conversations/c1/messages/${path}`);
    const [item] = await list();
    expect(removed.headers.get("x-parlor-trash-id")).toBe(item!.id);
    expect((await restore(item!.id)).status).toBe(204);
  }
  expect(await idsNow()).toEqual(range(5).map((i) => `m${i}`));
});

test("a message whose conversation no longer exists or whose ID is taken stays in the trash", async () => {
  await put("c1", { messages: [say("m0"), say("m1")] });
  await app.delete("/api/conversations/c1/messages/m1");
  const [item] = await list();
  await app.post("/api/conversations/c1/messages", { message: say("m1", "again") });
  expect((await restore(item!.id)).status).toBe(409);
  await app.delete("/api/conversations/c1");
  expect((await restore(item!.id)).status).toBe(409);
  expect((await list()).map(({ id }) => id)).toContain(item!.id);
  expect((await restore("none")).status).toBe(404);
  expect((await restore("a.b")).status).toBe(400);
});

test("emptying the trash permanently deletes everything in it and nothing else", async () => {
  await put("c1", { messages: [say("m0"), say("m1")] });
  await put("c2", { messages: [say("n0")] });
  await app.delete("/api/conversations/c1/messages/m1");
  await app.delete("/api/conversations/c2");
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect(await list()).toEqual([]);
  expect([rows("trash"), rows("conversation"), rows("block"), rows("message")]).toEqual([0, 1, 1, 1]);
  expect(await idsNow()).toEqual(["m0"]);
});

test("after seven days nothing can be restored, and the next start deletes it permanently", async () => {
  await put("c1", { messages: [say("m0"), say("m1")] });
  await app.delete("/api/conversations/c1/messages/m1");
  await app.delete("/api/conversations/c1");
  await passTime(app, 7 * DAY_MS - 1000, (stepMs) => nowMs += stepMs);
  await app.restart();
  const items = await list();
  expect(items).toHaveLength(2);
  nowMs += 2000;
  expect(await list()).toEqual([]);
  expect((await restore(items[0]!.id)).status).toBe(404);
  await app.restart();
  const left = () => [rows("trash"), rows("conversation"), rows("block"), rows("message")];
  await expect.poll(left).toEqual([0, 0, 0, 0]);
});

test("no deleted content is found in the data folder", { tags: ["K01"] }, async () => {
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
