import { afterAll, beforeAll, expect, test } from "vitest";
import { createUpstreamClient, type UpstreamClient } from "../../../services/llm/upstream_client.ts";
import { maskKey } from "../../../services/http/api_key.ts";
import { parseRetryAfter } from "../../../services/http/error_response.ts";
import { classifyError, parseErrorReport } from "../../../services/llm/error_report.ts";
import { openFakeLlm } from "../../helpers/fakes/fake_llm.ts";
import { ask, failureOf, gather, kindOf, never, target } from "./model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient();
});
afterAll(() => client.close());

const KEY = "sk-very-secret-0123456789";

test.each([
  [{ error: { message: "a", type: "t", code: "c" } }, "a"],
  [{ error: "b" }, "b"],
  [{ detail: { msg: "c", type: "x" } }, "c"],
  [{ detail: { error: "d" } }, "d"],
  [{ detail: "e" }, "e"],
  [{ detail: [{ msg: "f", loc: [] }] }, "f"],
  [{ object: "error", message: "g", type: "BadRequestError", code: 400 }, "g"],
  [{ type: "error", error: { type: "overloaded_error", message: "h" } }, "h"],
  ["i", "i"],
])("the message of %j is found", (body, message) => {
  expect(parseErrorReport(body)?.message).toBe(message);
});

test.each([[null], [{}], [[]], [""], [{ choices: [] }]])("%j is no error", (body) => {
  expect(parseErrorReport(body)).toBeUndefined();
});

test.each([
  [400, { error: { message: "x", type: "exceed_context_size_error" } }, "overflow"],
  [400, { error: { message: "x", code: "context_length_exceeded" } }, "overflow"],
  [400, { error: { message: "x", metadata: { error_type: "context_length_exceeded" } } }, "overflow"],
  [400, { error: "This model's maximum context length is 4096 tokens" }, "overflow"],
  [500, { error: "the prompt does not fit in context" }, "overflow"],
  [413, { error: "Prompt is too long: 9 tokens > 8 maximum" }, "overflow"],
  [422, { detail: "input length and max_tokens exceed context limit: 3" }, "overflow"],
  [400, { error: "out_of_context_due_to_long_message" }, "overflow"],
  [200, { error: { message: "Input does not fit in context length of 4096" } }, "overflow"],
  [429, { error: "maximum context length" }, "rate"],
  [401, { detail: "no" }, "auth"],
  [403, undefined, "auth"],
  [402, undefined, "credit"],
  [404, { error: { message: "model not found" } }, "not_found"],
  [405, undefined, "not_found"],
  [408, undefined, "timeout"],
  [504, undefined, "timeout"],
  [429, undefined, "rate"],
  [503, { error: { message: "Loading model", type: "unavailable_error", code: 503 } }, "starting"],
  [503, { detail: { msg: "Server is busy" } }, "overloaded"],
  [529, { error: { type: "overloaded_error", message: "Overloaded" } }, "overloaded"],
  [200, { error: { type: "overloaded_error", message: "Overloaded" } }, "overloaded"],
  [200, { error: { code: 429, message: "slow down" } }, "rate"],
  [200, { error: "Unexpected endpoint or method. (GET /x)" }, "not_found"],
  [500, { error: "boom" }, "failed"],
])("status %i with %j is of kind %s", (status, body, kind) => {
  expect(classifyError(status, parseErrorReport(body))).toBe(kind);
});

test.each([
  ["status_json", 500, "upstream_error"],
  ["status_text", 500, "upstream_error"],
  ["status_empty", 503, "upstream_error"],
  ["html", 502, "upstream_error"],
  ["html200", 200, "upstream_error"],
  ["json200", 200, "upstream_error"],
  ["no_answer", 0, "upstream_error"],
  ["status_json", 504, "upstream_timeout"],
])("%s (%i) fails the call as %s, before and without a stream", { tags: ["U05"] }, async (fail, status, code) => {
  await using llm = await openFakeLlm();
  const call = ask("hi", {}, `fake:fail=${fail},status=${status}`);
  for (const type of ["", ",type=text/plain"]) {
    const asked = { ...call, model: call.model + type };
    const opening = client.openChatStream(target(llm.url), asked, never());
    const error = await opening.then((stream) => gather(stream).then((answer) => answer.error), (thrown) => thrown);
    expect(error).toMatchObject({ code });
  }
  expect(await failureOf(client.completeChat(target(llm.url), call, never()))).toMatchObject({ code });
});

test("a web page in place of an answer is named so, also under a wrong content type", async () => {
  await using llm = await openFakeLlm();
  const page = ask("hi", {}, "fake:fail=html200");
  expect((await failureOf(client.openChatStream(target(llm.url), page, never()))).kind).toBe("web_page");
  const disguised = ask("hi", {}, "fake:fail=html200,type=text/plain");
  const answer = await gather(await client.openChatStream(target(llm.url), disguised, never()));
  expect(kindOf(answer.error)).toBe("web_page");
});

