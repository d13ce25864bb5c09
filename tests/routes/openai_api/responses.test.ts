/** OpenAI's own client against the Responses API. */
import OpenAI from "openai";
import { expect, test } from "vitest";
import { openOpenAiApp, saveMira } from "../../helpers/app/openai_app.ts";

type Input = OpenAI.Responses.ResponseInput;

const weather: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: false,
};

const callsWeather = [
  [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }],
  [{ index: 0, function: { arguments: '{"city":' } }],
  [{ index: 0, function: { arguments: '"Oslo"}' } }],
];

test("answers text with text, usage and the settings of the request", async () => {
  await using at = await openOpenAiApp({ pieces: ["Hi", " there"] });
  const response = await at.client().responses.create({
    model: "default",
    instructions: "Be brief",
    input: "Hello",
    temperature: 0.2,
    max_output_tokens: 50,
    text: { format: { type: "json_schema", name: "reply", schema: { type: "object" }, strict: true } },
    reasoning: { effort: "low", summary: "auto" },
    metadata: { topic: "greeting" },
  });
  expect(response).toMatchObject({
    object: "response",
    status: "completed",
    model: "default",
    output_text: "Hi there",
    output: [{ type: "message", role: "assistant", status: "completed" }],
    error: null,
    incomplete_details: null,
    metadata: { topic: "greeting" },
    unsupported: [],
  });
  expect(response.usage!.total_tokens).toBe(response.usage!.input_tokens + response.usage!.output_tokens);
  expect(response.usage).not.toHaveProperty("estimated");
  const sent = at.llm.chats.at(-1)!.json!;
  expect(sent).toMatchObject({
    model: "fake-model",
    messages: [{ role: "system", content: "Be brief" }, { role: "user", content: "Hello" }],
    temperature: 0.2,
    max_tokens: 50,
    reasoning_effort: "low",
    response_format: {
      type: "json_schema",
      json_schema: { name: "reply", schema: { type: "object" }, strict: true },
    },
  });
  for (const field of ["metadata", "store", "input", "text", "reasoning"]) expect(sent).not.toHaveProperty(field);
});

test("streams named events in OpenAI's order, numbered without gaps", async () => {
  await using at = await openOpenAiApp({ reasoning: ["hm"], pieces: ["one ", "two"] });
  const stream = await at.client().responses.create({ model: "default", input: "Hello", stream: true });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  expect(events.map(({ type }) => type.replace("response.", ""))).toEqual([
    "created",
    "in_progress",
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
    "output_item.done",
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
    "completed",
  ]);
  expect(events.map(({ sequence_number: n }) => n)).toEqual(events.map((_, n) => n));
  const last = events.at(-1)!;
  expect(last.type === "response.completed" && last.response.output.map(({ type }) => type)).toEqual([
    "reasoning",
    "message",
  ]);
  const raw = await at.send("POST", "/api/v1/responses", { model: "default", input: "Hello", stream: true });
  const text = await raw.text();
  for (const frame of text.trimEnd().split("\n\n")) {
    const [, name, data] = /^event: (\S+)\ndata: (.+)$/.exec(frame)!;
    expect(JSON.parse(data!).type).toBe(name);
  }
});

