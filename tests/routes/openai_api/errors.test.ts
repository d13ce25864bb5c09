/** Errors of the OpenAI-compatible API. */
import { expect, test } from "vitest";
import { type OpenAiApp, openOpenAiApp } from "../../helpers/app/openai_app.ts";
import { framesOf } from "../../helpers/app/chat_client.ts";

const messages = [{ role: "user", content: "Hi" }];
const ask = (at: OpenAiApp, more: Record<string, unknown> = {}) =>
  at.send("POST", "/api/v1/chat/completions", { model: "default", messages, ...more });

test.each([
  [400, 400, "invalid_request_error"],
  [401, 502, "server_error"],
  [402, 502, "server_error"],
  [403, 502, "server_error"],
  [404, 404, "invalid_request_error"],
  [413, 413, "invalid_request_error"],
  [422, 422, "invalid_request_error"],
  [429, 429, "rate_limit_error"],
  [500, 502, "server_error"],
  [504, 504, "server_error"],
])("an upstream %i gets %i, streamed, whole and stored", async (status, answered, type) => {
  await using at = await openOpenAiApp();
  Object.assign(at.llm.switches, { fail: "status_json", status, message: "the double says no", retry_after: "7" });
  for (const more of [{}, { stream: true }, { store: true }, { store: true, stream: true }]) {
    const response = await ask(at, more);
    const { error } = await response.json();
    expect([more, response.status, error.type]).toEqual([more, answered, type]);
    expect(error.message).toContain("the double says no");
    expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
    if (status === 429) expect(response.headers.get("retry-after")).toBe("7");
  }
});

test("a prompt that's too long for the model has OpenAI's code", async () => {
  await using at = await openOpenAiApp();
  Object.assign(at.llm.switches, { fail: "status_json", status: 400, message: "exceeds the context size" });
  expect((await (await ask(at)).json()).error.code).toBe("context_length_exceeded");
});

test("a failure in mid-stream is a data event with an error, then the end", async () => {
  await using at = await openOpenAiApp({ pieces: ["one ", "two "] });
  Object.assign(at.llm.switches, { fail: "cut", after: 1 });
  for (const store of [false, true]) {
    const frames = await Array.fromAsync(framesOf(await ask(at, { stream: true, store })));
    const last = JSON.parse(frames.at(-1)!.data);
    expect(last.error).toMatchObject({ type: "server_error", code: "upstream_error" });
    expect(frames.at(-1)!.event).toBeUndefined();
    expect(frames.map(({ data }) => data)).not.toContain("[DONE]");
  }
});

test("Parlor's own errors have OpenAI's format only below /api/v1", async () => {
  await using at = await openOpenAiApp();
  const of = async (method: string, path: string, body?: Record<string, unknown>, token?: string) => {
    const response = await at.send(method, path, body, token);
    const { error } = await response.json();
    return [response.status, error.code, error.param];
  };
  expect(await of("GET", "/api/v1/nothing")).toEqual([404, "not_found", null]);
  expect(await of("DELETE", "/api/v1/models")).toEqual([405, "method_not_allowed", null]);
  expect(await of("POST", "/api/v1/chat/completions", { messages })).toEqual([400, "invalid_request", "model"]);
  expect(await of("POST", "/api/v1/chat/completions", { model: "default", messages: [] })).toEqual([
    400,
    "invalid_request",
    "messages",
  ]);
  expect(await of("POST", "/api/v1/chat/completions", { model: "default", messages, n: 2 })).toEqual([
    400,
    "invalid_request",
    "n",
  ]);
  expect(await of("POST", "/api/v1/embeddings", { model: "character:nobody", input: "x" })).toEqual([
    404,
    "model_not_found",
    "model",
  ]);
  expect(await of("GET", "/api/v1/models", undefined, "parlor_wrong")).toEqual([401, "unauthenticated", null]);
  const elsewhere = await (await at.send("GET", "/api/nothing", undefined, at.ownerToken)).json();
  expect(elsewhere.error).toEqual({ code: "not_found", message: expect.any(String), request_id: expect.any(String) });
});

test("without an active connection nothing is available, and the list has no default", async () => {
  await using at = await openOpenAiApp();
  await at.send("DELETE", "/api/connections/double", undefined, at.ownerToken);
  expect((await ask(at)).status).toBe(503);
  const { data } = await (await at.send("GET", "/api/v1/models")).json();
  expect(data.map(({ id }: { id: string }) => id)).not.toContain("default");
});

test("a connection whose server is unreachable is named, and its own model is listed", async () => {
  await using at = await openOpenAiApp();
  await at.llm.close();
  const { data, unavailable } = await (await at.send("GET", "/api/v1/models")).json();
  expect(data.map(({ id }: { id: string }) => id)).toContain("connection:double/fake-model");
  expect(unavailable).toEqual([{
    connection_id: "double",
    name: "Double",
    message: expect.stringContaining("Can't reach"),
  }]);
});

test("connections without embeddings and characters say so", async () => {
  await using at = await openOpenAiApp();
  const [character] = (await (await at.send("GET", "/api/v1/models")).json()).data
    .filter(({ id }: { id: string }) => id.startsWith("character:"));
  for (const model of ["connection:demo/demo", character.id]) {
    const response = await at.send("POST", "/api/v1/embeddings", { model, input: "x" });
    expect([response.status, (await response.json()).error.param]).toEqual([400, "model"]);
  }
});
