import { afterAll, beforeAll, expect, test } from "vitest";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { FAKE_TIMINGS, FAKE_USAGE, openFakeLlm, seededWords } from "../../../helpers/fakes/llm/fake_llm.ts";
import type { PersonalityName } from "../../../helpers/fakes/llm/fake_llm_servers.ts";
import { ask, finishOf, gather, kindOf, never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

test("an answer arrives as text, finish reason and usage", async () => {
  await using llm = await openFakeLlm({ pieces: ["Hel", "lo ", "wörld"] });
  const answer = await gather(await client.openChatStream(target(llm.url), ask(), never()));
  expect(answer).toMatchObject({ text: "Hello wörld", error: undefined });
  expect(answer.events.slice(-2)).toEqual([{ type: "finish", reason: "stop" }, { type: "usage", usage: FAKE_USAGE }]);
});

const WORDS = seededWords(60, 7).join("");
test.each([
  ...[1, 3, 7, 0, -1].flatMap((chunk) =>
    ["lf", "crlf", "cr"].flatMap((eol) =>
      ["on", "off"].map((comments) => `chunk=${chunk},eol=${eol},comments=${comments}`)
    )
  ),
  "chunk=3,space=off",
  "chunk=1,end=bare",
  "end=bare",
  "end=none",
  "chunk=1,end=none,eol=cr",
  "role=every",
  "role=never",
  "content=null",
  "content=first",
  "usage=finish",
  "usage=own",
  "usage=own_nonempty",
  "finish=last",
  "finish=on_usage,usage=own",
  "framing=close",
  "type=none",
  "type=text/plain",
  "ignore_stream=on",
  "no_stream_options=on",
  "usage=own,usage_object=chat.completion",
])("the text is exact and the end complete with %s", { tags: ["U04"] }, async (switches) => {
  await using llm = await openFakeLlm();
  const call = ask("hi", {}, `fake:words=60,seed=7,${switches}`);
  const answer = await gather(await client.openChatStream(target(llm.url), call, never()));
  expect(answer.error).toBeUndefined();
  expect(answer.text).toBe(WORDS);
  expect(finishOf(answer)).toBe("stop");
});

test.each(
  [
    "llama.cpp",
    "ollama",
    "lm-studio",
    "vllm",
    "mlx_lm",
    "koboldcpp",
    "text-generation-webui",
    "tabbyapi",
    "localai",
    "llamafile",
    "openrouter",
  ] satisfies PersonalityName[],
)("the stream of %s is read with its reasoning once and its text whole", async (personality) => {
  await using llm = await openFakeLlm({ personality, reasoning: ["let me ", "think"], pieces: ["An ", "answer"] });
  const answer = await gather(await client.openChatStream(target(llm.origin), ask(), never()));
  expect(answer).toMatchObject({ text: "An answer", reasoning: "let me think", error: undefined });
  expect(finishOf(answer)).toBe("stop");
});

test.each([
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "reasoning+reasoning_details",
  "reasoning_content+reasoning",
])(
  "reasoning in %s arrives once",
  async (fields) => {
    await using llm = await openFakeLlm({ reasoning: ["a", "b"], switches: { reasoning: fields } });
    expect((await gather(await client.openChatStream(target(llm.url), ask(), never()))).reasoning).toBe("ab");
  },
);

test("timings without usage provide the token counts", async () => {
  await using llm = await openFakeLlm({ switches: { timings: "on", usage: "none" } });
  const answer = await gather(await client.openChatStream(target(llm.url), ask(), never()));
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
  expect(answer.events.at(-1)).toEqual({ type: "usage", usage, timings: FAKE_TIMINGS });
});

test("the invented counts of an old KoboldCpp are omitted", async () => {
  await using llm = await openFakeLlm({ switches: { usage: "fake" } });
  const answer = await gather(await client.openChatStream(target(llm.url), ask(), never()));
  expect(answer.events.filter((event) => event.type === "usage")).toEqual([]);
});

test("fragments of tool calls pass through, and an empty later name doesn't replace the first", async () => {
  const tools = [
    [{ index: 0, id: "t1", type: "function", function: { name: "look", arguments: "" } }],
    [{ index: 0, function: { name: "", arguments: '{"a":1}' } }],
  ];
  await using llm = await openFakeLlm({ pieces: [], tools, switches: { reason: "tool_calls", content: "null" } });
  const answer = await gather(await client.openChatStream(target(llm.url), ask(), never()));
  expect(answer.error).toBeUndefined();
  expect(answer.events.filter((event) => event.type === "tool_calls")).toEqual([
    { type: "tool_calls", delta: tools[0] },
    { type: "tool_calls", delta: [{ index: 0, function: { arguments: '{"a":1}' } }] },
  ]);
});

test.each([
  ["frame_object", "failed"],
  ["frame_string", "failed"],
  ["event_error", "failed"],
  ["error_field", "failed"],
  ["choice_error", "failed"],
  ["cut", "interrupted"],
  ["rst", "interrupted"],
  ["silent_end", "interrupted"],
])(
  "after %s in the middle, the text so far is returned and the failure is %s",
  { tags: ["U05"] },
  async (fail, kind) => {
    for (const chunk of [0, 1]) {
      for (const end of ["done", "none"]) {
        await using llm = await openFakeLlm();
        const call = ask(
          "hi",
          {},
          `fake:words=9,seed=2,after=4,fail=${fail},chunk=${chunk},end=${end},message=out of luck`,
        );
        const answer = await gather(await client.openChatStream(target(llm.url), call, never()));
        const sent = seededWords(9, 2).slice(0, 4).join("");
        // A reset discards what the receiver hasn't read, so the length of the text varies.
        if (fail === "rst") expect(sent.startsWith(answer.text)).toBe(true);
        else expect(answer.text).toBe(sent);
        expect(kindOf(answer.error)).toBe(kind);
        expect(String(answer.error)).toContain(kind === "failed" ? "out of luck" : "ended its reply without finishing");
      }
    }
  },
);

test("a server's own id and event fields don't reach the events", { tags: ["U05"] }, async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  await call.raw('id: 7\r\nevent: a\ndata: {"choices":[{"delta":{"content":"x\\nid: 8\\nevent: b"}}]}\n\n');
  await call.finish();
  const answer = await gather(await opening);
  expect(answer.events[0]).toEqual({ type: "text", text: "x\nid: 8\nevent: b" });
});

