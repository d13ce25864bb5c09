/** Versions of user messages: each is followed by messages of its own. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { unzipSync } from "fflate";
import { importReport } from "../../helpers/app/imported.ts";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const C1 = "/api/conversations/c1";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  [app, llm] = await Promise.all([openTestApp(), openFakeLlm()]);
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

interface Said {
  id: string;
  content: unknown;
  variant_count: number;
  active_variant: number;
  [field: string]: unknown;
}

const conversation = async (id = "c1"): Promise<{ revision: number; messages: Said[]; [field: string]: unknown }> =>
  await (await app.get(`/api/conversations/${id}`)).json();
const texts = async (id = "c1") => (await conversation(id)).messages.map(({ content }) => content);
const versionsOf = async (mid: string) => await (await app.get(`${C1}/messages/${mid}/variants`)).json();
const summary = async () => (await (await app.get("/api/conversations?view=summary")).json()).items[0];

/** Sends `count` messages and completes their replies. */
async function talk(count: number): Promise<void> {
  for (let n = 1; n <= count; n++) {
    llm.pieces = [`answer ${n}`];
    await gather(await ask(app, n));
  }
}

/** Edits the user message `u<n>` and lets the reply `mid` complete. */
async function edit(n: number, text: string, mid: string, fields: Record<string, unknown> = {}) {
  llm.pieces = [`answer to ${text}`];
  const body = { action: "edit", messages: [{ role: "user", content: text }], assistant_message_id: mid, ...fields };
  return await gather(await ask(app, n, body));
}

const switchTo = (mid: string, n: number) => app.patch(`${C1}/messages/${mid}`, { active_variant: n });

test("adds a version with its own reply on edit, and switches the rest of the chat with it", async () => {
  await talk(3);
  const before = await conversation();
  const answer = await edit(2, "other", "b2");
  expect(answer).toMatchObject({ text: "answer to other", isDone: true });
  const after = await conversation();
  expect(after.messages.map(({ id, content }) => [id, content])).toEqual([
    ...[["u1", "question 1"], ["a1", "answer 1"], ["u2", "other"], ["b2", "answer to other"]],
  ]);
  expect(after.messages[2]).toMatchObject({ role: "user", variant_count: 2, active_variant: 1 });
  expect(await summary()).toMatchObject({ message_count: 4, snippet: "answer to other" });
  expect(await versionsOf("u2")).toEqual([
    { n: 0, content: "question 2", created_at: expect.any(String), message_count: 3 },
    { n: 1, content: "other", created_at: expect.any(String), message_count: 1 },
  ]);
  const switched = await switchTo("u2", 0);
  expect(switched.status).toBe(200);
  expect(await switched.json()).toMatchObject({ id: "u2", content: "question 2", variant_count: 2, active_variant: 0 });
  expect((await conversation()).messages).toEqual([
    ...before.messages.slice(0, 2),
    { ...before.messages[2], variant_count: 2 },
    ...before.messages.slice(3),
  ]);
  expect(await summary()).toMatchObject({ message_count: 6, snippet: "answer 3" });
  expect((await switchTo("u2", 1)).status).toBe(200);
  expect((await conversation()).messages).toEqual(after.messages);
  expect((await switchTo("u2", 2)).status).toBe(400);
});

test("sends the messages before the edited one, and its new text", async () => {
  await talk(2);
  await edit(1, "other", "b1", { context: "server" });
  const sent = llm.chats.at(-1)!.json as { messages: { role: string; content: string }[] };
  expect(sent.messages.filter(({ role }) => role !== "system")).toEqual([{ role: "user", content: "other" }]);
  const body = { conversation_id: "c1", user_message_id: "u1", action: "edit", context: "server" };
  const preview =
    await (await app.post("/api/chat/preview", { ...body, messages: [{ role: "user", content: "third" }] }))
      .json();
  expect(preview.messages.filter(({ role }: { role: string }) => role !== "system")).toEqual([
    { role: "user", content: "third" },
  ]);
  expect(await texts()).toEqual(["other", "answer to other"]);
});

test("returns the existing reply for the same edit, without another version", async () => {
  await talk(1);
  await edit(1, "other", "b1");
  const { revision } = await conversation();
  const again = await edit(1, "other", "b1");
  expect(again.text).toBe("answer to other");
  expect((await conversation()).revision).toBe(revision);
  await switchTo("u1", 0);
  expect((await edit(1, "other", "b1")).text).toBe("answer to other");
  expect((await versionsOf("u1")).length).toBe(2);
});

