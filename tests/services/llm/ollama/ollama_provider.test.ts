import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChatCall, ChatNotice } from "../../../../services/llm/chat_event.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { type FakeOllama, openFakeOllama } from "../../../helpers/fakes/llm/fake_ollama.ts";
import { ask, failureOf, finishOf, gather, kindOf, never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

const kind = "ollama" as const;

function words(count: number): string {
  return "word ".repeat(count).trim();
}

function needing(neededTokens: number): ChatCall {
  return { ...ask(), neededTokens };
}

async function run(ollama: FakeOllama, call: ChatCall, contextSize?: number) {
  const notices: ChatNotice[] = [];
  const upstream = target(ollama.url, { kind, contextSize });
  const answer = await gather(await client.openChatStream(upstream, call, never(), (notice) => notices.push(notice)));
  return { ...answer, notices };
}

test("a stream becomes reasoning, text, finish reason, usage and timings, with or without /v1 in the URL", async () => {
  await using ollama = await openFakeOllama({
    models: { "fake-model": { capabilities: ["completion", "thinking"] } },
    thinking: ["hm", "m"],
    apiKey: "key-1234",
  });
  for (const url of [ollama.url, `${ollama.url}/v1`]) {
    const upstream = target(url, { kind, apiKey: "key-1234" });
    const answer = await gather(await client.openChatStream(upstream, ask("one two three"), never()));
    expect(answer).toMatchObject({ text: "Hello", reasoning: "hmm", error: undefined });
    expect(finishOf(answer)).toBe("stop");
    expect(answer.events.at(-1)).toEqual({
      type: "usage",
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
      timings: {
        load_ms: 1000,
        prompt_n: 3,
        prompt_ms: 2000,
        prompt_per_second: 1.5,
        predicted_n: 4,
        predicted_ms: 500,
        predicted_per_second: 8,
      },
    });
  }
});

test.each([1, 3, 7])("text is exact when the lines arrive in pieces of %i bytes", async (chunkBytes) => {
  await using ollama = await openFakeOllama({ pieces: ["漢字", " → ", "🦊\n", '"{}"'], chunkBytes });
  expect((await run(ollama, ask())).text).toBe('漢字 → 🦊\n"{}"');
});

test("a response without a stream becomes one OpenAI-shaped completion", async () => {
  await using ollama = await openFakeOllama({ doneReason: "length" });
  const completion = await client.completeChat(target(ollama.url, { kind }), ask(), never());
  expect(completion).toMatchObject({
    object: "chat.completion",
    choices: [{ message: { role: "assistant", content: "Hello" }, finish_reason: "length" }],
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  });
});

test.each(
  [
    ["error", "failed"],
    ["cut", "interrupted"],
  ] as const,
)("a stream that ends by %s keeps its text and fails as %s", async (fail, failure) => {
  await using ollama = await openFakeOllama({ fail });
  const answer = await run(ollama, ask());
  expect(answer.text).toBe("Hel");
  expect(kindOf(answer.error)).toBe(failure);
});

test("the context is the smallest doubling of 4,096 that holds prompt and answer", async () => {
  await using ollama = await openFakeOllama();
  for (const needed of [10, 4_096, 4_097, 8_193, 60_000]) await run(ollama, needing(needed));
  expect(ollama.askedSizes).toEqual([4_096, 4_096, 8_192, 16_384, 65_536]);
});

test("a loaded context that is large enough is kept, and a larger one is announced before it is loaded", async () => {
  const { promise: loading, resolve: finishLoading } = Promise.withResolvers<void>();
  await using ollama = await openFakeOllama({ loading });
  ollama.load("fake-model", 16_384);
  expect((await run(ollama, needing(500))).notices).toEqual([]);
  expect(ollama.loads).toEqual([]);
  const notices: ChatNotice[] = [];
  const opening = client.openChatStream(target(ollama.url, { kind }), needing(20_000), never(), (notice) => {
    notices.push(notice);
    finishLoading(); // The load waits for this: announced afterward, it would never end.
  });
  expect((await gather(await opening)).text).toBe("Hello");
  expect(notices).toEqual([
    { code: "model_reload", message: "Reloading the model with a 32k context", contextSize: 32_768 },
  ]);
  expect(ollama.askedSizes).toEqual([16_384, 32_768]);
});

test("a model that isn't loaded is loaded without a notice", async () => {
  await using ollama = await openFakeOllama();
  expect((await run(ollama, needing(20_000))).notices).toEqual([]);
  expect(ollama.loads).toEqual(["fake-model:32768"]);
});

test("the context is at most the model's maximum and the connection's limit, even if more is loaded", async () => {
  await using ollama = await openFakeOllama({ models: { "fake-model": { maxContextSize: 40_960 } } });
  await run(ollama, needing(100_000));
  expect((await run(ollama, needing(6_000), 6_000)).notices).toMatchObject([{ contextSize: 6_000 }]);
  await run(ollama, needing(100), 6_000);
  await run(ollama, needing(100), 1_000_000);
  expect(ollama.askedSizes).toEqual([40_960, 6_000, 6_000, 6_000]);
});

test("a context in the request takes precedence", async () => {
  await using ollama = await openFakeOllama();
  await run(ollama, { ...needing(100), params: { num_ctx: 5_000 } });
  await run(ollama, { ...needing(100), params: { options: { num_ctx: 7_000 } } });
  expect(ollama.askedSizes).toEqual([5_000, 7_000]);
});

test("a call whose caller counted no tokens gets a context for its messages, tools and answer", async () => {
  await using ollama = await openFakeOllama();
  await run(ollama, ask(words(3_000), { max_tokens: 1_000 }));
  await run(ollama, ask("hi", { max_tokens: 9_000 }));
  expect(ollama.askedSizes).toEqual([8_192, 16_384]);
});

test("a prompt longer than estimated is sent again with a larger context, and none of it is lost", async () => {
  await using ollama = await openFakeOllama();
  const messages = [
    { role: "user", content: words(3_000) },
    { role: "assistant", content: words(3_000) },
    { role: "user", content: words(3_000) },
  ];
  const { text, notices } = await run(ollama, { model: "fake-model", messages, params: {}, neededTokens: 4_000 });
  expect(text).toBe("Hello");
  expect(ollama.askedSizes).toEqual([4_096, 8_192, 16_384]);
  expect(notices.map(({ contextSize }) => contextSize)).toEqual([8_192, 16_384]);
  expect(ollama.seen).toEqual([messages]);
});

test("a prompt longer than the largest context is an overflow, not a shorter prompt", async () => {
  await using ollama = await openFakeOllama();
  const messages = [{ role: "user", content: words(5_000) }, { role: "user", content: "and?" }];
  const call = { model: "fake-model", messages, params: {}, neededTokens: 4_000 };
  const error = await failureOf(client.openChatStream(target(ollama.url, { kind, contextSize: 4_096 }), call, never()));
  expect(error).toMatchObject({ kind: "overflow", status: 400 });
  expect(ollama.seen).toEqual([]);
});

test("the context size is the largest that can be requested, and the choice follows what is loaded", async () => {
  await using ollama = await openFakeOllama({ models: { "fake-model": { maxContextSize: 32_768 } } });
  const upstream = target(ollama.url, { kind });
  const limited = target(ollama.url, { kind, contextSize: 10_000 });
  expect(await client.readContextSize(upstream, "fake-model", never())).toBe(32_768);
  expect(await client.readContextSize(limited, "fake-model", never())).toBe(10_000);
  expect(await client.readContextSize(upstream, "other", never())).toBeUndefined();
  expect(await client.chooseContextSize(upstream, "fake-model", 5_000, never())).toBe(8_192);
  ollama.load("fake-model", 16_384);
  expect(await client.chooseContextSize(upstream, "fake-model", 5_000, never())).toBe(16_384);
  expect(await client.chooseContextSize(limited, "fake-model", 9_000, never())).toBe(10_000);
});

test("models are listed by the names they are called with", async () => {
  await using ollama = await openFakeOllama({ models: { llama: {}, "qwen:8b": {} } });
  const { data } = await client.listModels(target(`${ollama.url}/v1`, { kind }), never());
  expect(data).toMatchObject([{ id: "llama:latest", owned_by: "library" }, { id: "qwen:8b" }]);
});

test("a missing model is reported with the command that installs it", async () => {
  await using ollama = await openFakeOllama();
  const error = await failureOf(client.openChatStream(target(ollama.url, { kind }), ask("hi", {}, "nope"), never()));
  expect(error).toMatchObject({ kind: "not_found", status: 404 });
  expect(error.message).toContain("ollama pull nope");
});

test.each([
  ["none", false],
  ["minimal", true],
  ["high", true],
])("the effort %s is think: %s", async (effort, think) => {
  await using ollama = await openFakeOllama({
    models: { "fake-model": { capabilities: ["completion", "thinking"] } },
    thinking: ["hm"],
  });
  const { reasoning } = await run(ollama, ask("hi", { reasoning_effort: effort }));
  expect(ollama.chats).toMatchObject([{ think }]);
  expect(reasoning).toBe(think ? "hm" : "");
});

test.each([["none", "low"], ["medium", "medium"], ["high", "high"]])(
  "gpt-oss gets the effort %s as the level %s",
  async (effort, think) => {
    const model = { capabilities: ["completion", "thinking"], family: "gptoss" };
    await using ollama = await openFakeOllama({ models: { "fake-model": model } });
    await run(ollama, ask("hi", { reasoning_effort: effort }));
    expect(ollama.chats).toMatchObject([{ think }]);
  },
);

test("a model that can't think answers without thinking, says so, and isn't asked to think again", async () => {
  await using ollama = await openFakeOllama();
  const call = ask("hi", { reasoning_effort: "high", max_tokens: 50 });
  const open = () => client.openChatStream(target(ollama.url, { kind }), call, never());
  const streams = [await open(), await open()];
  for (const stream of streams) {
    expect((await gather(stream)).text).toBe("Hello");
    expect(stream.sent).toEqual({
      leftOut: [{ field: "reasoning_effort", status: 400, reason: '"fake-model" does not support thinking' }],
      outputLimit: 50,
    });
  }
  expect(ollama.chats.map(({ think }) => think)).toEqual([true, undefined, undefined]);
});

test("additional fields of connection and preset are sent, options merged; the request wins", async () => {
  await using ollama = await openFakeOllama();
  const upstream = target(ollama.url, { kind, extraBody: { keep_alive: "30m", options: { num_gpu: 0, top_k: 5 } } });
  const call = { ...ask("hi", { top_k: 7 }), extraBody: { options: { num_ctx: 6_000 } } };
  await gather(await client.openChatStream(upstream, call, never()));
  expect(ollama.chats).toMatchObject([{ keep_alive: "30m", options: { num_gpu: 0, top_k: 7, num_ctx: 6_000 } }]);
});

test("a model without tools fails with the reason, and isn't asked without them", async () => {
  await using ollama = await openFakeOllama();
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
  const error = await failureOf(client.openChatStream(target(ollama.url, { kind }), ask("hi", { tools }), never()));
  expect(error.message).toContain("does not support tools");
  expect(ollama.chats).toHaveLength(1);
});

test("tool calls arrive in OpenAI's format", async () => {
  await using ollama = await openFakeOllama({
    models: { "fake-model": { capabilities: ["completion", "tools"] } },
    pieces: [],
    toolCalls: [{ id: "call_a", name: "look", arguments: { where: "up" } }, { name: "wait", arguments: {} }],
  });
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
  const answer = await run(ollama, ask("hi", { tools }));
  expect(answer.events[0]).toEqual({
    type: "tool_calls",
    delta: [
      { index: 0, id: "call_a", type: "function", function: { name: "look", arguments: '{"where":"up"}' } },
      { index: 1, id: expect.stringMatching(/^call_/), type: "function", function: { name: "wait", arguments: "{}" } },
    ],
  });
  expect(finishOf(answer)).toBe("tool_calls");
});
