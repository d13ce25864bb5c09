import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { AppError } from "../../../services/errors.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../services/llm/upstream_client.ts";
import { openFakeLlm, seededWords } from "../../helpers/fakes/llm/fake_llm.ts";
import { happened, standingClock } from "../../helpers/fakes/standing_clock.ts";
import { ask, failureOf, gather, kindOf, never, target, TIMEOUTS } from "./model_calls.ts";
import { maskKey } from "../../../services/http/base_url.ts";
import { parseRetryAfter } from "../../../services/http/read_body.ts";
import { classifyError, parseErrorReport } from "../../../services/llm/model_call.ts";

const ROUNDS = 1_000;
const EVENTS = 1_000_000;

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

test("a port without a listener is an upstream error immediately", async () => {
  const llm = await openFakeLlm();
  await llm.close();
  const error = await failureOf(client.openChatStream(target(llm.url), ask(), never()));
  expect(error).toMatchObject({ code: "upstream_error", kind: "refused" });
  expect(error.message).toBe(`Can't reach the model at "${llm.url}": connection refused. Is the server running?`);
});

test("an unknown host name and a server that is off give different errors", async () => {
  // The system's resolver is asked; without a DNS server it tries for longer than the connect limit.
  Deno.env.set("RES_OPTIONS", "timeout:1 attempts:1");
  const error = await failureOf(client.listModels(target("http://no-such-host.invalid/v1"), never()));
  expect(error.kind).toBe("unresolved");
});

test("missing headers within the first-byte limit are a timeout that names the limit", async () => {
  await using llm = await openFakeLlm({ switches: { delay_headers: 60_000 } });
  using clock = standingClock();
  const timeouts = { ...TIMEOUTS, firstByteMs: 60 };
  const failing = failureOf(client.openChatStream(target(llm.url, { timeouts }), ask(), never()));
  await happened(() => llm.chats.length === 1);
  clock.advance(60);
  const error = await failing;
  expect(error).toMatchObject({ code: "upstream_timeout", kind: "timeout" });
  expect(error.message).toContain("after 60 ms");
  await llm.chats[0]!.over;
  expect(llm.abandoned).toHaveLength(1);
});

test("headers don't end the wait for the first byte", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  using clock = standingClock();
  const timeouts = { ...TIMEOUTS, firstByteMs: 150 };
  const opening = client.openChatStream(target(llm.url, { timeouts }), ask(), never());
  await llm.nextCall();
  const answer = gather(await opening);
  clock.advance(150);
  expect(kindOf((await answer).error)).toBe("timeout");
});

test(
  "a stall ends at the idle limit with the text so far, and the connection is closed",
  { tags: ["U05"] },
  async () => {
    await using llm = await openFakeLlm();
    using clock = standingClock();
    const timeouts = { ...TIMEOUTS, idleMs: 80 };
    const call = ask("hi", {}, "fake:words=6,seed=3,after=3,fail=stall");
    const sent = seededWords(6, 3).slice(0, 3).join("");
    let seen = "";
    const stream = await client.openChatStream(target(llm.url, { timeouts }), call, never());
    const answering = gather(stream, (text) => seen = text);
    await happened(() => seen === sent);
    // Checked every fiftieth of the limit.
    clock.advance(80 + 2 * 80 / 50);
    const answer = await answering;
    expect(answer.text).toBe(sent);
    expect(kindOf(answer.error)).toBe("timeout");
    expect(String(answer.error)).toContain("no data for 80 ms");
    await llm.chats[0]!.over;
    expect(llm.abandoned).toHaveLength(1);
  },
);

test("an abort before the headers ends the call with the caller's reason", async () => {
  await using llm = await openFakeLlm({ switches: { delay_headers: 60_000 } });
  const controller = new AbortController();
  const reason = new Error("the client left");
  const call = client.openChatStream(target(llm.url), ask(), controller.signal).catch((error) => error);
  while (llm.chats.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort(reason);
  expect(await call).toBe(reason);
  await llm.chats[0]!.over;
  expect(llm.abandoned).toHaveLength(1);
});

test("an abort during the stream ends it upstream with the caller's reason", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const controller = new AbortController();
  const reason = new Error("stopped");
  const opening = client.openChatStream(target(llm.url), ask(), controller.signal);
  const call = await llm.nextCall();
  await call.emit("partial");
  const answer = gather(await opening, () => controller.abort(reason));
  expect(await answer).toMatchObject({ text: "partial", error: reason });
  await call.over;
  expect(call.request.closedEarly).toBe(true);
});

test("cancel ends the stream upstream, and reading ends without an error", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  await call.emit("partial");
  const stream = await opening;
  expect(await gather(stream, () => stream.cancel())).toMatchObject({ text: "partial", error: undefined });
  await call.over;
  expect(call.request.closedEarly).toBe(true);
});

test("a reader that stops releases the server", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  await call.emit("enough");
  for await (const _ of (await opening).batches()) break;
  await call.over;
  expect(call.request.closedEarly).toBe(true);
});

