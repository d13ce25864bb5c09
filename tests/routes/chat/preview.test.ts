import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { countRows, range, readConversation, say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const save = (body: Record<string, unknown>) => app.put("/api/conversations/c1", body);
const turn = (n: number, words = 10) =>
  say(`m${n}`, `${n} ${"word ".repeat(words)}`.trim(), n % 2 ? "assistant" : "user");
const preview = async (body: Record<string, unknown>) => {
  const response = await app.post("/api/chat/preview", body);
  expect(response.status).toBe(200);
  return await response.json();
};
const lastSent = () => llm.chats.at(-1)!.json!.messages as { role: string; content: string }[];

test("assembles system prompt, note and visible messages, and previews exactly what is sent", async () => {
  await save({
    system_prompt: "Be kind",
    note: { text: "Rain falls", depth: 1 },
    params: { temperature: 0.3, top_k: 40 },
    messages: [turn(0), turn(1), { ...turn(2), hidden: true }, { ...turn(3), reasoning: "thoughts" }, say("e", "")],
  });
  const body = {
    conversation_id: "c1",
    user_message_id: "u1",
    assistant_message_id: "a1",
    context: "server",
    top_k: 7,
    messages: [{ role: "user", content: "And now?" }],
  };
  const before = await readConversation(app);
  const seen = await preview(body);
  expect(seen).toMatchObject({
    context: "server",
    model: "fake-model",
    connection: { id: "double", name: "Double" },
    params: { temperature: 0.3, top_k: 7 },
    counted_by: "server",
    fits: true,
    trimmed: false,
    context_size: 2048,
    context_size_assumed: false,
    answer_tokens: 1024,
    dropped: { count: 0 },
  });
  expect(seen.parts).toEqual([
    { part: "system_prompt", tokens: 6, pieces: [{ part: "main", text: "Be kind", tokens: 6 }] },
    { part: "history", message_id: "m0", tokens: 15 },
    { part: "history", message_id: "m1", tokens: 15 },
    { part: "history", message_id: "m3", tokens: 15 },
    { part: "note", tokens: 6, pieces: [{ part: "note", text: "Rain falls", tokens: 6 }] },
    { part: "history", tokens: 7 },
  ]);
  expect(seen.tokens).toBe(64);
  expect(await readConversation(app)).toEqual(before);
  expect(llm.chats).toHaveLength(0);

  expect(await gather(await app.post("/api/chat", body))).toMatchObject({ isDone: true, text: "Hello" });
  expect(lastSent()).toEqual(seen.messages);
  expect(lastSent().map(({ role }) => role)).toEqual(["system", "user", "assistant", "assistant", "system", "user"]);
  expect(llm.chats.at(-1)!.json).toMatchObject({ temperature: 0.3, top_k: 7 });
  expect((await readConversation(app)).messages.slice(-2)).toMatchObject([{ id: "u1" }, {
    id: "a1",
    content: "Hello",
  }]);
});

test("a chat's context limit omits older messages, and isn't sent", async () => {
  const messages = range(20).map((n) => turn(n, 30));
  await save({ messages });
  const body = {
    conversation_id: "c1",
    context: "server",
    messages: [{ role: "user", content: "And now?" }],
    max_tokens: 50,
  };
  const whole = await preview(body);
  expect(whole.dropped.count).toBe(0);
  await app.patch("/api/conversations/c1", { params: { context_size: 400 } });
  const limited = await preview(body);
  expect(limited.tokens).toBeLessThan(350);
  expect(limited.dropped.count).toBeGreaterThan(0);
  expect(limited.params).toEqual({ max_tokens: 50 });
  await (await app.post("/api/chat", { ...body, stream: true })).text();
  expect(llm.chats.at(-1)!.json).not.toHaveProperty("context_size");
  expect(lastSent().map(({ content }) => content)).toEqual(
    limited.messages.map(({ content }: { content: string }) => content),
  );
});

test("trims a long conversation to the context, lists dropped messages in the preview, and keeps the prefix stable", async () => {
  await save({ messages: range(200).map((n) => turn(n, 20)) });
  let begin: unknown;
  for (const n of [1, 2, 3]) {
    const ids = { conversation_id: "c1", user_message_id: `u${n}`, assistant_message_id: `a${n}` };
    const body = { ...ids, context: "server", messages: [{ role: "user", content: `question ${n}` }] };
    const seen = await preview(body);
    expect(seen).toMatchObject({ trimmed: true, fits: true, counted_by: "server" });
    const oldest = seen.parts[0].message_id;
    expect(seen.dropped).toEqual({
      count: Number(oldest.slice(1)),
      last_message_id: `m${Number(oldest.slice(1)) - 1}`,
      pieces: [],
      lorebook_entries: [],
    });
    await gather(await app.post("/api/chat", body));
    expect(lastSent()).toEqual(seen.messages);
    begin ??= lastSent()[0];
    expect(lastSent()[0]).toEqual(begin);
    expect(lastSent().at(-1)).toEqual({ role: "user", content: `question ${n}` });
  }
});

test("sends the messages before the reply on regenerate, and also the reply on continue", async () => {
  await save({ messages: [turn(0), turn(1), turn(2), turn(3)] });
  for (const [action, count] of [["regenerate", 3], ["continue", 4]] as const) {
    const body = { conversation_id: "c1", assistant_message_id: "m3", action, context: "server" };
    const seen = await preview(body);
    expect(seen.messages).toHaveLength(count);
    await gather(await app.post("/api/chat", body));
    expect(lastSent()).toEqual(seen.messages);
    await save({ messages: [turn(0), turn(1), turn(2), turn(3)] });
  }
  const missing = { conversation_id: "c1", assistant_message_id: "none", action: "continue", context: "server" };
  expect((await app.post("/api/chat/preview", missing)).status).toBe(404);
});

test("sends a stored message once, and replies without a new message", async () => {
  await save({ messages: [turn(0)] });
  const nothingNew = { conversation_id: "c1", assistant_message_id: "a1", context: "server" };
  expect((await preview(nothingNew)).messages).toHaveLength(1);
  expect(await gather(await app.post("/api/chat", nothingNew))).toMatchObject({ text: "Hello" });
  expect(lastSent()).toEqual([{ role: "user", content: turn(0).content }]);
  const stored = { ...nothingNew, user_message_id: "m0", messages: [{ role: "user", content: turn(0).content }] };
  expect((await preview({ ...stored, assistant_message_id: "a2" })).messages).toHaveLength(2);
});

test("previews and counts a client's prompt unchanged, with and without a conversation", async () => {
  const messages = [{ role: "system", content: "one two" }, { role: "user", content: "three", name: "Ada" }];
  for (const ids of [{}, { conversation_id: "c1" }]) {
    const seen = await preview({ messages, ...ids, max_tokens: 50 });
    expect(seen).toMatchObject({ context: "client", messages, tokens: 11, counted_by: "server", answer_tokens: 50 });
    expect(seen).toMatchObject({ trimmed: false, dropped: { count: 0 }, params: { max_tokens: 50 } });
  }
  const large = await preview({ messages: [{ role: "user", content: "word ".repeat(3000) }] });
  expect(large).toMatchObject({ fits: false, trimmed: false });
  expect(countRows(app, "conversation")).toBe(0);
});

test("estimates tokens without a tokenizer, and assumes a context of 8192", async () => {
  await using plain = await openFakeLlm();
  await useModel(app, plain);
  const seen = await preview({ messages: [{ role: "user", content: "x".repeat(400) }] });
  expect(seen).toMatchObject({ tokens: 104, counted_by: "estimate", context_size: 8192, context_size_assumed: true });
  await useModel(app, plain, { context_size: 3000 });
  expect(await preview({ messages: [{ role: "user", content: "x" }] })).toMatchObject({
    context_size: 3000,
    context_size_assumed: false,
  });
});

test("improves estimates by reported token counts, also after a restart", async () => {
  await using plain = await openFakeLlm({ switches: { prompt_tokens: 100 } });
  await useModel(app, plain);
  const question = (letter: string) => ({ messages: [{ role: "user", content: letter.repeat(240) }] });
  expect((await preview(question("x"))).tokens).toBe(64);
  await gather(await ask(app, 1, question("x")));
  await until(async () => (await preview(question("y"))).tokens === 100, "the ratio is learned");
  await app.restart();
  expect((await preview(question("y"))).tokens).toBe(100);
});

test.each([
  ["nothing to send", {}],
  ["nothing to send in an empty list", { messages: [] }],
  ["a server's context without a conversation", { context: "server", messages: [{ role: "user", content: "a" }] }],
  ["a server's context of nothing", { context: "server", conversation_id: "none" }],
])("rejects %s in chat and preview, and stores nothing", async (_, body) => {
  for (const path of ["/api/chat", "/api/chat/preview"]) {
    const response = await app.post(path, body);
    expect(response.status).toBe(400);
    expect((await response.json()).error).toMatchObject({ code: "invalid_request" });
  }
  expect(countRows(app, "conversation")).toBe(0);
});
