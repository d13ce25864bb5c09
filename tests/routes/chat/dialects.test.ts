import { expect, test } from "vitest";
import { REFUSAL_TTL_MS } from "../../../services/llm/connections/connection_memory.ts";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openFakeHttp } from "../../helpers/fakes/llm/fake_llm_http.ts";

const SAMPLERS = { temperature: 0.7, top_k: 40, min_p: 0.05, repetition_penalty: 1.1 };

async function connection(app: TestApp, id = "double") {
  const list: Record<string, unknown>[] = await (await app.get("/api/connections")).json();
  return list.find((one) => one.id === id)!;
}

/** Fields of the last chat request, without those of every request. */
function lastFields(llm: FakeLlm): Record<string, unknown> {
  const { model: _, messages: __, stream: ___, ...fields } = llm.chats.at(-1)!.json!;
  return fields;
}

test.each(
  [
    ["openai", 3, ["min_p", "repetition_penalty", "top_k"], 400],
    ["openai-thinking", 4, ["min_p", "repetition_penalty", "temperature", "top_k"], 400],
    ["mistral", 1, ["min_p", "repetition_penalty", "stream_options", "top_k"], 422],
    ["gemini", 1, ["min_p", "repetition_penalty", "top_k"], 400],
    ["groq", 3, ["min_p", "repetition_penalty", "top_k"], 400],
  ] as const,
)(
  "%s answers although it refuses samplers, after %i refusals, and the message lists %j",
  async (personality, refusals, fields, status) => {
    await using llm = await openFakeLlm({ personality });
    await using app = await openTestApp();
    await useModel(app, llm);
    // A service may refuse one field at a time, so a second attempt can be needed.
    for (let n = 1; llm.chats.length <= refusals; n++) await gather(await ask(app, n, SAMPLERS));
    expect(llm.chats).toHaveLength(refusals + (refusals > 3 ? 2 : 1));
    expect(await gather(await ask(app, 9, SAMPLERS))).toMatchObject({ isDone: true, text: "Hello" });
    const message = await savedMessage(app, "a9");
    const leftOut = message!.left_out as { field: string; status: number; reason: string }[];
    expect(leftOut.map(({ field }) => field).sort()).toEqual(fields);
    for (const one of leftOut) expect(one).toMatchObject({ status, reason: expect.stringMatching(/\S/) });
    const { refused } = await connection(app) as { refused: Record<string, unknown>[] };
    expect(refused.map(({ field }) => field).sort()).toEqual(fields);
    expect(refused[0]).toMatchObject({
      model: "fake-model",
      status,
      at: expect.any(String),
      until: expect.any(String),
    });
  },
);

test("a rejected field is omitted from then on, across restarts, for 7 days or until the connection is edited", async () => {
  await using llm = await openFakeLlm({ personality: "openai" });
  let now = Date.now();
  await using app = await openTestApp({ now: () => now });
  await useModel(app, llm);
  const tries = async (n: number, fields: Record<string, unknown> = { top_k: 40 }) => {
    llm.requests.length = 0;
    await gather(await ask(app, n, fields));
    return llm.chats.length;
  };
  expect(await tries(1)).toBe(2);
  expect(await tries(2)).toBe(1);
  // Another model may take it.
  expect(await tries(3, { top_k: 40, model: "other" })).toBe(2);
  await app.restart();
  expect(await tries(4)).toBe(1);
  expect(await savedMessage(app, "a4")).toMatchObject({ left_out: [{ field: "top_k", status: 400 }] });
  await app.put("/api/connections", { id: "double", name: "Renamed" });
  expect(await connection(app)).toMatchObject({ refused: [] });
  expect(await tries(5)).toBe(2);
  now += REFUSAL_TTL_MS;
  expect(await connection(app)).toMatchObject({ refused: [] });
  expect(await tries(6)).toBe(2);
});

test("detected properties aren't stored in plain text", { tags: ["K01"] }, async () => {
  await using llm = await openFakeLlm({ personality: "openai", models: ["plainly-named"] });
  await using app = await openTestApp();
  await useModel(app, llm, { model: null });
  await gather(await ask(app, 1, { top_k: 40 }));
  await app.restart(async () => {
    const bytes = await Deno.readFile(`${app.dataDir}/app.db`);
    expect(new TextDecoder("latin1").decode(bytes).includes("plainly-named")).toBe(false);
  });
  expect(await connection(app)).toMatchObject({ resolved_model: "plainly-named", refused: [{ field: "top_k" }] });
});