test("no request is made with a signal that has already fired", async () => {
  await using llm = await openFakeLlm();
  const reason = new Error("gone already");
  await expect(client.openChatStream(target(llm.url), ask(), AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(llm.requests).toHaveLength(0);
});

test(`${ROUNDS} rounds leave no listener on the caller's signal, and reuse connections`, {
  tags: ["U06"],
}, async () => {
  await using llm = await openFakeLlm({ pieces: ["x"] });
  const controller = new AbortController();
  const added = vi.spyOn(controller.signal, "addEventListener");
  const removed = vi.spyOn(controller.signal, "removeEventListener");
  for (let round = 0; round < ROUNDS; round++) {
    const answer = await gather(await client.openChatStream(target(llm.url), ask(), controller.signal));
    if (answer.error !== undefined) throw answer.error;
  }
  expect(added.mock.calls.length - removed.mock.calls.length).toBe(0);
  expect(llm.abandoned).toHaveLength(0);
  expect(llm.connectionCount).toBeLessThan(50);
  controller.abort(); // must not reach anything that still runs
  expect(llm.chats).toHaveLength(ROUNDS);
});

test("128 streams run side by side", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = Array.from({ length: 128 }, () => client.openChatStream(target(llm.url), ask(), never()));
  const calls = await Promise.all(opening.map(() => llm.nextCall()));
  const answers = (await Promise.all(opening)).map((stream) => gather(stream));
  await Promise.all(calls.map(async (call, n) => {
    await call.emit(`answer ${n}`);
    await call.finish();
  }));
  const texts = (await Promise.all(answers)).map((answer) => answer.text).sort();
  expect(texts).toEqual(Array.from({ length: 128 }, (_, n) => `answer ${n}`).sort());
});

test(`${EVENTS} tiny events arrive whole, many to a batch`, { tags: ["U04"] }, async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  const answer = gather(await opening);
  const block = 'data: {"choices":[{"delta":{"content":"z"}}]}\n\n'.repeat(1000);
  for (let sent = 0; sent < EVENTS; sent += 1000) await call.raw(block);
  await call.finish();
  const { text, batches, error } = await answer;
  expect(error).toBeUndefined();
  expect(text.length).toBe(EVENTS);
  expect(batches).toBeLessThan(EVENTS / 5);
});

test("an endless line ends with one specific error", { tags: ["U04"] }, async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  const answer = gather(await opening);
  await call.emit("before");
  await call.raw("data: ");
  const block = "z".repeat(1024 * 1024);
  for (let n = 0; n < 50 && !call.request.closedEarly; n++) await call.raw(block);
  const { text, error } = await answer;
  expect(text).toBe("before");
  expect(error).toBeInstanceOf(AppError);
  expect(String(error)).toContain("without the end of an event");
});

test("a slow first byte isn't limited by the connect timeout", async () => {
  await using llm = await openFakeLlm({ switches: { delay_headers: 1300 } });
  const timeouts = { ...TIMEOUTS, connectMs: 1000 };
  using clock = standingClock();
  const answering = client.openChatStream(target(llm.url, { timeouts }), ask(), never()).then((stream) =>
    gather(stream)
  );
  expect(await clock.until(answering, 10)).toMatchObject({ text: "Hello", error: undefined });
});

test("a machine that accepts no connections is unreachable after the connect limit, not after the first-byte limit", async () => {
  const { port, close } = await openFullListener();
  try {
    const timeouts = { ...TIMEOUTS, connectMs: 400 };
    const url = `http://127.0.0.1:${port}/v1`;
    const error = await failureOf(client.openChatStream(target(url, { timeouts }), ask(), never()));
    expect(error).toMatchObject({ code: "upstream_timeout", kind: "unreachable" });
    expect(error.message).toBe(`Can't reach the model at "${url}": no response after 400 ms. Is the server running?`);
  } finally {
    close();
  }
});

/** A listener that accepts nothing and whose queue is full: further handshakes are dropped, as by a machine that is off. */
async function openFullListener(): Promise<{ port: number; close(): void }> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const held: Deno.Conn[] = [];
  const close = () => {
    for (const conn of held) conn.close();
    listener.close();
  };
  for (;;) {
    const before = held.length;
    const connecting = Deno.connect({ hostname: "127.0.0.1", port }).then((conn) => void held.push(conn), () => {});
    await Promise.race([connecting, new Promise((resolve) => setTimeout(resolve, 300))]);
    // A process that was blocked itself hasn't read what arrived in that time.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve));
    if (held.length === before) return { port, close };
    if (held.length > 5000) throw new Error("The queue of the listener cannot be filled here");
  }
}

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
])("finds the message of %j", (body, message) => {
  expect(parseErrorReport(body)?.message).toBe(message);
});

test.each([[null], [{}], [[]], [""], [{ choices: [] }]])("%j isn't an error", (body) => {
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
])("status %i with %j is an error of kind %s", (status, body, kind) => {
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

test("a web page in place of a response is reported as one, even with a wrong content type", async () => {
  await using llm = await openFakeLlm();
  const page = ask("hi", {}, "fake:fail=html200");
  expect((await failureOf(client.openChatStream(target(llm.url), page, never()))).kind).toBe("web_page");
  const disguised = ask("hi", {}, "fake:fail=html200,type=text/plain");
  const answer = await gather(await client.openChatStream(target(llm.url), disguised, never()));
  expect(kindOf(answer.error)).toBe("web_page");
});

test("Retry-After is part of the error", async () => {
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

test("an unknown model at Ollama keeps Ollama's message", async () => {
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

test("a long text isn't cut within a key", { tags: ["U03"] }, async () => {
  await using llm = await openFakeLlm();
  const padding = "p".repeat(490);
  const call = ask("hi", {}, `fake:fail=status_text,message=${padding}$KEY`);
  const error = await failureOf(client.openChatStream(target(llm.url, { apiKey: KEY }), call, never()));
  expect(error.message).toContain("[key]");
  expect(error.message).not.toContain("sk-");
});

test("a key that no header can contain is refused without quoting it", async () => {
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
