import { expect, test } from "vitest";
import { splitAtClosingTag, splitReasoning, stripReasoning } from "../../../services/llm/reasoning.ts";

test.each([
  ["I look.\n</think>\n\nIt is up.", { reasoning: "I look.", text: "It is up." }],
  ["I look.</think>It is up.", { reasoning: "I look.", text: "It is up." }],
  ["I look.</THOUGHT>", { reasoning: "I look.", text: "" }],
  ["</think>Yes", { reasoning: "", text: "Yes" }],
  ["No tag", undefined],
  ["<think>a</think>b", undefined],
  ["Close it with `</think>`, then go on", undefined],
  ["```html\n</think>\n```", undefined],
])("splits %j at a closing tag without an opening one", (text, split) => {
  expect(splitAtClosingTag(text)).toEqual(split);
});

test.each([
  [" <think>\na\n</think>\n\nb", { reasoning: "a", text: "b" }],
  ["<think>a", { reasoning: "a", text: "" }],
  ["a</think>b", { reasoning: "a", text: "b" }],
  ["b <think>a</think>", undefined],
])("splits the answer %j", (text, split) => {
  expect(splitReasoning(text)).toEqual(split);
});

test.each([
  ["<think>a</think>b<think>c</think>d", "bd"],
  ["a</think>b", "b"],
  ["b<think>a", "b"],
  ["[THINK]a[/THINK]b", "b"],
  ["plain", "plain"],
])("strips reasoning from %j wherever it is", (text, rest) => {
  expect(stripReasoning(text)).toBe(rest);
});