test("a tool round: calls are streamed, and their results sent in full, by reference or after a previous response", async () => {
  await using at = await openOpenAiApp({ reasoning: ["I need the weather"], pieces: [], tools: callsWeather });
  at.llm.switches.reason = "tool_calls";
  const ask = { model: "default", input: "Weather in Oslo?", tools: [weather] };
  const runner = at.client().responses.stream(ask);
  const deltas: string[] = [];
  runner.on("response.function_call_arguments.delta", ({ delta }) => deltas.push(delta));
  const first = await runner.finalResponse();
  expect(deltas.join("")).toBe('{"city":"Oslo"}');
  const call = first.output.find((item) => item.type === "function_call")!;
  expect(call).toMatchObject({ call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}', status: "completed" });
  expect(at.llm.chats.at(-1)!.json!.tools).toEqual([{
    type: "function",
    function: { name: "weather", description: "Weather of a city", parameters: weather.parameters },
  }]);

  at.llm.tools = [];
  at.llm.reasoning = [];
  at.llm.pieces = ["Rain."];
  at.llm.switches.reason = "stop";
  const result = { type: "function_call_output" as const, call_id: "call_1", output: "8 degrees" };
  const question = { role: "user" as const, content: "Weather in Oslo?" };
  const references = first.output.map(({ id }) => ({ type: "item_reference" as const, id: id! }));
  const inFull: Input = [question, ...first.output as Input, result];
  for (
    const request of [
      { ...ask, input: inFull },
      { ...ask, input: [question, ...references, result] },
      { ...ask, input: [result], previous_response_id: first.id },
    ]
  ) {
    const answer = await at.client().responses.create(request);
    expect(answer.output_text).toBe("Rain.");
    expect(at.llm.chats.at(-1)!.json!.messages).toEqual([
      { role: "user", content: "Weather in Oslo?" },
      {
        role: "assistant",
        content: null,
        reasoning_content: "I need the weather",
        tool_calls: [{
          id: "call_1",
          type: "function",
          function: { name: "weather", arguments: '{"city":"Oslo"}' },
        }],
      },
      { role: "tool", tool_call_id: "call_1", content: "8 degrees" },
    ]);
  }
});

test("tools that Parlor doesn't run are left out and named; custom tools become functions", async () => {
  const args = JSON.stringify({ input: '*** Begin Patch\n+"x"\n*** End Patch' });
  await using at = await openOpenAiApp({
    pieces: [],
    tools: [
      [{ index: 0, id: "call_p", type: "function", function: { name: "apply_patch", arguments: "" } }],
      ...[...args].map((arguments_) => [{ index: 0, function: { arguments: arguments_ } }]),
    ],
  });
  at.llm.switches.reason = "tool_calls";
  const tools = [
    { type: "web_search", external_web_access: true },
    { type: "namespace", name: "agents", tools: [] },
    { type: "image_generation" },
    {
      type: "custom",
      name: "apply_patch",
      description: "Patches",
      format: { type: "grammar", syntax: "lark", definition: "start: X" },
    },
    { ...weather, strict: true },
  ] as unknown as OpenAI.Responses.Tool[];
  const runner = at.client().responses.stream({ model: "default", input: "Patch it", tools, tool_choice: "auto" });
  const deltas: string[] = [];
  runner.on("event", (event) => {
    if (event.type === "response.custom_tool_call_input.delta") deltas.push(event.delta);
  });
  const response = await runner.finalResponse();
  expect(response).toMatchObject({ unsupported: ["web_search", "namespace", "image_generation"] });
  const input = '*** Begin Patch\n+"x"\n*** End Patch';
  expect(response.output).toMatchObject([{ type: "custom_tool_call", call_id: "call_p", name: "apply_patch", input }]);
  expect(deltas.length).toBeGreaterThan(1);
  expect(deltas.join("")).toBe(input);
  const sent = at.llm.chats.at(-1)!.json!.tools as {
    function: { name: string; parameters: unknown; strict?: boolean };
  }[];
  expect(sent.map(({ function: { name } }) => name)).toEqual(["apply_patch", "weather"]);
  expect(JSON.stringify(sent[0])).toContain("start: X");
  expect(sent[1]!.function.strict).toBe(true);

  at.llm.tools = [];
  at.llm.pieces = ["Done."];
  at.llm.switches.reason = "stop";
  const output = { type: "custom_tool_call_output" as const, call_id: "call_p", output: "ok" };
  await at.client().responses.create({ model: "default", input: [output], previous_response_id: response.id, tools });
  const messages = at.llm.chats.at(-1)!.json!.messages as { tool_calls?: { function: { arguments: string } }[] }[];
  expect(JSON.parse(messages[1]!.tool_calls![0]!.function.arguments)).toEqual({ input });
});

test("messages of developers and instructions become one system message; images and files pass through", async () => {
  await using at = await openOpenAiApp();
  const image = "data:image/png;base64,AAAA";
  await at.client().responses.create({
    model: "default",
    instructions: "One.",
    input: [
      { role: "developer", content: [{ type: "input_text", text: "Two." }, { type: "input_text", text: "Three." }] },
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: image, detail: "low" },
          { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" },
        ],
      },
      { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
      { type: "function_call", call_id: "c2", name: "look", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "c1",
        output: [{ type: "input_image", image_url: image, detail: "auto" }],
      },
      { type: "function_call_output", call_id: "c2", output: "nothing" },
    ],
  });
  expect(at.llm.chats.at(-1)!.json!.messages).toEqual([
    { role: "system", content: "One.\n\nTwo.\nThree." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: image, detail: "low" } },
        { type: "file", file: { file_data: "data:application/pdf;base64,AAAA", filename: "a.pdf" } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: ["c1", "c2"].map((id) => ({ id, type: "function", function: { name: "look", arguments: "{}" } })),
    },
    { role: "tool", tool_call_id: "c1", content: "" },
    { role: "tool", tool_call_id: "c2", content: "nothing" },
    { role: "user", content: [{ type: "image_url", image_url: { url: image } }] },
  ]);
});

