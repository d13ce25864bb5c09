import { expect, test } from "vitest";
import { ToolCallReader, ToolCalls } from "../../../../services/llm/streaming/tool_calls.ts";

const call = (index: number, name: string, args: string, id?: string) => ({
  index,
  ...(id !== undefined && { id }),
  type: "function",
  function: { name, arguments: args },
});

function gathered(...deltas: unknown[][]) {
  const calls = new ToolCalls();
  for (const delta of deltas) calls.add(delta);
  return calls.all();
}

test("fragments are joined by their index, and calls are sorted by it", () => {
  expect(gathered(
    [{ index: 1, id: "t2", function: { name: "go", arguments: "{" } }],
    [{ index: 0, id: "t1", function: { name: "look" } }, { index: 1, function: { name: "", arguments: "}" } }],
    [{ index: 0, id: "", function: { arguments: "{}" } }],
  )).toEqual([call(0, "look", "{}", "t1"), call(1, "go", "{}", "t2")]);
});

test("a fragment without an index is a new call after the others", () => {
  expect(gathered([{ index: 4, function: { name: "a" } }], [{ function: { name: "b" } }])).toEqual([
    call(4, "a", ""),
    call(5, "b", ""),
  ]);
});

test("ignores deltas that aren't part of a call", () => {
  expect(gathered([null, 7, "x", [], { index: -1 }, { index: 1e9 }, { index: "0" }, { index: 0.5 }])).toEqual([]);
  expect(gathered([{ index: 0, id: 7, function: { name: {}, arguments: [1] } }, { index: 0, function: "f" }])).toEqual([
    call(0, "", ""),
  ]);
});

test("returned calls don't change with later fragments", () => {
  const calls = new ToolCalls();
  calls.add([{ index: 0, function: { name: "a", arguments: "{" } }]);
  const before = calls.all();
  calls.add([{ index: 0, function: { arguments: "}" } }]);
  expect(before).toEqual([call(0, "a", "{")]);
});

/** The calls of a reply whose fragments arrive one per event. */
function read(...fragments: unknown[]) {
  const reader = new ToolCallReader();
  const calls = new ToolCalls();
  for (const fragment of fragments) calls.add(reader.read([fragment]));
  return calls.all().map(({ id, function: named }) => [id, named.name, named.arguments]);
}

/** A fragment of OpenAI's `delta.tool_calls`. */
function part(index: unknown, id: string | undefined, name: string | undefined, text: unknown) {
  return { index, id, function: { name, arguments: text } };
}

test.each<[string, unknown[], unknown[]]>([
  ["every call has the index 0", [part(0, "a", "f", '{"x":1}'), part(0, "b", "g", '{"y":2}')], [
    ["a", "f", '{"x":1}'],
    ["b", "g", '{"y":2}'],
  ]],
  ["every call has the index 0 and no ID", [
    part(0, undefined, "f", '{"x":1}'),
    part(0, undefined, "f", '{"x":2}'),
    part(0, undefined, "g", ""),
    part(0, undefined, "h", ""),
  ], [[undefined, "f", '{"x":1}'], [undefined, "f", '{"x":2}'], [undefined, "g", ""], [undefined, "h", ""]]],
  ["calls without arguments share the index 0", [part(0, "a", "f", ""), part(0, "b", "f", "")], [
    ["a", "f", ""],
    ["b", "f", ""],
  ]],
  ["fragments share the index 0 and differ by ID", [
    part(0, "a", "f", '{"x"'),
    part(0, "b", "g", '{"y"'),
    part(0, "a", undefined, ":1}"),
    part(0, "b", undefined, ":2}"),
  ], [["a", "f", '{"x":1}'], ["b", "g", '{"y":2}']]],
  ["fragments have no index", [
    part(undefined, "a", "f", '{"x"'),
    part(undefined, undefined, undefined, ":1}"),
    part(null, "b", "g", "{}"),
  ], [["a", "f", '{"x":1}'], ["b", "g", "{}"]]],
  ["the index grows with each fragment", [
    part(0, "a", "f", ""),
    part(1, undefined, undefined, '{"x"'),
    part(2, undefined, undefined, ":1}"),
  ], [["a", "f", '{"x":1}']]],
  ["the index grows and the ID is repeated", [part(0, "a", "f", '{"x"'), part(1, "a", "f", ":1}")], [
    ["a", "f", '{"x":1}'],
  ]],
  ["the index grows and the name is repeated", [
    part(0, undefined, "f", '{"x"'),
    part(1, undefined, "f", ":1}"),
  ], [[undefined, "f", '{"x":1}']]],
  ["each fragment has a new ID", [
    part(0, "a", "f", '{"x"'),
    part(0, "b", undefined, ":1}"),
    part(0, "c", undefined, ""),
  ], [["a", "f", '{"x":1}']]],
  ["fragments of two calls alternate", [
    part(0, "a", "f", ""),
    part(1, "b", "g", ""),
    part(1, undefined, undefined, "{}"),
    part(0, undefined, undefined, '{"x":1}'),
  ], [["a", "f", '{"x":1}'], ["b", "g", "{}"]]],
  ["arguments are an object", [part(0, "a", "f", { x: [1, { y: null }] })], [["a", "f", '{"x":[1,{"y":null}]}']]],
  ["the index is text", [part("0", "a", "f", "{"), part("1", "b", "g", "{}"), part("0", undefined, undefined, "}")], [
    ["a", "f", "{}"],
    ["b", "g", "{}"],
  ]],
  ["two calls have the same ID", [part(0, "x", "f", "{}"), part(1, "x", "g", "{}")], [["x", "f", "{}"], [
    "x",
    "g",
    "{}",
  ]]],
  ["the whole call is repeated at its end", [part(0, "a", "f", '{"x":1}'), part(0, "a", "f", '{"x":1}')], [
    ["a", "f", '{"x":1}'],
  ]],
  ["the name follows the arguments", [
    part(0, undefined, undefined, '{"x"'),
    part(0, "a", "f", ":1}"),
  ], [["a", "f", '{"x":1}']]],
  ["name and arguments aren't nested", [{ id: "a", name: "f", arguments: { x: 1 } }], [["a", "f", '{"x":1}']]],
])("reads whole calls if %s", (_, fragments, calls) => {
  expect(read(...fragments)).toEqual(calls);
});

test("limits the number of calls", () => {
  expect(read(...Array.from({ length: 1_200 }, (_, n) => part(0, `id${n}`, "f", "{}")))).toHaveLength(1_000);
});
