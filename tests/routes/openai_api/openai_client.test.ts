/** OpenAI's own client against the OpenAI-compatible API. */
import OpenAI from "openai";
import { expect, test } from "vitest";
import { openOpenAiApp } from "../../helpers/app/openai_app.ts";
import { until } from "../../helpers/app/chat_client.ts";

const hello: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Hello" }];

test("lists the default, characters and the models of connections", async () => {
  await using at = await openOpenAiApp({ models: ["fake-model", "org/large"] });
  const ids: string[] = [];
  for await (const model of at.client().models.list()) ids.push(model.id);
  expect(ids[0]).toBe("default");
  expect(ids).toContain("connection:double/org/large");
  expect(ids.filter((id) => id.startsWith("character:")).length).toBeGreaterThan(0);
  const chosen = await at.client().chat.completions.create({ model: "connection:double/org/large", messages: hello });
  expect(at.llm.chats.at(-1)!.json).toMatchObject({ model: "org/large" });
  expect(chosen.model).toBe("connection:double/org/large");
});

test("responds without streaming, with usage and finish reason, and passes sampling fields on but not store and metadata", async () => {
  await using at = await openOpenAiApp({ pieces: ["Hi", " there"] });
  at.llm.switches.reason = "length";
  const completion = await at.client().chat.completions.create({
    model: "default",
    messages: [{ role: "system", content: "Be brief" }, ...hello],
    temperature: 0.2,
    seed: 7,
    store: false,
    metadata: { topic: "greeting" },
  });
  expect(completion.choices[0]).toMatchObject({
    message: { role: "assistant", content: "Hi there" },
    finish_reason: "length",
  });
  expect(completion.usage?.total_tokens).toBeGreaterThan(0);
  const sent = at.llm.chats.at(-1)!.json!;
  expect(sent).toMatchObject({ model: "fake-model", temperature: 0.2, seed: 7 });
  expect(sent.messages).toEqual([{ role: "system", content: "Be brief" }, ...hello]);
  expect(Object.keys(sent)).not.toContain("store");
  expect(Object.keys(sent)).not.toContain("metadata");
  const stored = await at.send("GET", "/api/conversations?view=summary", undefined, at.ownerToken);
  expect((await stored.json()).items).toEqual([]);
});

test("streams, and sends the usage only to a client that asks for it", async () => {
  await using at = await openOpenAiApp({ pieces: ["one ", "two"], reasoning: ["hm"] });
  const read = async (options?: { include_usage: boolean }) => {
    const stream = await at.client().chat.completions.create({
      model: "default",
      messages: hello,
      stream: true,
      ...(options && { stream_options: options }),
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
  };
  const plain = await read();
  expect(plain.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("one two");
  expect(plain.every(({ choices, model }) => choices.length === 1 && model === "default")).toBe(true);
  expect(plain.at(-1)!.choices[0]!.finish_reason).toBe("stop");
  const counted = await read({ include_usage: true });
  expect(counted.at(-1)!.usage?.prompt_tokens).toBeGreaterThan(0);
  expect(counted.at(-1)!.choices).toEqual([]);
});

test("tools, calls, results and null contents pass through unchanged", async () => {
  await using at = await openOpenAiApp({
    pieces: [],
    tools: [
      [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }],
      [{ index: 0, function: { arguments: '{"city":' } }],
      [{ index: 0, function: { arguments: '"Oslo"}' } }],
    ],
  });
  at.llm.switches.reason = "tool_calls";
  const tools: OpenAI.ChatCompletionTool[] = [{
    type: "function",
    function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
  }];
  const runner = at.client().chat.completions.stream({ model: "default", messages: hello, tools });
  const { choices: [choice] } = await runner.finalChatCompletion();
  expect(choice!.finish_reason).toBe("tool_calls");
  const call = choice!.message.tool_calls![0]!;
  expect(call).toMatchObject({ id: "call_1", function: { name: "weather", arguments: '{"city":"Oslo"}' } });
  expect(at.llm.chats.at(-1)!.json!.tools).toEqual(tools);

  at.llm.tools = [];
  at.llm.pieces = ["Rain."];
  at.llm.switches.reason = "stop";
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    ...hello,
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "8 degrees" },
  ];
  const answer = await at.client().chat.completions.create({ model: "default", messages, tools });
  expect(answer.choices[0]!.message.content).toBe("Rain.");
  expect(at.llm.chats.at(-1)!.json!.messages).toEqual(messages);
});

test("images pass through as they are", async () => {
  await using at = await openOpenAiApp();
  const url = `data:image/png;base64,${btoa("not decoded by anybody")}`;
  const content: OpenAI.ChatCompletionContentPart[] = [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url, detail: "low" } },
  ];
  await at.client().chat.completions.create({ model: "default", messages: [{ role: "user", content }] });
  expect(at.llm.chats.at(-1)!.json!.messages).toEqual([{ role: "user", content }]);
});

test("two clients stream at once", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const open = (content: string) =>
    at.client().chat.completions.create({ model: "default", messages: [{ role: "user", content }], stream: true });
  const opening = [open("first"), open("second")];
  const calls = [await at.llm.nextCall(), await at.llm.nextCall()];
  for (const call of calls) await call.emit(`to ${(call.request.json!.messages as { content: string }[])[0]!.content}`);
  const streams = await Promise.all(opening);
  for (const call of calls) await call.finish();
  const texts = await Promise.all(streams.map(async (stream) => {
    let text = "";
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    return text;
  }));
  expect(texts).toEqual(["to first", "to second"]);
});

test("a client that disconnects ends the upstream call", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const opening = at.client().chat.completions.create({ model: "default", messages: hello, stream: true });
  const call = await at.llm.nextCall();
  await call.emit("one");
  (await opening).controller.abort();
  await call.over;
  expect(call.request.closedEarly).toBe(true);
});

test("a revoked token is an authentication error, and a stream of it ends", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const opening = at.client().chat.completions.create({ model: "default", messages: hello, stream: true });
  const call = await at.llm.nextCall();
  await call.emit("one");
  const stream = await opening;
  await at.app.services.auth.revokeToken(at.tokenId);
  for await (const _ of stream);
  await until(() => call.request.closedEarly, "the upstream call has ended");
  const refused = await at.client().models.list().catch((error) => error);
  expect(refused).toBeInstanceOf(OpenAI.AuthenticationError);
  expect(refused).toMatchObject({ status: 401, code: "unauthenticated", type: "invalid_request_error" });
});

test("creates embeddings as numbers and as base64, also with a server that knows only numbers", async () => {
  const vector = [0.5, -1.25, 3];
  await using at = await openOpenAiApp({ embeddings: { vector } });
  for (const ignoresFormat of [false, true]) {
    at.llm.embeddings = { vector, ignoresFormat };
    for (const format of [undefined, "float", "base64"] as const) {
      const { data } = await at.client().embeddings.create({
        model: "connection:double/embedder",
        input: ["a", "b"],
        ...(format && { encoding_format: format }),
      });
      expect(data).toHaveLength(2);
      const { embedding } = data[1]!;
      const numbers = typeof embedding === "string"
        ? [...new Float32Array(Uint8Array.from(atob(embedding), (char) => char.charCodeAt(0)).buffer)]
        : [...embedding];
      expect([ignoresFormat, format, numbers]).toEqual([ignoresFormat, format, vector]);
      expect(at.llm.requests.at(-1)!.json!.model).toBe("embedder");
    }
  }
});
