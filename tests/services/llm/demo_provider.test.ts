import { expect, test } from "vitest";
import { createUpstreamClient } from "../../../services/llm/upstream_client.ts";
import { ask, finishOf, gather, never, target } from "./model_calls.ts";

const client = createUpstreamClient({ demoDelayMs: 0, log: () => {} });
const demo = target("", { kind: "demo" });

test("the demo answers word by word, explains what it is and how to connect a model, and echoes", async () => {
  const answer = await gather(await client.openChatStream(demo, ask("Hello there,\n  fox!"), never()));
  expect(answer.error).toBeUndefined();
  expect(answer.text).toContain("“Hello there, fox!”");
  expect(answer.text).toContain("not a language model");
  expect(answer.text).toContain("Find servers");
  expect(answer.batches).toBeGreaterThan(35);
  expect(answer.batches).toBeLessThan(90);
  expect(finishOf(answer)).toBe("stop");
});

test("the demo answers the same call with the same text, streamed or not, and shortens a long echo", async () => {
  const call = ask("🦊".repeat(500));
  const streamed = await gather(await client.openChatStream(demo, call, never()));
  const whole = await client.completeChat(demo, call, never());
  expect(whole.choices[0]!.message.content).toBe(streamed.text);
  expect(streamed.text.length).toBeLessThan(700);
  expect(streamed.text.isWellFormed()).toBe(true);
});

test("the demo reads content parts and survives a call without a user message", async () => {
  const parts = { ...ask(), messages: [{ role: "user", content: [{ type: "text", text: "in parts" }] }] };
  expect((await gather(await client.openChatStream(demo, parts, never()))).text).toContain("“in parts”");
  const none = await gather(await client.openChatStream(demo, { ...ask(), messages: [] }, never()));
  expect(none.error).toBeUndefined();
});

test("the demo respects max_tokens", async () => {
  const answer = await gather(await client.openChatStream(demo, ask("hi", { max_tokens: 3 }), never()));
  expect(answer.text.trim().split(/\s+/)).toHaveLength(3);
  expect(finishOf(answer)).toBe("length");
});

test("the demo stops when its caller disconnects, and when it is canceled", async () => {
  const slow = createUpstreamClient({ demoDelayMs: 60_000, log: () => {} });
  const controller = new AbortController();
  const reason = new Error("left");
  const left = gather(await slow.openChatStream(demo, ask(), controller.signal));
  controller.abort(reason);
  expect((await left).error).toBe(reason);
  const stream = await slow.openChatStream(demo, ask(), never());
  const cancelled = gather(stream);
  stream.cancel();
  expect(await cancelled).toMatchObject({ error: undefined, text: "" });
  await expect(slow.openChatStream(demo, ask(), AbortSignal.abort(reason))).rejects.toBe(reason);
});

test("the demo lists one model", async () => {
  expect((await client.listModels(demo, never())).data.map((entry) => entry.id)).toEqual(["demo"]);
});