test("retries an edit that failed without text, without another version", async () => {
  await talk(1);
  llm.switches.fail = "no_answer";
  const body = { action: "edit", messages: [{ role: "user", content: "other" }], assistant_message_id: "b1" };
  await (await ask(app, 1, body)).body?.cancel();
  await until(async () => (await conversation()).messages[1]?.status === "failed", "the reply has failed");
  llm.switches.fail = "none";
  expect((await edit(1, "other", "b1")).text).toBe("answer to other");
  expect(await texts()).toEqual(["other", "answer to other"]);
  expect((await versionsOf("u1")).length).toBe(2);
});

test("rejects an edit of a message that is missing, not the user's or off the path, and during a reply", async () => {
  await talk(2);
  const body = { action: "edit", messages: [{ role: "user", content: "x" }] };
  const statusOf = async (fields: Record<string, unknown>) => {
    const response = await ask(app, 1, { ...body, assistant_message_id: "b1", ...fields });
    await response.body?.cancel();
    return response.status;
  };
  expect(await statusOf({ user_message_id: "nobody" })).toBe(404);
  expect(await statusOf({ conversation_id: "none" })).toBe(404);
  expect(await statusOf({ user_message_id: "a1" })).toBe(400);
  expect(await statusOf({ user_message_id: undefined })).toBe(400);
  expect(await statusOf({ conversation_id: undefined })).toBe(400);
  expect(await statusOf({ messages: [{ role: "assistant", content: "x" }] })).toBe(400);
  expect(await statusOf({ assistant_message_id: "u1" })).toBe(400);
  await edit(1, "other", "b1");
  expect(await statusOf({ user_message_id: "u2", assistant_message_id: "b2" })).toBe(409);
  llm.switches.manual = "on";
  const running = ask(app, 3);
  const call = await llm.nextCall();
  await call.emit("an");
  expect(await statusOf({ assistant_message_id: "b3" })).toBe(409);
  expect((await switchTo("u1", 0)).status).toBe(409);
  await call.finish();
  await gather(await running);
  expect((await switchTo("u1", 0)).status).toBe(200);
});

test("reads messages off the path, but changes them only when their version is active", async () => {
  await talk(2);
  await edit(1, "other", "b1");
  expect((await app.get(`${C1}/messages/a2`)).status).toBe(200);
  expect((await app.patch(`${C1}/messages/a2`, { content: "x" })).status).toBe(409);
  expect((await app.delete(`${C1}/messages/a2`)).status).toBe(409);
  expect((await app.post(`${C1}/messages`, { message: { id: "u2", content: "x" } })).status).toBe(409);
  expect((await app.post(`${C1}/messages`, { message: { content: "x" }, after: "a2" })).status).toBe(409);
  expect((await app.post(`${C1}/fork`, { message_id: "a2" })).status).toBe(409);
  expect((await app.put(C1, { messages: [{ id: "a2", content: "x" }] })).status).toBe(409);
  for (const action of ["regenerate", "continue"]) {
    const response = await ask(app, 1, { action, assistant_message_id: "a2" });
    await response.body?.cancel();
    expect(response.status, action).toBe(409);
  }
  const response = await ask(app, 2, { assistant_message_id: "c2" });
  await response.body?.cancel();
  expect(response.status).toBe(409);
  expect(await texts()).toEqual(["other", "answer to other"]);
});

test("nests versions, and restores the last active path below on a switch", async () => {
  await talk(2);
  await edit(1, "one", "b1");
  await gather(await ask(app, 3));
  await edit(3, "three", "b3");
  await switchTo("u1", 0);
  await edit(2, "two", "b2");
  expect(await texts()).toEqual(["question 1", "answer 1", "two", "answer to two"]);
  await switchTo("u1", 1);
  expect(await texts()).toEqual(["one", "answer to one", "three", "answer to three"]);
  await switchTo("u3", 0);
  expect(await texts()).toEqual(["one", "answer to one", "question 3", "answer to one"]);
  await switchTo("u1", 0);
  await switchTo("u2", 0);
  expect(await texts()).toEqual(["question 1", "answer 1", "question 2", "answer 2"]);
  expect((await versionsOf("u1")).map(({ message_count: count }: { message_count: number }) => count)).toEqual([3, 3]);
});

