import { expect, test } from "vitest";
import { findSpeech } from "../../../static/src/markdown/speech_marks.ts";

test.each([
  ["“Hello,” she said, “come in.”", ["“Hello,”", "“come in.”"]],
  ['He said "yes" and "no".', ['"yes"', '"no"']],
  ["„Guten Tag“, sagte er. „So?”", ["„Guten Tag“", "„So?”"]],
  ["« Bonjour », dit-il. »Hallo«", ["« Bonjour »", "»Hallo«"]],
  ["彼は「はい」と言い、『本』を開いた。", ["「はい」", "『本』"]],
  ['a board of 5" and one of 6", never closed “ again', []],
  ['a 5" board and "one word"', ['"one word"']],
  ["don't, it's ‘hers’, “”", []],
])("finds the speech in %s", (text, expected) => {
  expect(findSpeech(text).map(([start, end]) => text.slice(start, end))).toEqual(expected);
});

test.each([
  ["marks that never close", "„".repeat(400_000)],
  ["mixed marks", "„「『".repeat(130_000)],
])("reads hostile %s in one pass", (_, text) => {
  expect(findSpeech(text)).toEqual([]);
});
