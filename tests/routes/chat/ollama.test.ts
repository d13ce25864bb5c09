import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, framesOf, gather, understand, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeOllama, openFakeOllama } from "../../helpers/fakes/llm/fake_ollama.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let ollama: FakeOllama;
beforeEach(async () => {
  app = await openTestApp();
  ollama = await openFakeOllama();
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await ollama[Symbol.asyncDispose]();
});

/** About one token per word, both by Parlor's estimate and by the fake's count. */
const words = (count: number) => "word ".repeat(count).trim();
const connect = (fields: Record<string, unknown> = {}) => useModel(app, ollama, { kind: "ollama", ...fields });

function saveChat(count: number, wordsEach: number): Promise<Response> {
  const messages = Array.from(
    { length: count },
    (_, n) => say(`m${n}`, words(wordsEach), n % 2 ? "assistant" : "user"),
  );
  return app.put("/api/conversations/c1", { messages });
}

async function preview(fields: Record<string, unknown> = {}) {
  const messages = [{ role: "user", content: "And then?" }];
  const body = { conversation_id: "c1", context: "server", messages, max_tokens: 500, ...fields };
  return await (await app.post("/api/chat/preview", body)).json();
}

const inServer = { context: "server", max_tokens: 500 };

test("the preview shows the context that the reply requests, and the whole chat is sent", async () => {
  await connect();
  await saveChat(10, 1_000);
  const seen = await preview();
  expect(seen).toMatchObject({ context_size: 16_384, context_size_assumed: false, fits: true, trimmed: false });
  expect(await gather(await ask(app, 1, inServer))).toMatchObject({ isDone: true, text: "Hello", notices: [] });
  expect(ollama.askedSizes).toEqual([16_384]);
  expect(ollama.seen[0]).toHaveLength(11);
});

test("a loaded context that is large enough is shown and kept", async () => {
  await connect();
  ollama.load("fake-model", 65_536);
  await saveChat(2, 10);
  expect((await preview()).context_size).toBe(65_536);
  await gather(await ask(app, 1, inServer));
  expect(ollama.loads).toEqual([]);
});

test("a chat longer than the connection's limit is trimmed by Parlor, not by the server", async () => {
  await connect({ context_size: 4_096 });
  await saveChat(10, 1_000);
  expect(await preview()).toMatchObject({ context_size: 4_096, fits: true, trimmed: true });
  await gather(await ask(app, 1, inServer));
  expect(ollama.askedSizes).toEqual([4_096]);
  expect(ollama.seen[0]).toEqual(ollama.chats[0]!.messages);
});

test("messages that the client assembled get a context that holds them", async () => {
  await connect();
  const body = { messages: [{ role: "user", content: words(9_000) }], max_tokens: 500, stream: true };
  await gather(await app.post("/api/chat", body));
  await gather(await ask(app, 1, { ...body, messages: [{ role: "user", content: words(3_000) }] }));
  expect(ollama.askedSizes).toEqual([16_384, 16_384]);
  expect((await preview({ ...body, conversation_id: undefined, context: undefined })).context_size).toBe(16_384);
});

test("all clients of a reply see that the model is being reloaded", async () => {
  const { promise: loading, resolve: finishLoading } = Promise.withResolvers<void>();
  ollama.options.loading = loading;
  ollama.load("fake-model", 4_096);
  await connect();
  await saveChat(10, 1_000);
  const notice = {
    code: "model_reload",
    message: "Reloading the model with a 16k context",
    context_size: 16_384,
  };
  const response = await ask(app, 1, inServer);
  const frames = framesOf(response);
  const first = [(await frames.next()).value!, (await frames.next()).value!];
  expect(understand(first).notices).toEqual([notice]);
  const attached = await gather(await app.get("/api/chat/replies/a1"), 2);
  expect(attached.notices).toEqual([notice]);
  finishLoading();
  const rest = [];
  for await (const frame of frames) rest.push(frame);
  expect(understand(rest)).toMatchObject({ isDone: true, text: "Hello", notices: [] });
  expect((await gather(await app.get("/api/chat/replies/a1"))).notices).toEqual([]);
});

test("a response without a stream waits through a reload", async () => {
  ollama.load("fake-model", 4_096);
  await connect();
  const response = await ask(app, 1, { max_tokens: 9_000, stream: false });
  expect((await response.json()).choices[0].message.content).toBe("Hello");
  expect(ollama.loads).toEqual(["fake-model:16384"]);
});

test("the preview never claims that the prompt fits a server with unknown size, until a load has shown the size", async () => {
  await using llm = await openFakeLlm({ personality: "ollama", models: ["loaded", "fake-model"] });
  await useModel(app, llm);
  await saveChat(2, 10);
  expect(await preview()).toMatchObject({ context_size_assumed: true, fits: null });
  await gather(await ask(app, 1, inServer));
  llm.models = ["fake-model"];
  await until(async () => (await preview()).context_size_assumed === false, "the real size is known");
  expect(await preview()).toMatchObject({ context_size: 4096, fits: true });
});

test("the connection reports that a model spills into main memory, until it no longer does", async () => {
  const readNotice = async () => {
    const list: { id: string; notice?: { code: string; message: string } }[] = await (await app.get("/api/connections"))
      .json();
    return list.find(({ id }) => id === "double")!.notice;
  };
  ollama.options.vramShare = 0.75;
  await connect();
  await gather(await ask(app, 1));
  await until(async () => (await readNotice()) !== undefined, "the spill is known");
  expect(await readNotice()).toMatchObject({ code: "model_spills", message: expect.stringContaining("25%") });
  ollama.options.vramShare = 1;
  await gather(await ask(app, 2));
  await until(async () => (await readNotice()) === undefined, "the notice is gone");
});

test("a connection to Ollama's OpenAI-compatible API is offered the change", async () => {
  await useModel(app, { url: `${ollama.url}/v1` });
  const read = async () =>
    (await (await app.get("/api/connections")).json()).find((one: { id: string }) => one.id === "double");
  await preview(); // The kind of server is detected before its first use.
  expect(await read()).toMatchObject({ kind: "openai", suggested_kind: "ollama" });
  await app.put("/api/connections", { id: "double", kind: "ollama" });
  expect((await read()).suggested_kind).toBeUndefined();
});

test("a model that isn't installed fails the reply with the command that installs it", async () => {
  await connect({ model: "nope" });
  const response = await ask(app, 1);
  expect(response.status).toBe(502);
  expect((await response.json()).error.message).toContain("ollama pull nope");
});
