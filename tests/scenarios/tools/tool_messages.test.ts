/** Messages with calls of tools and their results, as clients and imports store them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

const CALL = {
  id: "call_1",
  type: "function",
  function: { name: "lookup", arguments: '{"q":"lighthouse"}' },
  state: "done",
  server_id: "files",
  vendor_field: { kept: true },
};
const MESSAGES = [
  { id: "u1", role: "user", content: "Look it up" },
  { id: "r1", role: "assistant", content: "", tool_calls: [CALL], reply_id: "a1" },
  { id: "t1", role: "tool", tool_call_id: "call_1", content: "It stands on a cliff", reply_id: "a1" },
  { id: "a1", role: "assistant", content: "On a cliff." },
  { id: "u2", role: "user", content: "Thanks" },
];

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  llm = await openFakeLlm({ pieces: ["Again"] });
  app = await openTestApp();
  await useModel(app, llm);
  expect((await app.put("/api/conversations/c1", { title: "Tools", messages: MESSAGES })).status).toBe(201);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

type Stored = Record<string, unknown> & { id: string };
const messages = async (id = "c1"): Promise<Stored[]> =>
  (await (await app.get(`/api/conversations/${id}`)).json()).messages;
const ids = async () => (await messages()).map(({ id }) => id);

test("stores and returns calls and results unchanged", async () => {
  expect(await messages()).toEqual(MESSAGES.map((message) => expect.objectContaining(message)));
  const more = { role: "tool", tool_call_id: "x", content: "more" };
  expect(await (await app.post("/api/conversations/c1/messages", { message: more })).json()).toMatchObject(more);
  expect((await messages()).at(-1)).toMatchObject(more);
});

test("finds what tools were called with and what they returned", async () => {
  const hits = async (q: string) =>
    (await (await app.get(`/api/search?q=${q}`)).json()).items.map((item: Stored) => item.message_id);
  expect(await hits("lighthouse")).toEqual(["r1"]);
  expect(await hits("stands")).toEqual(["t1"]);
});

test("exports calls and results as Markdown, and omits them for programs without tools", async () => {
  const file = async (format: string) => await (await app.get(`/api/conversations/c1/export?format=${format}`)).text();
  const markdown = await file("markdown");
  expect(markdown).toContain('*Called lookup (done):*\n\n```\n{"q":"lighthouse"}\n```');
  expect(markdown).toContain("**Tool**");
  expect(markdown).toContain("It stands on a cliff");
  const lines = (await file("tavern")).trim().split("\n").slice(1).map((line) => JSON.parse(line).mes);
  expect(lines).toEqual(["Look it up", "On a cliff.", "Thanks"]);
  expect(JSON.parse(await file("json")).messages[1].tool_calls).toEqual([CALL]);
});

test("keeps the rounds of a reply with its version", async () => {
  await app.delete("/api/conversations/c1/messages/u2");
  const before = await messages();
  await gather(
    await ask(app, 1, { action: "regenerate", context: "server", messages: [], user_message_id: undefined }),
  );
  expect(llm.chats.at(-1)!.json!.messages).toEqual([{ role: "user", content: "Look it up" }]);
  expect(await ids()).toEqual(["u1", "a1"]);
  const switched = await app.patch("/api/conversations/c1/messages/a1", { active_variant: 0 });
  expect(await switched.json()).not.toHaveProperty("tool_rounds");
  expect(await messages()).toEqual([
    ...before.slice(0, 3),
    { ...before[3], variant_count: 2, updated_at: expect.any(String) },
  ]);
  expect((await (await app.get("/api/conversations?view=summary")).json()).items[0].message_count).toBe(4);
  await app.patch("/api/conversations/c1/messages/a1", { active_variant: 1 });
  expect(await messages()).toMatchObject([{ id: "u1" }, { id: "a1", content: "Again" }]);
});

test("edits a message of a reply with tools in its place", async () => {
  await app.patch("/api/conversations/c1/messages/a1", { content: "On a rock." });
  await app.patch("/api/conversations/c1/messages/t1", { content: "It stands on a rock" });
  expect((await messages()).map(({ content }) => content)).toEqual([
    "Look it up",
    "",
    "It stands on a rock",
    "On a rock.",
    "Thanks",
  ]);
});

test.each(["r1", "t1", "a1"])("removes and restores a reply with tools as a whole, by %s", async (mid) => {
  const before = await messages();
  const removed = await app.delete(`/api/conversations/c1/messages/${mid}`);
  expect(await ids()).toEqual(["u1", "u2"]);
  expect((await app.post(`/api/trash/${removed.headers.get("X-Parlor-Trash-Id")}/restore`)).ok).toBe(true);
  expect(await messages()).toEqual(before);
  await app.delete(`/api/conversations/c1/messages/${mid}?following=true`);
  expect(await ids()).toEqual(["u1"]);
});

test("handles rounds whose results fill several blocks", async () => {
  const long = Array.from({ length: 6 }, (_, n) => [
    { id: `r${n}`, role: "assistant", content: "", tool_calls: [{ ...CALL, id: `call_${n}` }], reply_id: "a1" },
    { id: `t${n}`, role: "tool", tool_call_id: `call_${n}`, content: `${n}`.repeat(20_000), reply_id: "a1" },
  ]).flat();
  const all = [MESSAGES[0]!, ...long, MESSAGES[3]!];
  await app.put("/api/conversations/c1", { title: "Tools", messages: all });
  await gather(
    await ask(app, 1, { action: "regenerate", context: "server", messages: [], user_message_id: undefined }),
  );
  expect(await ids()).toEqual(["u1", "a1"]);
  await app.patch("/api/conversations/c1/messages/a1", { active_variant: 0 });
  expect(await messages()).toMatchObject(all);
  await app.delete("/api/conversations/c1/messages/t3");
  expect(await ids()).toEqual(["u1"]);
});

test("copies a reply with tools into a fork, where it is still one", async () => {
  const { id } = await (await app.post("/api/conversations/c1/fork", { message_id: "a1" })).json();
  const copied = await messages(id);
  expect(copied).toHaveLength(4);
  expect(copied[1]!.reply_id).toBe(copied[3]!.id);
  await app.delete(`/api/conversations/${id}/messages/${copied[2]!.id}`);
  expect(await messages(id)).toHaveLength(1);
});