test("keeps versions and their continuations when the whole conversation is saved", async () => {
  await talk(2);
  await edit(2, "two", "b2");
  await edit(1, "one", "b1");
  await switchTo("u1", 0);
  const document = await conversation();
  expect((await app.put(C1, document)).status).toBe(200);
  const [u1, , u2, b2] = document.messages;
  // a1 is removed, one is inserted, and the last one differs.
  const messages = [{ id: "n0", content: "new" }, u1, u2, { ...b2, content: "changed" }, { id: "n1", content: "end" }];
  expect((await app.put(C1, { ...document, messages })).status).toBe(200);
  expect(await texts()).toEqual(["new", "question 1", "two", "changed", "end"]);
  await switchTo("u2", 0);
  expect(await texts()).toEqual(["new", "question 1", "question 2", "answer 2"]);
  await switchTo("u1", 1);
  expect(await texts()).toEqual(["new", "one", "answer to one"]);
  const variants = [{ content: "a" }, { content: "b" }, { content: "c" }];
  const refused = await app.put(C1, { messages: [{ ...u1, variants, active_variant: 0 }] });
  expect(refused.status).toBe(400);
});

test("undoes a save that dropped a message with versions", async () => {
  await talk(2);
  await edit(1, "one", "b1");
  await switchTo("u1", 0);
  const before = await conversation();
  expect((await app.put(C1, { messages: before.messages.slice(1) })).status).toBe(200);
  expect(await texts()).toEqual(["answer 1", "question 2", "answer 2"]);
  // Its IDs can be used again.
  expect((await app.post(`${C1}/messages`, { message: { id: "b1", content: "again" } })).status).toBe(201);
  const revisions = await (await app.get(`${C1}/revisions`)).json();
  const put = revisions.find(({ cause }: { cause: string }) => cause === "put");
  expect((await app.post(`${C1}/revisions/${put.n}/restore`)).status).toBe(200);
  expect((await conversation()).messages).toEqual(before.messages);
  await switchTo("u1", 1);
  expect(await texts()).toEqual(["one", "answer to one"]);
  // Undoing the undo.
  const [restore] = await (await app.get(`${C1}/revisions`)).json();
  expect((await app.post(`${C1}/revisions/${restore.n}/restore`)).status).toBe(200);
  expect(await texts()).toEqual(["answer 1", "question 2", "answer 2", "again"]);
});

test.each(["", "?following=true"])(
  "moves a message with its versions to the trash as one entry (%s), and restores it",
  async (query) => {
    await talk(3);
    await edit(3, "three", "b3");
    await edit(2, "two", "b2");
    await edit(2, "zwei", "c2");
    await switchTo("u2", 0);
    const before = await conversation();
    const removal = await app.delete(`${C1}/messages/u2${query}`);
    expect(removal.status).toBe(204);
    expect(await texts()).toEqual(["question 1", "answer 1"]);
    expect(await summary()).toMatchObject({ message_count: 2, snippet: "answer 1" });
    const trash = await (await app.get("/api/trash")).json();
    expect(trash).toHaveLength(1);
    // Items in the trash don't conflict.
    const id = removal.headers.get("x-parlor-trash-id");
    expect((await app.post(`/api/trash/${id}/restore`)).status).toBe(204);
    expect((await conversation()).messages).toEqual(before.messages);
    expect(await summary()).toMatchObject({ message_count: 6 });
    await switchTo("u3", 0);
    expect((await texts()).slice(-2)).toEqual(["question 3", "answer 3"]);
    await switchTo("u2", 1);
    expect(await texts()).toEqual(["question 1", "answer 1", "two", "answer to two"]);
    await switchTo("u2", 2);
    expect(await texts()).toEqual(["question 1", "answer 1", "zwei", "answer to zwei"]);
  },
);

test("restores a removed message after its version, also while another is active", async () => {
  await talk(2);
  await edit(1, "one", "b1");
  const removed = await app.delete(`${C1}/messages/b1`);
  await switchTo("u1", 0);
  const { messages } = await conversation();
  await app.post(`/api/trash/${removed.headers.get("x-parlor-trash-id")}/restore`);
  expect((await conversation()).messages).toEqual(messages);
  expect(await summary()).toMatchObject({ message_count: 4, snippet: "answer 2" });
  await switchTo("u1", 1);
  expect(await texts()).toEqual(["one", "answer to one"]);
});