test("a server that keeps the connection open after the end doesn't delay the reply", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  await call.emit("done");
  await call.raw(
    'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\ndata: {"error":"late"}\n\n',
  );
  const answer = await gather(await opening);
  expect(answer).toMatchObject({ text: "done", error: undefined });
  await call.over;
});

test("a finish reason without an end mark completes the answer when the connection breaks", async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const opening = client.openChatStream(target(llm.url), ask(), never());
  const call = await llm.nextCall();
  await call.emit("whole");
  await call.raw('data: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\n');
  await call.fail("cut");
  const answer = await gather(await opening);
  expect(answer).toMatchObject({ text: "whole", error: undefined });
  expect(finishOf(answer)).toBe("length");
});

test("an end without any content is an empty answer, not a message", async () => {
  await using llm = await openFakeLlm({ pieces: [] });
  expect(kindOf((await gather(await client.openChatStream(target(llm.url), ask(), never()))).error)).toBe("empty");
});

test("markers, NUL, lone surrogates and a long line pass through unchanged", { tags: ["U08"] }, async () => {
  const odd = [
    "<|im_end|>",
    "</tool_call>\u0000",
    "\ud83d",
    "\ude00 \udc00",
    "data: [DONE]\n\n",
    "z".repeat(5 * 1024 * 1024),
  ];
  await using llm = await openFakeLlm({ pieces: odd });
  const answer = await gather(await client.openChatStream(target(llm.url), ask(), never()));
  expect(answer.error).toBeUndefined();
  expect(answer.text === odd.join("")).toBe(true);
});