test("a rejected limit is sent under the name that the server asks for, and is stored with the message", async () => {
  await using llm = await openFakeLlm({ personality: "openai-thinking" });
  await using app = await openTestApp();
  await useModel(app, llm);
  await gather(await ask(app, 1, { max_tokens: 77 }));
  expect(lastFields(llm)).toMatchObject({ max_completion_tokens: 77 });
  expect(lastFields(llm)).not.toHaveProperty("max_tokens");
  const message = await savedMessage(app, "a1");
  expect(message).toMatchObject({ status: "complete", output_limit: 77, finish_reason: "stop" });
  expect(message).not.toHaveProperty("left_out");
  expect(await connection(app)).toMatchObject({
    refused: [{ field: "max_tokens", sent_as: "max_completion_tokens" }],
  });
});

test("no limit is sent unless one is set, and none is stored with the message", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm);
  await gather(await ask(app, 1));
  expect(lastFields(llm)).toEqual({ stream_options: { include_usage: true } });
  expect(await savedMessage(app, "a1")).not.toHaveProperty("output_limit");
});

test("a request takes at most three more attempts, and none without a newly named field", async () => {
  let body: Record<string, unknown> = {};
  let tries = 0;
  const http = await openFakeHttp(async (request, answer) => {
    if (request.method === "GET") return await answer.json(404, {});
    tries++;
    body = request.json!;
    const optional = Object.keys(body).find((name) => !["model", "messages", "stream"].includes(name));
    await answer.json(400, { error: { message: "no", param: optional ?? "messages" } });
  });
  await using app = await openTestApp();
  await useModel(app, { url: `http://127.0.0.1:${http.port}/v1` });
  const fields = { a_1: 1, a_2: 1, a_3: 1, a_4: 1, stream: false };
  expect((await ask(app, 1, fields)).status).toBe(502);
  expect(tries).toBe(4);
  await (await ask(app, 2, fields)).body?.cancel();
  tries = 0;
  expect((await ask(app, 3, fields)).status).toBe(502);
  expect(tries).toBe(1);
  expect(Object.keys(body).sort()).toEqual(["messages", "model", "stream"]);
  await http.close();
});

test.each(
  [
    ["llama.cpp", "llama.cpp", { repeat_penalty: 1.1, top_k: 40, return_progress: true }],
    ["koboldcpp", "koboldcpp", { rep_pen: 1.1, top_k: 40, max_tokens: 2048 }],
    ["tabbyapi", "tabbyapi", { repetition_penalty: 1.1, top_k: 40 }],
    ["vllm", "vllm", { repetition_penalty: 1.1, top_k: 40 }],
    ["lm-studio-v0", "lmstudio", { repeat_penalty: 1.1, top_k: 40 }],
    ["mlx_lm", "mlx", { repetition_penalty: 1.1, top_k: 40, max_tokens: 2048 }],
    ["ollama", "ollama", { repeat_penalty: 1.1, top_k: 40 }],
    ["generic", undefined, { repetition_penalty: 1.1, top_k: 40 }],
    ["localai", undefined, { repetition_penalty: 1.1, top_k: 40 }],
  ] as const,
)("%s is asked what it is (%s) and gets its own names: %j", async (personality, detected, fields) => {
  await using llm = await openFakeLlm({ personality, models: ["fake-model"] });
  await using app = await openTestApp();
  await useModel(app, llm);
  await gather(await ask(app, 1, { repetition_penalty: 1.1, top_k: 40 }));
  expect(lastFields(llm)).toEqual({ ...fields, stream_options: { include_usage: true } });
  const server = detected === undefined ? {} : { detected };
  expect(await connection(app)).toMatchObject({ server, dialect: { name: detected ?? "generic" } });
  // It is stored.
  const countRequests = () => llm.requests.filter(({ method }) => method !== "DELETE").length;
  const asked = countRequests();
  await gather(await ask(app, 2));
  expect(countRequests()).toBe(asked + 1);
});

