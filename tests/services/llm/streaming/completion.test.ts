import { expect, test } from "vitest";
import { ToolCalls } from "../../../../services/llm/streaming/completion.ts";

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
