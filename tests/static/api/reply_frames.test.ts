import { expect, test } from "vitest";
import { parseReplyFrame, parseReplyPosition, placeDelta } from "../../../static/src/api/reply_frames.ts";

const chunk = (delta: Record<string, unknown>) => JSON.stringify({ choices: [{ delta, finish_reason: null }] });

test("parses the position in an event id, and ignores any other id", () => {
  expect(parseReplyPosition("g_1-x.12.345.6")).toEqual({
    generation: "g_1-x",
    sequence: 12,
    textLength: 345,
    reasoningLength: 6,
  });
  for (const id of [undefined, "", "12", "g.1.2", "g.1.2.x", "g.1.2.3.4", "g.-1.2.3"]) {
    expect(parseReplyPosition(id)).toBeUndefined();
  }
});

test.each([
  ["follows", "Hel", "lo", 5, "Hello"],
  ["repeats what is known", "Hello", "lo", 5, "Hello"],
  ["repeats an older part", "Hello there", "Hel", 3, "Hello there"],
  ["overlaps the end", "Hell", "lo", 5, "Hello"],
  ["has no place", "Hel", "lo", undefined, "Hello"],
  ["is empty at the end", "Hello", "", 5, "Hello"],
])("restores the exact text after a delta that %s", (_, known, delta, end, whole) => {
  expect(placeDelta(known, delta, end)).toBe(whole);
});

test.each([
  ["text before it is missing", "Hel", "world", 11],
  ["text is missing that an empty delta ends with", "Hel", "", 5],
  ["its place is before the start", "", "lo", 1],
])("refuses a delta if %s", (_, known, delta, end) => {
  expect(placeDelta(known, delta, end)).toBeUndefined();
});

test("separates text and reasoning of a chunk, and treats null as empty", () => {
  const event = { id: "g.1.2.0", event: undefined, data: chunk({ content: "Hi", reasoning_content: null }) };
  expect(parseReplyFrame(event)).toMatchObject({ kind: "delta", id: "g.1.2.0", text: "Hi", reasoning: "" });
  expect(parseReplyFrame({ ...event, data: chunk({ reasoning_content: "Hm" }) })).toMatchObject({
    text: "",
    reasoning: "Hm",
  });
});

test("parses the end and failures, and ignores invalid JSON", () => {
  const plain = { id: undefined, event: undefined };
  expect(parseReplyFrame({ ...plain, data: "[DONE]" })).toEqual({ kind: "done" });
  const body = { error: { code: "upstream_error", message: "gone", request_id: "r1" } };
  const frame = parseReplyFrame({ ...plain, event: "error", data: JSON.stringify(body) });
  expect(frame).toMatchObject({ kind: "error", error: { code: "upstream_error", message: "gone", requestId: "r1" } });
  expect(parseReplyFrame({ ...plain, data: "<html>" })).toBeUndefined();
});

test.each(["null", "5", '"text"', "true"])("ignores an event that isn't an object: %s", (data) => {
  expect(parseReplyFrame({ id: undefined, event: undefined, data })).toBeUndefined();
});

test.each([5, {}, ["a"], true])("treats text that isn't a string as empty: %j", (content) => {
  const event = { id: undefined, event: undefined, data: chunk({ content, reasoning_content: content }) };
  expect(parseReplyFrame(event)).toMatchObject({ kind: "delta", text: "", reasoning: "" });
});

test("reads calls of tools", () => {
  const call = { id: "x", name: "look", arguments: "{}", state: "pending" };
  const frame = (data: unknown) => parseReplyFrame({ event: "tool_call", id: undefined, data: JSON.stringify(data) });
  expect(frame(call)).toEqual({ kind: "call", call });
  expect(frame({ ...call, id: 1 })).toBeUndefined();
  expect(frame({ id: "x" })).toBeUndefined();
});