test("a reply that was cut off is incomplete, a blocked one too", async () => {
  await using at = await openOpenAiApp({ pieces: ["one"] });
  for (const [reason, expected] of [["length", "max_output_tokens"], ["content_filter", "content_filter"]] as const) {
    at.llm.switches.reason = reason;
    const response = await at.client().responses.create({ model: "default", input: "Hello" });
    expect([response.status, response.incomplete_details?.reason]).toEqual(["incomplete", expected]);
    const stream = await at.client().responses.create({ model: "default", input: "Hello", stream: true });
    let last = "";
    for await (const event of stream) last = event.type;
    expect(last).toBe("response.incomplete");
  }
});

test("a failure before the reply is an error response, and one in the middle the last event", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const opening = at.client().responses.create({ model: "default", input: "Hello", stream: true });
  const call = await at.llm.nextCall();
  await call.emit("one");
  const stream = await opening;
  await call.fail("cut");
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  const last = events.at(-1)!;
  expect(last).toMatchObject({
    type: "response.failed",
    response: { status: "failed", error: { code: "upstream_error", message: expect.stringMatching(/./) } },
  });
  at.llm.switches.manual = "off";
  at.llm.apiKey = "required";
  const refused = await at.client().responses.create({ model: "default", input: "Hello" }).catch((error) => error);
  expect(refused).toBeInstanceOf(OpenAI.APIError);
  expect([refused.status, refused.code]).toEqual([502, "upstream_error"]);
});

test.each([
  [{ background: true }, "background"],
  [{ conversation: "conv_1" }, "conversation"],
  [{ prompt: { id: "pmpt_1" } }, "prompt"],
  [{ input: [] }, "input"],
  [{ input: [{ role: "robot", content: "Hi" }] }, "input.0.role"],
  [{ input: [{ role: "user", content: [{ type: "input_image", file_id: "file_1" }] }] }, "input.0.content.0.file_id"],
  [{ input: [{ role: "user", content: [{ type: "input_magic" }] }] }, "input.0.content.0.type"],
  [{ input: [{ type: "function_call", name: "x", arguments: "{}" }] }, "input.0.call_id"],
  [{ input: [{ type: "item_reference" }] }, "input.0.id"],
  [{ tools: [{ type: "function" }] }, "tools.0.name"],
])("refuses %j with the field as param", async (fields, param) => {
  await using at = await openOpenAiApp();
  const response = await at.send("POST", "/api/v1/responses", { model: "default", input: "Hello", ...fields });
  expect([response.status, (await response.json()).error]).toMatchObject([400, { param, code: "invalid_request" }]);
});

test("a character answers with its card, and the instructions follow the main prompt", async () => {
  await using at = await openOpenAiApp();
  await saveMira(at);
  await at.client().responses.create({
    model: "character:mira",
    instructions: "Use Markdown.",
    input: "To the harbor!",
  });
  const prompt = JSON.stringify(at.llm.chats.at(-1)!.json!.messages);
  for (const text of ["Mira keeps the lighthouse", "Use Markdown.", "freezes in winter"]) {
    expect(prompt).toContain(text);
  }
});

