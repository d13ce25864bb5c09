import { expect, test } from "vitest";
import { findSuspicious, literalProse, markdownProse, rateOf } from "./prose.ts";

const wordsIn = (prose: string) => findSuspicious(prose).hits.map(({ word }) => word);

test.each([
  ["The key is kept beside the data.", ["kept", "beside"]],
  ["Whoever comes in is told.", ["Whoever", "comes in", "told"]],
  ["There are none, and it is no server.", ["are none", "is no"]],
  ["Let the other device in", ["Let the other device in"]],
  ["At the begin of the reply", ["the begin"]],
])("finds the suspicious words of %j", (text, words) => expect(wordsIn(text)).toEqual(words));

test.each([
  "The server is no longer running.",
  "Use it in the living room.",
  "{{char}} stands for the name.",
  "Helps you tell your passkeys apart.",
  "Begin with an empty folder. The beginning is short.",
  "Mushrooms and something else.",
])("finds nothing in %j", (text) => expect(wordsIn(text)).toEqual([]));

test("reads the prose of a page without its code, links and HTML", () => {
  const page = "# Thing\n\n```sh\necho kept\n```\n\nUse `kept` and [this](room.md).<!-- told -->\n\nIt lies here.\n";
  const { hits, words } = findSuspicious(markdownProse(page));
  expect(hits).toEqual([{ line: 1, word: "Thing" }, { line: 9, word: "lies" }]);
  expect(words).toBe(7);
});

test("reads the string literals of a source, without comments, names and placeholders", () => {
  const source = [
    '/** What is kept. */\nimport { kept } from "../kept.ts";\nexport const texts = {',
    "  kept: (told: string) => `It stands in ${told}`, // told",
    '  things: "Two \\"things\\"",\n};',
  ].join("\n");
  const { hits, words } = findSuspicious(literalProse(source));
  expect(hits).toEqual([{ line: 4, word: "stands" }, { line: 5, word: "things" }]);
  expect(words).toBe(5);
});

test("counts hits per 1,000 words over several texts", () => {
  expect(rateOf([])).toBe(0);
  expect(rateOf([{ hits: [{ line: 1, word: "told" }], words: 150 }, { hits: [], words: 350 }])).toBe(2);
});
