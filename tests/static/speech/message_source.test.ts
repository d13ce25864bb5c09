import { expect, test } from "vitest";
import { SpeechSegments } from "../../../static/src/speech/message_source.ts";

const WORDS = { formula: "formula", diagram: "diagram" };

const spoken = (text: string, isSplit = false) =>
  new SpeechSegments(WORDS, { isSplit }).next(text, true).map(({ text, isQuoted }) => isQuoted ? `“${text}”` : text);

test("returns each sentence once, as soon as it is complete", () => {
  const pieces = new SpeechSegments(WORDS);
  const next = (text: string, isFinal = false) => pieces.next(text, isFinal).map(({ text }) => text);
  expect(next("The ferry")).toEqual([]);
  expect(next("The ferry comes.")).toEqual([]);
  expect(next("The ferry comes. It is")).toEqual(["The ferry comes."]);
  expect(next("The ferry comes. It is late! The end")).toEqual(["It is late!"]);
  expect(next("The ferry comes. It is late! The end", true)).toEqual(["The end"]);
  expect(next("The ferry comes. It is late! The end", true)).toEqual([]);
});

test("doesn't repeat text that was there before", () => {
  const pieces = new SpeechSegments(WORDS, { known: "One. Two" });
  expect(pieces.next("One. Two and a half. Three", true).map(({ text }) => text)).toEqual(["Two and a half.", "Three"]);
  const continued = new SpeechSegments(WORDS, { known: "One is whole." });
  expect(continued.next("One is whole. Two", true).map(({ text }) => text)).toEqual(["Two"]);
});

test.each([
  ["Dr. Fox met Mr. Hare on 3. May. They spoke.", ["Dr. Fox met Mr. Hare on 3. May.", "They spoke."]],
  ["こんにちは。元気？はい。", ["こんにちは。", "元気？", "はい。"]],
  ["# Title\n\n- **one**\n- `two`", ["Title", "one", "two"]],
  ["Look:\n```js\nlet a = 1. b;\n\n// More. Code.\n```\nDone.", ["Look:", "Done."]],
  ["See [the map](https://example.com/a.b?c) or https://www.example.org/deep/path?q=1 now.", [
    "See the map or example.org now.",
  ]],
  ["| a | b |\n|---|---|\n| 1 | 2 |\n", ["a, b", "1, 2"]],
  ["* * *\n\n…\n", []],
  ["", []],
])("speaks %j as %j", (text, expected) => expect(spoken(text)).toEqual(expected));

test.each([
  ['She smiles. "Come in. Sit down." The door closes.', [
    "She smiles.",
    "“Come in.”",
    "“Sit down.”",
    "The door closes.",
  ]],
  ["„Guten Abend“, sagt er.", ["“Guten Abend”", ", sagt er."]],
  ["「こんばんは。」と彼は言う。", ["“こんばんは。”", "と彼は言う。"]],
  ["It's the dog's.", ["It's the dog's."]],
  ['"Nobody closed this.\n\nA new paragraph.', ["“Nobody closed this.”", "A new paragraph."]],
])("splits %j by quotation marks into %j", (text, expected) => expect(spoken(text, true)).toEqual(expected));

test("splits a sentence without an end into parts that servers accept", () => {
  const parts = spoken("word, ".repeat(500));
  expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(400);
  expect(parts.join(" ").match(/word/g)).toHaveLength(500);
  expect(spoken("あ".repeat(1000)).join("")).toBe("あ".repeat(1000));
});

test("speaks 100,000 abbreviations in one sentence in linear time", { tags: ["F02"] }, () => {
  expect(spoken("Dr. ".repeat(100_000)).join(" ")).toMatch(/^Dr\. Dr\./);
});
