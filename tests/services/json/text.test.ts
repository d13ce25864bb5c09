import { expect, test } from "vitest";
import { foldForSorting, normalized, quoteKey } from "../../../services/json/text.ts";

test.each(
  [
    ["e\u0301", "NFC", "é"],
    ["é", "NFKD", "e\u0301"],
    ["ﾊﾞ", "NFKC", "バ"],
    ["e" + "\u0301".repeat(30), "NFC", "é" + "\u0301".repeat(29)],
    ["e" + "\u0301".repeat(31), "NFC", "e" + "\u0301".repeat(31)],
  ] as const,
)("%j in %s is %j", (text, form, expected) => {
  expect(normalized(text, form)).toBe(expected);
});

test.each([
  ["combining marks", "\u0301\u0316"],
  ["letters that become marks", "\uFF9E\u0316"],
])("doesn't sort a row of 200,000 %s", { tags: ["F01"] }, (_, marks) => {
  const text = `e${marks.repeat(100_000)}`;
  // Sorted, each of these would take minutes.
  for (const form of ["NFC", "NFKC", "NFKD"] as const) expect(normalized(text, form)).toBe(text);
  expect(foldForSorting(text)).toContain("e");
  expect(quoteKey(text)).toContain("e");
});
