import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.contextSize = 4_096;
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

const words = (count: number) => "word ".repeat(count).trim();
const inServer = { context: "server", max_tokens: 200 };

function saveChat(count: number, wordsEach: number): Promise<Response> {
  const messages = Array.from(
    { length: count },
    (_, n) => say(`m${n}`, `${n} ${words(wordsEach)}`, n % 2 ? "assistant" : "user"),
  );
  return app.put("/api/conversations/c1", { messages });
}

async function preview(): Promise<{ context_size: number; tokens: number }> {
  const body = { conversation_id: "c1", ...inServer, messages: [{ role: "user", content: "And then?" }] };
  return await (await app.post("/api/chat/preview", body)).json();
}

const sentMessages = (n: number) => (llm.chats.at(n)!.json!.messages as { content: string }[]).length;

test("after a restart of the server with a smaller context, the chat is trimmed and sent again by itself", async () => {
  await useModel(app, llm);
  await saveChat(14, 200);
  expect(await gather(await ask(app, 1, inServer))).toMatchObject({ isDone: true, notices: [] });
  expect(sentMessages(-1)).toBe(15);
  llm.contextSize = 1_024;
  const seen = await gather(await ask(app, 2, inServer));
  expect(seen).toMatchObject({ isDone: true, text: "Hello" });
  expect(seen.notices).toMatchObject([{ code: "prompt_shortened", context_size: 1_024 }]);
  // The refused one and the shorter one.
  expect(llm.chats).toHaveLength(3);
  expect(sentMessages(-1)).toBeLessThan(6);
  const { messages } = await (await app.get("/api/conversations/c1")).json();
  expect(messages.at(-1)).toMatchObject({
    status: "complete",
    left_out: [{ field: "messages", status: 400, reason: expect.stringContaining("1024 tokens") }],
  });
  // The size is known from now on.
  expect((await preview()).context_size).toBe(1_024);
  expect(await gather(await ask(app, 3, inServer))).toMatchObject({ isDone: true, notices: [] });
  expect(llm.chats).toHaveLength(4);
});

test("a context size that the owner set too large is overruled by the server's error", async () => {
  await useModel(app, llm, { context_size: 32_000 });
  await saveChat(14, 400);
  expect(await gather(await ask(app, 1, inServer))).toMatchObject({ isDone: true, text: "Hello" });
  expect((await preview()).context_size).toBe(4_096);
});

test("a test of the connection replaces the known context size at once", async () => {
  await useModel(app, llm);
  await saveChat(2, 10);
  expect((await preview()).context_size).toBe(4_096);
  llm.contextSize = 16_384;
  expect((await preview()).context_size).toBe(4_096);
  const { id } = (await (await app.get("/api/connections")).json())[0];
  const tested = { id, name: "x", kind: "openai", base_url: llm.url };
  expect(await (await app.post("/api/connections/test", tested)).json()).toMatchObject({ context_size: 16_384 });
  expect((await preview()).context_size).toBe(16_384);
});

test("a message that is too long by itself fails after one request", async () => {
  await useModel(app, llm);
  await saveChat(0, 0);
  const messages = [{ role: "user", content: words(5_000) }];
  const refused = await ask(app, 1, { ...inServer, messages });
  expect((await refused.json()).error.message).toContain("4096 tokens");
  expect(llm.chats).toHaveLength(1);
});

test("messages that the client assembled are never left out", async () => {
  await useModel(app, llm);
  const messages = Array.from({ length: 20 }, () => ({ role: "user", content: words(300) }));
  const response = await app.post("/api/chat", { messages, stream: false });
  expect(response.status).toBe(502);
  expect(llm.chats).toHaveLength(1);
});
