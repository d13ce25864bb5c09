import { expect, test } from "vitest";
import { findCitations } from "../../../static/src/markdown/citations.ts";

test.each([
  ["Biscuit [p. 12].", [[undefined, 12]]],
  ["[report.pdf, p. 3]", [["report.pdf", 3]]],
  ["[Smith, J. (2020).pdf, p. 3]", [["Smith, J. (2020).pdf", 3]]],
  ["[pp. 3–5] and [p. 7, p. 9] and [p.4, 6]", [[undefined, 3], [undefined, 7], [undefined, 4]]],
  ["[1], [page], [p. ], [p. twelve], p. 12, [sp. 12], [a]p. 1]", []],
])("finds the references in %s", (text, expected) => {
  expect(findCitations(text).map(({ name, page }) => [name, page])).toEqual(expected);
});

test("says where a reference is", () => {
  const text = "See [a.pdf, p. 3]!";
  expect(findCitations(text).map(({ start, end }) => text.slice(start, end))).toEqual(["[a.pdf, p. 3]"]);
});

test.each([
  ["brackets", "[".repeat(200_000)],
  ["names without an end", `[${"a, ".repeat(100_000)}`],
  ["open lists", "[p. 1, ".repeat(50_000)],
])("reads hostile %s in one pass", (_, text) => {
  expect(findCitations(text)).toEqual([]);
});