test("Retry-After travels with the error", async () => {
  await using llm = await openFakeLlm();
  const call = ask("hi", {}, "fake:fail=status_json,status=429,retry_after=17,message=slow down");
  const error = await failureOf(client.openChatStream(target(llm.url), call, never()));
  expect(error).toMatchObject({ kind: "rate", retryAfterSeconds: 17, code: "upstream_error" });
  expect(error.message).toContain("slow down");
});

test.each([
  [{ "retry-after": "3" }, 3],
  [{ "retry-after": "2.2" }, 3],
  [{ "retry-after-ms": "1500" }, 2],
  [{ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, 60],
  [{ "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }, 0],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "-5" }, undefined],
  [{}, undefined],
])("%j says to wait for %s seconds", (headers, seconds) => {
  expect(parseRetryAfter(new Headers(headers as Record<string, string>), 0)).toBe(seconds);
});

test.each(
  [
    ["llama.cpp", "exceeds the available context size"],
    ["generic", "maximum context length"],
    ["lm-studio", "does not fit in context"],
  ] as const,
)("an overlong prompt at %s is an overflow", async (personality, text) => {
  await using llm = await openFakeLlm({ personality });
  const opening = client.openChatStream(target(llm.url), ask("OVERFLOW"), never());
  const error = await opening.then((stream) => gather(stream).then((answer) => answer.error), (thrown) => thrown);
  expect(kindOf(error)).toBe("overflow");
  expect(String(error)).toContain(text);
});

test("an overlong prompt that LM Studio answers with silence is an empty answer", async () => {
  await using llm = await openFakeLlm({ personality: "lm-studio" });
  const answer = await gather(await client.openChatStream(target(llm.url), ask("OVERFLOW-SILENT"), never()));
  expect(kindOf(answer.error)).toBe("empty");
});

test("a server that loads its model says so", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  llm.isLoading = true;
  expect((await failureOf(client.openChatStream(target(llm.url), ask(), never()))).kind).toBe("starting");
  llm.isLoading = false;
  expect((await gather(await client.openChatStream(target(llm.url), ask(), never()))).text).toBe("Hello");
});

test("an unknown model at Ollama keeps Ollama's words", async () => {
  await using llm = await openFakeLlm({ personality: "ollama" });
  const error = await failureOf(client.openChatStream(target(llm.origin), ask("hi", {}, "nope"), never()));
  expect(error.kind).toBe("not_found");
  expect(error.message).toContain("try pulling it first");
});

test.each([
  "fail=status_json",
  "fail=status_text",
  "fail=json200",
])("a key that the server echoes is masked with %s", { tags: ["U03"] }, async (switches) => {
  await using llm = await openFakeLlm();
  const call = ask("hi", {}, `fake:${switches},message=bad key $KEY (${KEY}) ${encodeURIComponent(KEY)}`);
  const error = await failureOf(client.openChatStream(target(llm.url, { apiKey: KEY }), call, never()));
  expect(error.message).toContain("[key]");
  expect(JSON.stringify([error.message, error.stack, String(error.cause)])).not.toContain(KEY);
});

test.each(["frame_object", "frame_string", "event_error", "error_field", "choice_error"])(
  "a key inside %s in the stream is masked",
  { tags: ["U03"] },
  async (fail) => {
    await using llm = await openFakeLlm();
    const call = ask("hi", {}, `fake:fail=${fail},after=1,message=your key is ${KEY}`);
    const { error } = await gather(await client.openChatStream(target(llm.url, { apiKey: KEY }), call, never()));
    expect(String(error)).toContain("your key is [key]");
    expect(String((error as Error).stack)).not.toContain(KEY);
  },
);

test("no half of a key remains where a long text is cut off", { tags: ["U03"] }, async () => {
  await using llm = await openFakeLlm();
  const padding = "p".repeat(490);
  const call = ask("hi", {}, `fake:fail=status_text,message=${padding}$KEY`);
  const error = await failureOf(client.openChatStream(target(llm.url, { apiKey: KEY }), call, never()));
  expect(error.message).toContain("[key]");
  expect(error.message).not.toContain("sk-");
});

test("a key that no header can carry is refused without being quoted", async () => {
  for (const apiKey of ["line\nbreak-secret", "ключ-secret", "two words-secret"]) {
    const call = client.openChatStream(target("http://127.0.0.1:9/v1", { apiKey }), ask(), never());
    const error = await call.catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "invalid_request" });
    expect(String(error)).not.toContain("secret");
  }
});

test("short placeholder keys aren't masked", () => {
  expect(maskKey("x marks the text", "x")).toBe("x marks the text");
  expect(maskKey('a "quo\\"ted"', 'quo"ted')).toBe('a "[key]"');
});