test("switches to a version when its earlier text is restored", async () => {
  await talk(1);
  await app.patch(`${C1}/messages/u1`, { content: "in place" });
  await edit(1, "one", "b1");
  const [{ n }] = await (await app.get(`${C1}/revisions`)).json();
  expect((await app.post(`${C1}/revisions/${n}/restore`)).status).toBe(200);
  expect(await texts()).toEqual(["question 1", "answer 1"]);
  await switchTo("u1", 1);
  expect(await texts()).toEqual(["one", "answer to one"]);
});

test("copies only the active path into a fork", async () => {
  await talk(2);
  await edit(2, "two", "b2");
  const fork = await (await app.post(`${C1}/fork`, { message_id: "b2" })).json();
  expect(await texts(fork.id)).toEqual(["question 1", "answer 1", "two", "answer to two"]);
  expect((await conversation(fork.id)).messages[2]).toMatchObject({ variant_count: 1, active_variant: 0 });
});

test("uses the active path for search, pages and new messages", async () => {
  await talk(3);
  await edit(2, "two", "b2");
  const found = async (q: string) =>
    (await (await app.get(`/api/search?q=${q}`)).json()).items.map((hit: { message_id: string }) => hit.message_id);
  expect(await found("question")).toEqual([null, "u1"]);
  expect(await found("two")).toEqual(["b2", "u2"]);
  await app.post(`${C1}/messages`, { message: { id: "n1", content: "more two" } });
  await app.post(`${C1}/messages`, { message: { id: "n2", content: "between two" }, after: "u2" });
  expect(await texts()).toEqual(["question 1", "answer 1", "two", "between two", "answer to two", "more two"]);
  const page = await (await app.get(`${C1}/messages?limit=3`)).json();
  expect(page).toMatchObject({ items: [{ id: "n2" }, { id: "b2" }, { id: "n1" }], next_cursor: "n2" });
  const earlier = await (await app.get(`${C1}/messages?limit=3&before=n2`)).json();
  expect(earlier).toMatchObject({ items: [{ id: "u1" }, { id: "a1" }, { id: "u2" }], next_cursor: null });
  await switchTo("u2", 0);
  expect(await found("two")).toEqual([]);
  expect(await found("question")).toEqual([null, "u3", "u2", "u1"]);
});

test("stores images and extra fields per version", async () => {
  await talk(1);
  const said = { role: "user", content: "one", attachments: ["x.png"], extra: { mood: "calm" } };
  await edit(1, "one", "b1", { messages: [said] });
  expect((await conversation()).messages[0]).toMatchObject({
    content: "one",
    attachments: ["x.png"],
    extra: { mood: "calm" },
  });
  await switchTo("u1", 0);
  const [first] = (await conversation()).messages;
  expect(first).not.toHaveProperty("attachments");
  expect(first).not.toHaveProperty("extra");
  await switchTo("u1", 1);
  expect((await conversation()).messages[0]).toMatchObject({ attachments: ["x.png"], extra: { mood: "calm" } });
});

test("keeps versions over a restart and a restore of their conversation", async () => {
  await talk(2);
  await edit(1, "one", "b1");
  await app.delete(C1);
  await app.restart();
  const [item] = await (await app.get("/api/trash")).json();
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(204);
  expect(await texts()).toEqual(["one", "answer to one"]);
  await switchTo("u1", 0);
  expect(await texts()).toEqual(["question 1", "answer 1", "question 2", "answer 2"]);
});

test("drops a summary that covers a switched message", async () => {
  await talk(3);
  const summaryOf = async () => (await conversation()).summary;
  await app.patch(C1, { summary: { text: "So far", up_to_message_id: "a1" } });
  await edit(2, "two", "b2");
  expect(await summaryOf()).toBeDefined();
  await switchTo("u2", 0);
  await app.patch(C1, { summary: { text: "So far", up_to_message_id: "a2" } });
  await switchTo("u2", 1);
  expect(await summaryOf()).toBeUndefined();
});

