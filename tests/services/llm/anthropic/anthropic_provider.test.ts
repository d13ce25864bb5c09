import { afterAll, beforeAll, expect, test } from "vitest";
import { createAnthropicBody, toAnthropicMessages } from "../../../../services/llm/anthropic/anthropic_request.ts";
import type { ChatMessage } from "../../../../services/llm/chat_event.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { openFakeAnthropic } from "../../../helpers/fakes/fake_llm_anthropic.ts";
import { openFakeHttp } from "../../../helpers/fakes/fake_llm_http.ts";
import { ask, failureOf, finishOf, gather, kindOf, never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient();
});
afterAll(() => client.close());

const kind = "anthropic" as const;
const USAGE = {
  prompt_tokens: 15,
  completion_tokens: 9,
  total_tokens: 24,
  prompt_tokens_details: { cached_tokens: 3 },
};

test("a stream becomes reasoning, text, finish reason and the last of its running totals", async () => {
  await using llm = await openFakeAnthropic({ thinking: ["hm", "m"], apiKey: "sk-ant-1" });
  for (const url of [llm.url, `${llm.url}/v1`]) {
    const answer = await gather(await client.openChatStream(target(url, { kind, apiKey: "sk-ant-1" }), ask(), never()));
    expect(answer).toMatchObject({ text: "Hello", reasoning: "hmm", error: undefined });
    expect(finishOf(answer)).toBe("stop");
    expect(answer.events.at(-1)).toEqual({ type: "usage", usage: USAGE });
  }
  const { headers } = llm.requests[0]!;
  expect(headers.get("x-api-key")).toBe("sk-ant-1");
  expect(headers.get("anthropic-version")).toBe("2023-06-01");
  expect(headers.get("authorization")).toBeNull();
});

test.each([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
  ["a_new_one", "a_new_one"],
])("the stop reason %s is the finish reason %s", async (stopReason, reason) => {
  await using llm = await openFakeAnthropic({ stopReason });
  expect(finishOf(await gather(await client.openChatStream(target(llm.url, { kind }), ask(), never())))).toBe(reason);
  const completion = await client.completeChat(target(llm.url, { kind }), ask(), never());
  expect(completion.choices[0]!.finish_reason).toBe(reason);
});

test("a whole answer becomes the one OpenAI-shaped object, tools included", async () => {
  const tool = { id: "toolu_1", name: "look", fragments: ['{"where":', '"up"}'] };
  await using llm = await openFakeAnthropic({ thinking: ["hm"], tool, stopReason: "tool_use" });
  const expected = [{ id: "toolu_1", type: "function", function: { name: "look", arguments: '{"where":"up"}' } }];
  const completion = await client.completeChat(target(llm.url, { kind }), ask(), never());
  expect(completion).toMatchObject({ object: "chat.completion", usage: USAGE });
  expect(completion.choices[0]!.message).toEqual({
    role: "assistant",
    content: "Hello",
    reasoning_content: "hm",
    tool_calls: expected,
  });
  const answer = await gather(await client.openChatStream(target(llm.url, { kind }), ask(), never()));
  expect(answer.events.filter((event) => event.type === "tool_calls").flatMap((event) => event.delta)).toEqual([
    { index: 0, id: "toolu_1", type: "function", function: { name: "look", arguments: "" } },
    { index: 0, function: { arguments: '{"where":' } },
    { index: 0, function: { arguments: '"up"}' } },
  ]);
});

test.each(
  [
    ["error", "overloaded"],
    ["cut", "interrupted"],
  ] as const,
)("a stream that ends by %s keeps its text and fails as %s", { tags: ["U05"] }, async (fail, failure) => {
  await using llm = await openFakeAnthropic({ fail });
  const answer = await gather(await client.openChatStream(target(llm.url, { kind }), ask(), never()));
  expect(answer.text).toBe("Hel");
  expect(kindOf(answer.error)).toBe(failure);
});

test.each(
  [
    ["overloaded", "overloaded", 529],
    ["overflow", "overflow", 400],
  ] as const,
)("%s fails the call as %s (%i)", async (fail, failure, status) => {
  await using llm = await openFakeAnthropic({ fail });
  const error = await failureOf(client.openChatStream(target(llm.url, { kind }), ask(), never()));
  expect(error).toMatchObject({ kind: failure, status });
});