test("the owner's choice of a dialect takes precedence over the server's own words, and can be undone", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await using app = await openTestApp();
  await useModel(app, llm, { server: { override: "vllm" } });
  await gather(await ask(app, 1, { repetition_penalty: 1.1 }));
  expect(lastFields(llm)).toMatchObject({ repetition_penalty: 1.1 });
  expect(await connection(app)).toMatchObject({
    server: { override: "vllm" },
    dialect: { name: "vllm", title: "vLLM" },
  });
  await app.put("/api/connections", { id: "double", server: { override: null } });
  await gather(await ask(app, 2, { repetition_penalty: 1.1 }));
  expect(lastFields(llm)).toMatchObject({ repeat_penalty: 1.1 });
  expect((await app.put("/api/connections", { id: "double", server: { override: "none" } })).status).toBe(400);
});

test.each(
  [
    ["openai", { reasoning_effort: "minimal" }, "minimal"],
    ["mistral", { reasoning_effort: "high" }, "low"],
    ["deepseek", { thinking: { type: "disabled" } }, "none"],
    ["openrouter", { reasoning: { effort: "low" } }, "low"],
    ["openrouter", { reasoning: { enabled: false } }, "none"],
    ["llama.cpp", { chat_template_kwargs: { enable_thinking: false } }, "none"],
    ["tabbyapi", { template_vars: { enable_thinking: false } }, "none"],
  ] as const,
)("in the dialect %s the effort is sent as %j", async (override, fields, effort) => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm, { server: { override } });
  await gather(await ask(app, 1, { reasoning_effort: effort }));
  expect(lastFields(llm)).toMatchObject(fields);
  if (!("reasoning_effort" in fields)) expect(lastFields(llm)).not.toHaveProperty("reasoning_effort");
  expect((await ask(app, 2, { reasoning_effort: "enormous" })).status).toBe(400);
});

test("Azure gets the query of its URL with every call, and its key in the api-key header", async () => {
  const prefix = "/openai/deployments/gpt";
  await using llm = await openFakeLlm({ personality: "azure", prefix, apiKey: "azure-key-123456" });
  await using app = await openTestApp();
  const url = `${llm.origin}${prefix}/chat/completions?api-version=2024-10-21`;
  await useModel(app, { url }, { model: null, api_key: "azure-key-123456" });
  expect(await gather(await ask(app, 1))).toMatchObject({ text: "Hello", isDone: true });
  expect(await connection(app)).toMatchObject({
    base_url: `${llm.origin}${prefix}?api-version=2024-10-21`,
    dialect: { name: "azure" },
    resolved_model: "gpt",
  });
  expect(llm.requests.some(({ path }) => path.includes("/models"))).toBe(true);
  expect(llm.requests.filter(({ path }) => !path.includes("api-version=2024-10-21"))).toEqual([]);
  expect(llm.requests.filter(({ headers }) => headers.has("authorization"))).toEqual([]);
  expect(await savedMessage(app, "a1")).toMatchObject({ model: "gpt" });
});

test("Mistral's parts of thinking are reasoning", async () => {
  const chunk = (content: unknown) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
  const thinking = (text: string) => [{ type: "thinking", thinking: [{ type: "text", text }] }];
  const http = await openFakeHttp(async (request, answer) => {
    if (request.method === "GET") return await answer.json(404, {});
    const frames = [
      chunk(thinking("Let me ")),
      chunk([...thinking("see."), { type: "text", text: "It" }]),
      chunk(" is."),
    ];
    const end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
    await answer.send(200, "text/event-stream", frames.join("") + end);
  });
  await using app = await openTestApp();
  await useModel(app, { url: `http://127.0.0.1:${http.port}/v1` }, { server: { override: "mistral" } });
  await gather(await ask(app, 1));
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "It is.", reasoning: "Let me see." });
  await http.close();
});

test("a server without a known context size is never said to have space", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm);
  const preview = async () =>
    await (await app.post("/api/chat/preview", { messages: [{ role: "user", content: "Hi" }] })).json();
  expect(await preview()).toMatchObject({ context_size_assumed: true, fits: null });
  await app.put("/api/connections", { id: "double", context_size: 4096 });
  expect(await preview()).toMatchObject({ context_size_assumed: false, fits: true });
});
