import { expect, test } from "vitest";
import { SpeechSegments } from "../../../static/src/speech/speech_segments.ts";

const spoken = (text: string, isSplit = false) =>
  new SpeechSegments({ isSplit }).next(text, true).map(({ text, isQuoted }) => isQuoted ? `“${text}”` : text);

test("a sentence is there as soon as it is whole, and each one once", () => {
  const pieces = new SpeechSegments();
  const next = (text: string, isFinal = false) => pieces.next(text, isFinal).map(({ text }) => text);
  expect(next("The ferry")).toEqual([]);
  expect(next("The ferry comes.")).toEqual([]);
  expect(next("The ferry comes. It is")).toEqual(["The ferry comes."]);
  expect(next("The ferry comes. It is late! The end")).toEqual(["It is late!"]);
  expect(next("The ferry comes. It is late! The end", true)).toEqual(["The end"]);
  expect(next("The ferry comes. It is late! The end", true)).toEqual([]);
});

test("what was there before is not read again", () => {
  const pieces = new SpeechSegments({ known: "One. Two" });
  expect(pieces.next("One. Two and a half. Three", true).map(({ text }) => text)).toEqual(["Two and a half.", "Three"]);
  const continued = new SpeechSegments({ known: "One is whole." });
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
])("%j is read as %j", (text, expected) => expect(spoken(text)).toEqual(expected));

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
])("apart by quotation marks %j is %j", (text, expected) => expect(spoken(text, true)).toEqual(expected));

test("a sentence without an end in sight is read in parts that a server takes", () => {
  const parts = spoken("word, ".repeat(500));
  expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(400);
  expect(parts.join(" ").match(/word/g)).toHaveLength(500);
  expect(spoken("あ".repeat(1000)).join("")).toBe("あ".repeat(1000));
});

test("100,000 abbreviations in one sentence are read in linear time", { tags: ["F02"] }, () => {
  expect(spoken("Dr. ".repeat(100_000)).join(" ")).toMatch(/^Dr\. Dr\./);
});