test("a model that refuses sampler fields is asked once more without them", async () => {
  await using llm = await openFakeAnthropic({ fail: "sampling" });
  const call = ask("hi", { temperature: 0.5, top_k: 3, stop: ["END", " "] });
  expect((await gather(await client.openChatStream(target(llm.url, { kind }), call, never()))).text).toBe("Hello");
  expect(llm.requests.map((request) => Object.keys(request.json!).sort())).toEqual([
    ["max_tokens", "messages", "model", "stop_sequences", "stream", "temperature", "top_k"],
    ["max_tokens", "messages", "model", "stop_sequences", "stream"],
  ]);
  expect(llm.requests[1]!.json).toMatchObject({ max_tokens: 2048, stop_sequences: ["END"] });
});

test("a wrong key is an auth failure, and the echoed key masked", async () => {
  await using llm = await openFakeAnthropic({ apiKey: "right" });
  expect((await failureOf(client.listModels(target(llm.url, { kind, apiKey: "wrong-key" }), never()))).kind).toBe(
    "auth",
  );
  const http = await openFakeHttp((request, answer) =>
    answer.json(401, {
      type: "error",
      error: { type: "authentication_error", message: `no ${request.headers.get("x-api-key")}` },
    })
  );
  const here = target(`http://127.0.0.1:${http.port}`, { kind, apiKey: "sk-ant-secret" });
  const error = await failureOf(client.openChatStream(here, ask(), never()));
  expect(error.message).toContain("no [key]");
  await http.close();
});

test("all pages of the model list are read, and the context size is in it", async () => {
  const models = Array.from({ length: 7 }, (_, n) => `claude-${n}`);
  await using llm = await openFakeAnthropic({ models, pageSize: 3 });
  const list = await client.listModels(target(llm.url, { kind }), never());
  expect(list.data.map((entry) => entry.id)).toEqual(models);
  expect(llm.requests).toHaveLength(3);
  expect(await client.readContextSize(target(llm.url, { kind }), "claude-5", never())).toBe(200_000);
  expect(await client.readContextSize(target(llm.url, { kind }), "other", never())).toBeUndefined();
});

test("system messages at the start are the system text, later ones part of the user's turn, neighbours are merged", () => {
  const messages: ChatMessage[] = [
    { role: "system", content: "You are a fox." },
    { role: "developer", content: [{ type: "text", text: "Be brief." }] },
    { role: "user", content: "a" },
    { role: "user", content: "b" },
    { role: "assistant", content: "c" },
    { role: "system", content: "It is night." },
    { role: "user", content: "" },
    { role: "user", content: "d" },
    { role: "assistant", content: "e " },
  ];
  const text = (value: string) => ({ type: "text", text: value });
  expect(toAnthropicMessages(messages)).toEqual({
    system: "You are a fox.\n\nBe brief.",
    messages: [
      { role: "user", content: [text("a"), text("b")] },
      { role: "assistant", content: [text("c")] },
      { role: "user", content: [text("It is night."), text("d")] },
      { role: "assistant", content: [text("e")] },
    ],
  });
});

test("a history that begins with the assistant, or is empty, gets a user turn first", () => {
  for (const messages of [[{ role: "assistant", content: "hello" }], [], [{ role: "user", content: " " }]]) {
    const { messages: turns } = toAnthropicMessages(messages);
    expect(turns[0]!.role).toBe("user");
    expect(turns[0]!.content[0]!.text).not.toBe("");
  }
});

test("images, tool calls and tool results take Anthropic's form", () => {
  const messages: ChatMessage[] = [
    {
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
        { type: "image_url", image_url: { url: "https://example.org/a.png" } },
      ],
    },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
    },
    { role: "tool", tool_call_id: "t1", content: "42" },
  ];
  expect(toAnthropicMessages(messages).messages).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
        { type: "image", source: { type: "url", url: "https://example.org/a.png" } },
      ],
    },
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: { x: 1 } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "42" }] }] },
  ]);
});

test("fields that Anthropic does not know are left out, tools and the temperature scale translated", () => {
  const params = {
    temperature: 1.8,
    top_p: null,
    min_p: 0.1,
    seed: 4,
    frequency_penalty: 1,
    max_completion_tokens: 77,
    tools: [{ type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } }],
    tool_choice: "required",
  };
  expect(createAnthropicBody(target("http://h", { kind }), ask("hi", params), { stream: true, withSampling: true }))
    .toEqual({
      model: "fake-model",
      max_tokens: 77,
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      stream: true,
      temperature: 1,
      tools: [{ name: "f", description: "d", input_schema: { type: "object" } }],
      tool_choice: { type: "any" },
    });
});
