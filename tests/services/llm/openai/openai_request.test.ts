import { expect, test } from "vitest";
import type { DialectName } from "../../../../services/llm/dialects/dialect.ts";
import { getDialect } from "../../../../services/llm/dialects/dialects.ts";
import { createOpenAiBody } from "../../../../services/llm/openai/openai_request.ts";
import { ask, target } from "../model_calls.ts";

/** Fields of a request in the dialect of a server, without those of every request. */
function fieldsIn(dialect: DialectName, params: Record<string, unknown>, more = {}): Record<string, unknown> {
  const { fields } = createOpenAiBody(
    target("http://h/v1", { dialect: getDialect(dialect), ...more }),
    ask("hi", params),
    {
      stream: true,
    },
  );
  const { model: _, messages: __, stream: ___, stream_options: ____, return_progress: _____, ...own } = fields;
  return own;
}

test.each([
  ["http://127.0.0.1:8080/v1", { max_tokens: 99 }, { max_tokens: 99 }],
  ["http://127.0.0.1:8080/v1", { max_completion_tokens: 99 }, { max_completion_tokens: 99 }],
  ["http://127.0.0.1:8080/v1", { max_tokens: 99, max_completion_tokens: 98 }, { max_tokens: 99 }],
  ["http://127.0.0.1:8080/v1", {}, {}],
  ["https://api.openai.com/v1", { max_tokens: 99 }, { max_completion_tokens: 99 }],
  ["https://api.openai.com/v1", {}, {}],
  ["https://api.mistral.ai/v1", { max_completion_tokens: 99 }, { max_tokens: 99 }],
])("the token limit goes to %s under one name: %j becomes %j", (baseUrl, params, sent) => {
  const { max_tokens, max_completion_tokens } = createOpenAiBody(target(baseUrl), ask("hi", params), { stream: true })
    .fields;
  expect(JSON.parse(JSON.stringify({ max_tokens, max_completion_tokens }))).toEqual(sent);
});

test.each<[DialectName, Record<string, unknown>]>([
  ["koboldcpp", { max_tokens: 2048 }],
  ["mlx", { max_tokens: 2048 }],
  ["llama.cpp", {}],
  ["openai", {}],
])("%s gets a limit that nobody set only if it would stop early: %j", (dialect, sent) => {
  expect(fieldsIn(dialect, {})).toEqual(sent);
});

test("the limit of a server that needs one leaves half of a small context to the prompt", () => {
  expect(fieldsIn("mlx", {}, { contextSize: 1000 })).toEqual({ max_tokens: 500 });
});

test("neither a caller nor an extra body can set another model, other messages or another kind of response", () => {
  const own = { model: "other", messages: [], stream: false };
  const call = { ...ask("hi", { ...own, stream_options: { include_usage: false } }), extraBody: own };
  const body = createOpenAiBody(target("http://h/v1", { extraBody: own }), call, { stream: true });
  expect(body.fields).toMatchObject({ model: "fake-model", messages: call.messages, stream: true });
});

test("llama.cpp is asked for the progress of the prompt of a stream", () => {
  const llama = target("http://h/v1", { dialect: getDialect("llama.cpp") });
  expect(createOpenAiBody(llama, ask("hi"), { stream: true }).fields).toMatchObject({ return_progress: true });
  expect(createOpenAiBody(llama, ask("hi"), { stream: false }).fields).not.toHaveProperty("return_progress");
  const off = ask("hi", { return_progress: false });
  expect(createOpenAiBody(llama, off, { stream: true }).fields).toMatchObject({ return_progress: false });
});

test("a request without streaming has no stream_options", () => {
  const { fields } = createOpenAiBody(target("http://h/v1"), ask("hi", { stream_options: {} }), { stream: false });
  expect(fields).not.toHaveProperty("stream_options");
});

test.each<[DialectName, Record<string, unknown>]>([
  ["llama.cpp", { repeat_penalty: 1.2, top_k: 40, typical_p: 0.9, seed: 1 }],
  ["koboldcpp", { rep_pen: 1.2, top_k: 40, typical: 0.9, seed: 1, max_tokens: 2048 }],
  ["tabbyapi", { repetition_penalty: 1.2, top_k: 40, typical: 0.9, seed: 1 }],
  ["mistral", { repetition_penalty: 1.2, top_k: 40, typical_p: 0.9, random_seed: 1 }],
  ["generic", { repetition_penalty: 1.2, top_k: 40, typical_p: 0.9, seed: 1 }],
])("%s gets samplers under its own names: %j", (dialect, sent) => {
  expect(fieldsIn(dialect, { repetition_penalty: 1.2, top_k: 40, typical_p: 0.9, seed: 1 })).toEqual(sent);
});

test("a sampler that the caller sends under the server's own name isn't replaced", () => {
  expect(fieldsIn("llama.cpp", { repeat_penalty: 1.1, repetition_penalty: 1.5 })).toMatchObject({
    repeat_penalty: 1.1,
  });
});

test("the extra body of a preset overrides that of the connection, and the request both", () => {
  const call = {
    ...ask("hi", { temperature: 1 }),
    extraBody: { temperature: 2, top_k: 2, provider: { order: ["b"] } },
  };
  const extraBody = { temperature: 3, top_k: 3, min_p: 3, provider: { order: ["c"], sort: "price" } };
  const { fields } = createOpenAiBody(target("http://h/v1", { extraBody }), call, { stream: true });
  expect(fields).toMatchObject({
    temperature: 1,
    top_k: 2,
    min_p: 3,
    provider: { order: ["b"], sort: "price" },
  });
});

test("a rejected field is stored under the caller's name", () => {
  const { callerNames } = createOpenAiBody(
    target("http://h/v1", { dialect: getDialect("llama.cpp") }),
    ask("hi", { repetition_penalty: 1.2, reasoning_effort: "none" }),
    { stream: true },
  );
  expect(callerNames?.get("repeat_penalty")).toBe("repetition_penalty");
  expect(callerNames?.get("chat_template_kwargs")).toBe("reasoning_effort");
});

test("logit bias of texts is in the form of the server; what it can't have is named", () => {
  const logit_bias = [{ text: " wolf", value: -5 }, { text: "[15, 16]", value: 3 }];
  const send = (name: DialectName, biases: unknown = logit_bias) => {
    const llama = target("http://h/v1", { dialect: getDialect(name) });
    const { fields, leftOut } = createOpenAiBody(llama, ask("hi", { logit_bias: biases }), { stream: true });
    return [fields.logit_bias, leftOut?.map(({ field }) => field)];
  };
  expect(send("llama.cpp")).toEqual([[[15, 3], [16, 3], [" wolf", -5]], []]);
  expect(send("openai")).toEqual([{ 15: 3, 16: 3 }, ["logit_bias"]]);
  expect(send("openai", [logit_bias[1]])).toEqual([{ 15: 3, 16: 3 }, []]);
  expect(send("openai", [logit_bias[0]])).toEqual([undefined, ["logit_bias"]]);
  expect(send("mistral")).toEqual([undefined, ["logit_bias"]]);
  expect(send("openai", { 15: 3 })).toEqual([{ 15: 3 }, []]);
});
