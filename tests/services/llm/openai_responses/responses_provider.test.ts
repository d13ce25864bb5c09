/** A connection to a server with OpenAI's Responses API, through the chat completions that Parlor offers. */
import { expect, test } from "vitest";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { openFakeHttp } from "../../../helpers/fakes/llm/fake_llm_http.ts";

const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }];
const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "opaque" };
const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' };
const usage = { input_tokens: 5, output_tokens: 7, total_tokens: 12, output_tokens_details: { reasoning_tokens: 3 } };

/** A strict double: refuses what api.openai.com refuses. */
async function openDouble() {
  const bodies: Record<string, unknown>[] = [];
  let isCut = false;
  const http = await openFakeHttp(
    async (request, answer) => {
      if (request.path !== "/v1/responses") return await answer.json(404, { error: { message: "Not found" } });
      const body = request.json!;
      bodies.push(body);
      const input = body.input as Record<string, unknown>[];
      const refuse = (message: string, param: string) =>
        answer.json(400, { error: { message, type: "invalid_request_error", param, code: null } });
      const unknown = Object.keys(body).find((name) =>
        ["messages", "max_tokens", "stop", "stream_options", "reasoning_effort", "response_format"].includes(name)
      );
      if (unknown !== undefined) return await refuse(`Unknown parameter: '${unknown}'.`, unknown);
      const called = input.findIndex(({ type }) => type === "function_call");
      if (called >= 0 && input[called - 1]?.type !== "reasoning") {
        return await refuse(
          "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item.",
          "input",
        );
      }
      const answersResult = input.at(-1)?.type === "function_call_output";
      const item = answersResult || isCut
        ? { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "Rain." }] }
        : call;
      const status = isCut ? "incomplete" : "completed";
      const response = {
        id: "resp_1",
        status,
        output: [reasoning, item],
        usage,
        incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
      };
      if (body.stream !== true) return await answer.json(200, response);
      const events = [
        { type: "response.created", response: { id: "resp_1" } },
        { type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: 0, delta: "Hm." },
        { type: "response.output_item.done", output_index: 0, item: reasoning },
        ...item === call
          ? [
            { type: "response.output_item.added", output_index: 1, item: { ...call, arguments: "" } },
            { type: "response.function_call_arguments.delta", output_index: 1, delta: '{"city":' },
            { type: "response.function_call_arguments.delta", output_index: 1, delta: '"Oslo"}' },
          ]
          : [{ type: "response.output_text.delta", output_index: 1, delta: "Rain." }],
        { type: "response.output_item.done", output_index: 1, item },
        { type: `response.${status}`, response },
      ];
      const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
      await answer.send(200, "text/event-stream", text);
    },
    "127.0.0.1",
    0,
  );
  return { http, bodies, cut: () => void (isCut = true), url: `http://127.0.0.1:${http.port}/v1` };
}

test("calls a tool, sends encrypted reasoning back with its result, and reports usage and cuts", async () => {
  const double = await openDouble();
  await using app = await openTestApp();
  await useModel(app, double, { kind: "openai-responses" });
  const ask = async (messages: unknown[], more: Record<string, unknown> = {}) => {
    const response = await app.post("/api/v1/chat/completions", {
      model: "default",
      messages,
      tools,
      max_tokens: 100,
      stop: ["x"],
      reasoning_effort: "low",
      ...more,
    });
    expect(response.status).toBe(200);
    return response;
  };
  const question = { role: "user", content: [{ type: "text", text: "Weather?" }] };
  const first = await (await ask([{ role: "system", content: "Be brief" }, question])).json();
  expect(first.choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ id: "call_1", function: { name: "weather", arguments: '{"city":"Oslo"}' } }] },
  });
  expect(first.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 });
  expect(double.bodies[0]).toMatchObject({
    store: false,
    include: ["reasoning.encrypted_content"],
    max_output_tokens: 100,
    reasoning: { effort: "low", summary: "auto" },
    input: [
      { role: "system", content: [{ type: "input_text", text: "Be brief" }] },
      { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
    ],
    tools: [{ type: "function", name: "weather", strict: false }],
  });

  const result = { role: "tool", tool_call_id: "call_1", content: "8 degrees" };
  const second = await ask([question, first.choices[0].message, result], { stream: true });
  const text = await second.text();
  expect(text).toContain('"content":"Rain."');
  expect(text).toContain('"finish_reason":"stop"');
  expect((double.bodies[1]!.input as unknown[]).slice(1)).toEqual([
    reasoning,
    { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' },
    { type: "function_call_output", call_id: "call_1", output: "8 degrees" },
  ]);

  const streamed = await (await ask([question], { stream: true })).text();
  expect(streamed).toContain('"reasoning_content":"Hm."');
  expect(streamed).toContain('"finish_reason":"tool_calls"');
  double.cut();
  const cut = await (await ask([question])).json();
  expect(cut.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "Rain." } });
  await double.http.close();
});
