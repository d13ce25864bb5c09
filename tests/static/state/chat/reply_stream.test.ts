/** How a stream begins and shows calls of tools; tests/static/views/chat has the rest in a browser. */
import { expect, test } from "vitest";
import type { ToolCall } from "../../../../static/src/api/tools.ts";
import { ReplyStream } from "../../../../static/src/state/chat/reply_stream.ts";

function openStream(present: { text?: string; reasoning?: string } = {}): ReplyStream {
  const attach = () => Promise.reject(new Error("not followed"));
  return new ReplyStream({ messageId: "a1", startedAtMs: 0, text: "", reasoning: "", ...present, attach });
}

const call = (changes: Partial<ToolCall>): ToolCall => ({ id: "c1", name: "search", arguments: "{}", ...changes });

test("keeps the result of a call when the response to its approval arrives later", () => {
  const stream = openStream();
  stream.showCall(call({ state: "pending" }));
  stream.showCall(call({ state: "done", result: "found" }));
  stream.showCall(call({ state: "running" }));
  expect(stream.calls.value.map(({ call }) => call)).toEqual([call({ state: "done", result: "found" })]);
});

test("shows a call that waits again with another description", () => {
  const stream = openStream();
  stream.showCall(call({ state: "pending", hints: { readOnly: true } }));
  stream.showCall(call({ state: "pending", hints: { destructive: true } }));
  expect(stream.calls.value.map(({ call }) => call.hints)).toEqual([{ destructive: true }]);
});

test("a running reply that has text already is never shown as waiting, also before its stream is there", () => {
  expect(openStream({ text: "Once" }).phase.value).toBe("writing");
  expect(openStream({ reasoning: "They want a story." }).phase.value).toBe("writing");
  expect(openStream().phase.value).toBe("waiting");
});