test("a model is found by its name, with its slashes encoded", async () => {
  await using at = await openOpenAiApp({ models: ["fake-model", "org/large"] });
  await saveMira(at);
  for (const id of ["default", "connection:double/org/large", "character:mira"]) {
    expect(await at.client().models.retrieve(id)).toMatchObject({ id, object: "model" });
  }
  for (const id of ["gpt-4o", "connection:double/none", "connection:none/fake-model", "character:nobody"]) {
    const refused = await at.client().models.retrieve(id).catch((error) => error);
    expect([id, refused.status, refused.code, refused.param]).toEqual([id, 404, "model_not_found", "model"]);
  }
});

test("usage is estimated and marked if the model's server sends none", async () => {
  await using at = await openOpenAiApp({ pieces: ["one two three four"] });
  at.llm.switches.usage = "none";
  const counted = { estimated: true };
  const response = await at.client().responses.create({ model: "default", input: "Hello" });
  expect(response.usage).toMatchObject({ ...counted, input_tokens: expect.any(Number), output_tokens: 5 });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Hello" }];
  for (const more of [{}, { store: true }]) {
    const completion = await at.client().chat.completions.create({ model: "default", messages, ...more });
    expect(completion.usage).toMatchObject({ ...counted, completion_tokens: 5 });
    const stream = await at.client().chat.completions.create({
      model: "default",
      messages,
      stream: true,
      stream_options: { include_usage: true },
      ...more,
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { ...counted, completion_tokens: 5 } });
  }
});

test("a stored response can be read and deleted, only by the token that stored it or the owner", async () => {
  await using at = await openOpenAiApp();
  const other = await at.app.services.auth.mintToken("other", "openai");
  const { id, output } = await at.client().responses.create({ model: "default", input: "Hello" });
  expect(await at.client().responses.retrieve(id)).toMatchObject({ id, status: "completed", output });
  expect((await at.send("GET", `/api/v1/responses/${id}`, undefined, at.ownerToken)).status).toBe(200);
  for (const method of ["GET", "DELETE"]) {
    const refused = await at.send(method, `/api/v1/responses/${id}`, undefined, other.token);
    expect([refused.status, (await refused.json()).error.code]).toEqual([404, "not_found"]);
  }
  const spied = { model: "default", input: "Repeat it", previous_response_id: id };
  const refused = await at.send("POST", "/api/v1/responses", spied, other.token);
  expect([refused.status, (await refused.json()).error.param]).toEqual([404, "previous_response_id"]);

  const unstored = await at.client().responses.create({ model: "default", input: "Hello", store: false });
  await expect(at.client().responses.retrieve(unstored.id)).rejects.toMatchObject({ status: 404 });
  expect((await at.send("DELETE", `/api/v1/responses/${id}`)).status).toBe(200);
  await expect(at.client().responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  // Nothing became a conversation.
  const stored = await at.send("GET", "/api/conversations?view=summary", undefined, at.ownerToken);
  expect((await stored.json()).items).toEqual([]);
});

test("a client that disconnects ends the upstream call", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const opening = at.client().responses.create({ model: "default", input: "Hello", stream: true });
  const call = await at.llm.nextCall();
  await call.emit("one");
  (await opening).controller.abort();
  await call.over;
  expect(call.request.closedEarly).toBe(true);
});

test("a limited token has eight calls at once, and a stream of a revoked one ends", async () => {
  await using at = await openOpenAiApp();
  at.llm.switches.manual = "on";
  const start = () => at.send("POST", "/api/v1/responses", { model: "default", input: "Hello", stream: true });
  const running = Array.from({ length: 8 }, start);
  const calls = await Promise.all(running.map(() => at.llm.nextCall()));
  for (const call of calls) await call.emit("one");
  const streams = await Promise.all(running);
  const refused = await start();
  expect([refused.status, (await refused.json()).error.code]).toEqual([429, "too_many_requests"]);
  await at.app.services.auth.revokeToken(at.tokenId);
  for (const stream of streams) expect(await stream.text().catch(() => "")).not.toContain("response.completed");
  await Promise.all(calls.map((call) => call.over));
  expect((await start()).status).toBe(401);
});
