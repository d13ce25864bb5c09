import { expect, test } from "vitest";
import { createOllamaBody } from "../../../../services/llm/ollama/ollama_request.ts";
import type { ChatMessage } from "../../../../services/llm/chat_event.ts";
import { ask } from "../model_calls.ts";

function bodyOf(params: Record<string, unknown>) {
  return createOllamaBody(ask("hi", params), { stream: true, contextSize: 4096 });
}

test("samplers and the limit become options under Ollama's names; other fields don't", () => {
  const params = {
    temperature: 0.5,
    top_k: 3,
    min_p: null,
    repetition_penalty: 1.2,
    typical: 0.9,
    max_tokens: 77,
    stop: "END",
    seed: 4,
    options: { num_gpu: 0 },
    keep_alive: "30m",
    user: "someone",
    stream_options: { include_usage: true },
  };
  expect(bodyOf(params)).toEqual({
    model: "fake-model",
    messages: [{ role: "user", content: "hi" }],
    stream: true,
    truncate: false,
    shift: false,
    options: {
      num_ctx: 4096,
      num_predict: 77,
      temperature: 0.5,
      top_k: 3,
      repeat_penalty: 1.2,
      typical_p: 0.9,
      seed: 4,
      stop: ["END"],
      num_gpu: 0,
    },
    keep_alive: "30m",
  });
});

test("no limit is sent unless one is set", () => {
  expect(bodyOf({}).options).toEqual({ num_ctx: 4096 });
});

test.each([
  [{ type: "json_object" }, "json"],
  [{ type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } }, { type: "object" }],
  [{ type: "text" }, undefined],
])("the response format %j is the format %j", (response_format, format) => {
  expect(bodyOf({ response_format }).format).toEqual(format);
});

test("images, tool calls and tool results are converted to Ollama's format", () => {
  const messages: ChatMessage[] = [
    { role: "developer", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
        { type: "text", text: "here" },
      ],
    },
    {
      role: "assistant",
      content: "",
      reasoning_content: "I'll look.",
      tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
    },
    { role: "tool", tool_call_id: "t1", content: "42" },
    { role: "assistant", content: "done", reasoning_content: "not sent back" },
  ];
  const body = createOllamaBody({ model: "m", messages, params: {} }, { stream: false });
  expect(body.messages).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "look\nhere", images: ["aGk="] },
    {
      role: "assistant",
      content: "",
      thinking: "I'll look.",
      tool_calls: [{ id: "t1", function: { index: 0, name: "f", arguments: { x: 1 } } }],
    },
    { role: "tool", content: "42", tool_name: "f", tool_call_id: "t1" },
    { role: "assistant", content: "done" },
  ]);
});

test.each([
  [{ type: "image_url", image_url: { url: "https://example.org/a.png" } }, /doesn't support image URLs/],
  [{ type: "input_audio", input_audio: {} }, /input_audio/],
])("content that Ollama can't receive is rejected instead of omitted: %j", (part, message) => {
  const call = { model: "m", messages: [{ role: "user", content: [part] }], params: {} };
  expect(() => createOllamaBody(call, { stream: true })).toThrow(message);
});