test("exports and imports all versions with their continuations", async () => {
  await talk(2);
  await edit(2, "two", "b2");
  await edit(1, "one", "b1");
  await ask(app, 1, { action: "regenerate", assistant_message_id: "b1" }).then(gather);
  const before = await conversation();
  const bytes = new Uint8Array(await (await app.get("/api/export")).arrayBuffer());
  expect(Object.keys(unzipSync(bytes))).toContain("continuations/c1.jsonl");
  const json = await (await app.get(`${C1}/export?format=json`)).json();
  expect(json.continuations.map(({ message_id, n, messages }: { message_id: string; n: number; messages: Said[] }) => [
    ...[message_id, n],
    messages.map(({ id }) => id),
  ])).toEqual([["u1", 0, ["a1", "u2", "b2"]], ["u2", 0, ["a2"]]]);
  await using other = await openTestApp();
  const report = await importReport(other, "kind=parlor", bytes);
  expect(report.lines.filter(({ level }) => level === "refused")).toEqual([]);
  const first = app;
  try {
    app = other;
    expect((await conversation()).messages).toEqual(before.messages);
    await switchTo("u1", 0);
    expect(await texts()).toEqual(["question 1", "answer 1", "two", "answer to two"]);
    await switchTo("u2", 0);
    expect(await texts()).toEqual(["question 1", "answer 1", "question 2", "answer 2"]);
    await switchTo("u1", 1);
    expect((await conversation()).messages).toEqual(before.messages);
    expect((await importReport(other, "kind=parlor", bytes)).lines.map(({ level }) => level)).not.toContain("refused");
  } finally {
    app = first;
  }
});

test("doesn't switch to or restore a version that was added after the restored state", async () => {
  await talk(1);
  await app.put(C1, {
    ...await conversation(),
    messages: [...(await conversation()).messages, { id: "n1", content: "x" }],
  });
  const [{ n: before }] = await (await app.get(`${C1}/revisions`)).json();
  await edit(1, "one", "b1");
  await app.patch(`${C1}/messages/u1`, { content: "one, changed" });
  const [{ n: patched }] = await (await app.get(`${C1}/revisions`)).json();
  expect((await app.post(`${C1}/revisions/${before}/restore`)).status).toBe(200);
  expect(await texts()).toEqual(["question 1", "answer 1"]);
  expect((await switchTo("u1", 1)).status).toBe(400);
  expect((await app.post(`${C1}/revisions/${patched}/restore`)).status).toBe(409);
  expect((await conversation()).messages[0]).toMatchObject({ variant_count: 1, active_variant: 0 });
});

test("stores each version with the fields it was sent with", async () => {
  const first = { role: "user", content: "question 1", mood: "calm", name: "Ada" };
  await gather(await ask(app, 1, { messages: [first] }));
  const other = { role: "user", content: "other", mood: "cross", source: "voice" };
  await gather(await ask(app, 1, { action: "edit", messages: [other], assistant_message_id: "b1" }));
  const [edited] = (await conversation()).messages;
  expect(edited).toMatchObject({ ...other, variant_count: 2, active_variant: 1 });
  expect(edited).not.toHaveProperty("name");
  expect((await switchTo("u1", 0)).status).toBe(200);
  const [back] = (await conversation()).messages;
  expect(back).toMatchObject({ ...first, active_variant: 0 });
  expect(back).not.toHaveProperty("source");
  await switchTo("u1", 1);
  expect((await conversation()).messages[0]).toEqual(edited);
});

test("compares a revision with the active path", async () => {
  await talk(3);
  await edit(2, "other", "b2");
  const { revision, messages } = await conversation();
  await app.put(C1, { messages: messages.map((one) => one.id === "b2" ? { ...one, content: "changed" } : one) });
  const difference = await (await app.get(`${C1}/revisions/${revision}`)).json();
  expect(difference.messages).toEqual([
    { id: "b2", role: "assistant", change: "changed", before: "answer to other", after: "changed" },
  ]);
  await switchTo("u2", 0);
  const switched = await (await app.get(`${C1}/revisions/${revision}`)).json();
  expect(switched.messages.map(({ id, change }: { id: string; change: string }) => [id, change])).toEqual([
    ...[["u2", "changed"], ["b2", "removed"], ["a2", "added"], ["u3", "added"], ["a3", "added"]],
  ]);
});
