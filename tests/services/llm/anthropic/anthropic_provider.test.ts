import { afterAll, beforeAll, expect, test } from "vitest";
import { createAnthropicBody, toAnthropicMessages } from "../../../../services/llm/anthropic/anthropic_request.ts";
import type { ChatMessage } from "../../../../services/llm/chat_event.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { openFakeAnthropic } from "../../../helpers/fakes/llm/fake_llm_anthropic.ts";
import { openFakeHttp } from "../../../helpers/fakes/llm/fake_llm_http.ts";
import { ask, failureOf, finishOf, gather, kindOf, never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
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

test("a whole response becomes the one OpenAI-shaped object, including tools", async () => {
  const tool = { id: "toolu_1", name: "look", fragments: ['{"where":', '"up"}'] };
  await using llm = await openFakeAnthropic({ thinking: ["hm"], tool, stopReason: "tool_use" });
  const expected = [{ id: "toolu_1", type: "function", function: { name: "look", arguments: '{"where":"up"}' } }];
  const completion = await client.completeChat(target(llm.url, { kind }), ask(), never());
  expect(completion).toMatchObject({ object: "chat.completion", usage: USAGE });
  expect(completion.choices[0]!.message).toEqual({
    role: "assistant",
    content: "Hello",
    reasoning_content: "hm",
    reasoning_details: [expect.objectContaining({ text: "hm", signature: "c2ln" })],
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

test("a model that rejects sampler fields gets another request without them, and never gets them again", async () => {
  await using llm = await openFakeAnthropic({ fail: "sampling" });
  const call = ask("hi", { temperature: 0.5, top_k: 3, stop: ["END", " "] });
  for (let n = 0; n < 2; n++) {
    const stream = await client.openChatStream(target(llm.url, { kind }), call, never());
    expect(stream.sent!.leftOut.map(({ field }) => field)).toEqual(["temperature", "top_k"]);
    expect((await gather(stream)).text).toBe("Hello");
  }
  expect(llm.requests.map((request) => Object.keys(request.json!).sort())).toEqual([
    ["max_tokens", "messages", "model", "stop_sequences", "stream", "temperature", "top_k"],
    ["max_tokens", "messages", "model", "stop_sequences", "stream", "top_k"],
    ["max_tokens", "messages", "model", "stop_sequences", "stream"],
    ["max_tokens", "messages", "model", "stop_sequences", "stream"],
  ]);
  expect(llm.requests[1]!.json).toMatchObject({ max_tokens: 2048, stop_sequences: ["END"] });
});

test.each([
  ["low", 2_048, 4_096],
  ["medium", 8_192, 8_192 + 4_096],
  ["high", 16_384, 16_384 + 4_096],
])("the effort %s is a budget of %i, and the limit is above it", async (reasoning_effort, budget, limit) => {
  await using llm = await openFakeAnthropic({ thinking: ["hm"] });
  const call = ask("hi", { reasoning_effort, max_tokens: 4_096, temperature: 0.5, top_p: 0.97 });
  const stream = await client.openChatStream(target(llm.url, { kind }), call, never());
  expect((await gather(stream)).reasoning).toBe("hm");
  expect(llm.requests[0]!.json).toMatchObject({
    thinking: { type: "enabled", budget_tokens: budget },
    max_tokens: limit,
    top_p: 0.97,
  });
  expect(llm.requests).toHaveLength(1);
  expect(stream.sent).toMatchObject({ leftOut: [{ field: "temperature" }], outputLimit: limit });
});

test("a model without budgets gets the effort, later without a first attempt", async () => {
  await using llm = await openFakeAnthropic({ fail: "budget" });
  const call = ask("hi", { reasoning_effort: "high" });
  for (let n = 0; n < 2; n++) {
    expect((await gather(await client.openChatStream(target(llm.url, { kind }), call, never()))).text).toBe("Hello");
  }
  const adaptive = { thinking: { type: "adaptive" }, output_config: { effort: "high" } };
  expect(llm.requests.map(({ json }) => json)).toMatchObject([{ thinking: { type: "enabled" } }, adaptive, adaptive]);
});

test("a model that can't think answers without thinking", async () => {
  await using llm = await openFakeAnthropic({ fail: "thinking" });
  const stream = await client.openChatStream(
    target(llm.url, { kind }),
    ask("hi", { reasoning_effort: "low" }),
    never(),
  );
  expect((await gather(stream)).text).toBe("Hello");
  expect(stream.sent!.leftOut).toMatchObject([{ field: "reasoning_effort", status: 400 }]);
});

test.each([[{ reasoning_effort: "none" }, { type: "disabled" }], [{}, undefined]])(
  "thinking with %j is %j",
  async (params, thinking) => {
    await using llm = await openFakeAnthropic();
    await gather(await client.openChatStream(target(llm.url, { kind }), ask("hi", params), never()));
    expect(llm.requests[0]!.json!.thinking).toEqual(thinking);
  },
);

test("signed reasoning is stored with tool calls, and sent back unchanged with their results", async () => {
  const tool = { id: "toolu_1", name: "look", fragments: ["{}"] };
  await using llm = await openFakeAnthropic({ thinking: ["hm", "m"], tool, stopReason: "tool_use" });
  const signed = {
    type: "reasoning.text",
    text: "hmm",
    signature: "c2ln",
    format: "anthropic-claude-v1",
    index: 0,
  };
  const { message } = (await client.completeChat(target(llm.url, { kind }), ask(), never())).choices[0]!;
  expect(message.reasoning_details).toEqual([signed]);
  const answer = await gather(await client.openChatStream(target(llm.url, { kind }), ask(), never()));
  expect(answer.events).toContainEqual({ type: "reasoning_details", details: [signed] });
  const messages: ChatMessage[] = [
    { role: "user", content: "hi" },
    { ...message, content: "" },
    { role: "tool", tool_call_id: "toolu_1", content: "up" },
  ];
  await gather(await client.openChatStream(target(llm.url, { kind }), { ...ask(), messages }, never()));
  expect((llm.requests.at(-1)!.json!.messages as { content: unknown }[])[1]!.content).toEqual([
    { type: "thinking", thinking: "hmm", signature: "c2ln" },
    { type: "tool_use", id: "toolu_1", name: "look", input: {} },
  ]);
});

test("reasoning without tool calls, or from other servers, isn't sent back", () => {
  const foreign = [{ type: "reasoning.text", text: "x", format: "unknown" }];
  const signed = [{ type: "reasoning.text", text: "x", signature: "s", format: "anthropic-claude-v1" }];
  const messages: ChatMessage[] = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b", reasoning_content: "x", reasoning_details: signed },
    { role: "user", content: "c" },
    { role: "assistant", content: "", reasoning_details: foreign, tool_calls: [{ id: "t", function: { name: "f" } }] },
    { role: "tool", tool_call_id: "t", content: "1" },
  ];
  expect(JSON.stringify(toAnthropicMessages(messages).messages)).not.toContain("thinking");
});

test.each([
  [undefined, 3],
  [3, 1],
  [2, 0],
])("of messages of which %s are stable, one is marked for the cache", (stableMessages, marked) => {
  const messages: ChatMessage[] = [
    { role: "system", content: "s" },
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "system", content: "moves" },
    { role: "user", content: "c" },
  ];
  const turns = toAnthropicMessages(messages, stableMessages).messages.flatMap(({ content }) => content);
  expect(turns.map((block) => "cache_control" in block)).toEqual(turns.map((_, index) => index === marked));
});

test("instructions are marked for the cache if no message is stable; the caller's own marks are unchanged", () => {
  const mark = { cache_control: { type: "ephemeral" } };
  const messages: ChatMessage[] = [{ role: "system", content: "s" }, { role: "user", content: "a" }];
  expect(toAnthropicMessages(messages, 1)).toEqual({
    system: [{ type: "text", text: "s", ...mark }],
    messages: [{ role: "user", content: [{ type: "text", text: "a" }] }],
  });
  const own: ChatMessage[] = [
    { role: "user", content: [{ type: "text", text: "a", ...mark }] },
    { role: "user", content: "b" },
  ];
  expect(toAnthropicMessages(own).messages[0]!.content).toEqual([{ type: "text", text: "a", ...mark }, {
    type: "text",
    text: "b",
  }]);
});

test("documents are passed through, files with data become documents", () => {
  const document = { type: "document", source: { type: "text", media_type: "text/plain", data: "x" } };
  const file = { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,aGk=" } };
  const { messages } = toAnthropicMessages([{ role: "user", content: [document, file, { type: "text", text: "?" }] }]);
  expect(messages[0]!.content.slice(0, 2)).toEqual([
    document,
    { type: "document", source: { type: "base64", media_type: "application/pdf", data: "aGk=" }, title: "a.pdf" },
  ]);
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

test("system messages at the start are the system text, later ones part of the user's turn, and adjacent ones are merged", () => {
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
      { role: "user", content: [text("It is night."), { ...text("d"), cache_control: { type: "ephemeral" } }] },
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

test("images, tool calls and tool results are converted to Anthropic's format", () => {
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
    {
      role: "user",
      content: [{
        type: "tool_result",
        tool_use_id: "t1",
        content: [{ type: "text", text: "42" }],
        cache_control: { type: "ephemeral" },
      }],
    },
  ]);
});

test("fields unknown to Anthropic are omitted; tools and the temperature scale are converted", () => {
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
  expect(createAnthropicBody(target("http://h", { kind }), ask("hi", params), { stream: true }).body)
    .toEqual({
      model: "fake-model",
      max_tokens: 77,
      messages: [{ role: "user", content: [{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }] }],
      stream: true,
      temperature: 1,
      tools: [{ name: "f", description: "d", input_schema: { type: "object", properties: {} } }],
      tool_choice: { type: "any" },
    });
});
