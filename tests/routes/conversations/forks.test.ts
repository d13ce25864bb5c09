import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, beginReply, gather, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { range, readConversation, say, type StoredMessage } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const read = (id?: string) => readConversation(app, id);
const fork = (message_id: string, id = "c1") => app.post(`/api/conversations/${id}/fork`, { message_id });
const branches = async (id: string) => await (await app.get(`/api/conversations/${id}/branches`)).json();
const withoutIds = (messages: StoredMessage[]) => messages.map(({ id: _, ...rest }) => rest);

test("forks a conversation up to a message as an independent copy with new ids", async () => {
  await app.put("/api/conversations/c1", {
    title: "Tea",
    custom: 1,
    draft: "Dear",
    summary: { text: "so far", up_to_message_id: "m3" },
    messages: range(300).map((i) => ({ ...say(`m${i}`, `${i} ${"x".repeat(200)}`), extra: i })),
  });
  const origin = await read();
  const response = await fork("m150");
  expect(response.status).toBe(201);
  const copy = await response.json();
  expect(copy).toMatchObject({
    title: "Tea",
    custom: 1,
    draft: "",
    revision: 1,
    forked_from: { conversation_id: "c1", message_id: "m150" },
    summary: { text: "so far", up_to_message_id: copy.messages[3].id },
  });
  expect(withoutIds(copy.messages)).toEqual(withoutIds(origin.messages.slice(0, 151)));
  expect(new Set([...copy.messages, ...origin.messages].map(({ id }: StoredMessage) => id)).size).toBe(451);
  await app.patch(`/api/conversations/${copy.id}/messages/${copy.messages[9].id}`, { content: "changed" });
  await app.delete("/api/conversations/c1/messages/m5");
  expect((await read()).messages[9]!.content).toMatch(/^10 /);
  expect((await read(copy.id)).messages).toHaveLength(151);
  expect((await read(copy.id)).messages[9]!.content).toBe("changed");
  const early = await (await fork("m1")).json();
  expect(early).not.toHaveProperty("summary");
});

test("copies all versions of a reply into a fork", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await gather(await ask(app, 1));
  await gather(await ask(app, 1, { action: "regenerate", messages: [{ role: "user", content: "again" }] }));
  const variants = await (await app.get("/api/conversations/c1/messages/a1/variants")).json();
  const copy = await (await fork("a1")).json();
  const path = `/api/conversations/${copy.id}/messages/${copy.messages[1].id}`;
  await app.delete("/api/conversations/c1");
  await app.delete("/api/trash");
  expect(await (await app.get(`${path}/variants`)).json()).toEqual(variants);
  expect(await (await app.patch(path, { active_variant: 0 })).json()).toMatchObject({ content: variants[0].content });
});

test("copies the text so far of a running reply, which continues in the original", async () => {
  await using llm = await openFakeLlm();
  const { call, reply } = await beginReply(app, llm, "Hel");
  const copy = await (await fork("a1")).json();
  expect(copy.messages[1]).toMatchObject({ content: "Hel", status: "stopped" });
  await call.emit("lo");
  await call.finish();
  expect((await reply).text).toBe("Hello");
  expect((await read(copy.id)).messages[1]!.content).toBe("Hel");
});

test("lists the existing origin and forks, also after changes and removals", async () => {
  await app.put("/api/conversations/c1", { title: "Root", messages: range(3).map((i) => say(`m${i}`)) });
  expect(await branches("c1")).toEqual({ origin: null, forks: [] });
  const first = await (await fork("m0")).json();
  const second = await (await fork("m2")).json();
  await app.patch(`/api/conversations/${first.id}`, { title: "Renamed" });
  const nested = await (await fork(second.messages[1].id, second.id)).json();
  const { origin, forks } = await branches("c1");
  expect(origin).toBeNull();
  expect(forks).toHaveLength(2);
  expect(forks).toEqual(expect.arrayContaining([
    expect.objectContaining({ conversation_id: first.id, message_id: "m0", title: "Renamed", message_count: 1 }),
    expect.objectContaining({ conversation_id: second.id, message_id: "m2", title: "Root", message_count: 3 }),
  ]));
  expect(await branches(second.id)).toMatchObject({
    origin: { conversation_id: "c1", message_id: "m2", title: "Root" },
    forks: [{ conversation_id: nested.id, message_id: second.messages[1].id }],
  });
  await app.delete(`/api/conversations/${first.id}`);
  expect((await branches("c1")).forks).toMatchObject([{ conversation_id: second.id }]);
  await app.delete("/api/conversations/c1");
  expect((await branches(second.id)).origin).toBeNull();
});

test("finds forks among many conversations, with one unreadable, for concurrent requests", async () => {
  await app.put("/api/conversations/c1", { title: "Root", messages: [say("m0")] });
  const copy = await (await fork("m0")).json();
  await Promise.all(range(150).map((i) => app.put(`/api/conversations/other${i}`, { messages: [] })));
  using db = openStoredDatabase(app.dataDir);
  db.exec("UPDATE conversation SET head = zeroblob(40) WHERE id = 'other7'");
  const answers = await Promise.all(range(4).map(() => branches("c1")));
  for (const { forks } of answers) expect(forks).toMatchObject([{ conversation_id: copy.id, message_id: "m0" }]);
});

test("rejects a fork of a missing message and creates nothing", async () => {
  await app.put("/api/conversations/c1", { messages: [say("m0")] });
  await app.put("/api/conversations/c2", { messages: [say("n0")] });
  expect((await fork("n0")).status).toBe(404);
  expect((await fork("m0", "none")).status).toBe(404);
  expect((await app.post("/api/conversations/c1/fork", {})).status).toBe(400);
  expect((await app.get("/api/conversations/none/branches")).status).toBe(404);
  expect(await (await app.get("/api/conversations")).json()).toHaveLength(2);
});
