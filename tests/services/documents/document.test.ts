import { expect, test } from "vitest";
import { formatPages, includesPage, parsePages, toPageRanges } from "../../../services/documents/document.ts";

test.each([
  ["3-5,12", "3-5,12"],
  [" 12 , 3–5 ", "3-5,12"],
  ["1,2,3", "1-3"],
  ["4-6,5-9,1", "1,4-9"],
  ["7-7", "7"],
])("parses and formats %j", (given, formatted) => {
  expect(formatPages(parsePages(given)!)).toBe(formatted);
});

test.each(["", ",", "0", "5-3", "a", "1-", "-1", "1;2", "1-2-3", "99999999", "1,".repeat(1_001)])(
  "rejects %j",
  (given) => expect(parsePages(given)).toBeUndefined(),
);

test("converts page numbers and finds pages", () => {
  const ranges = toPageRanges([9, 2, 3, 3, 4]);
  expect(formatPages(ranges)).toBe("2-4,9");
  expect([1, 2, 4, 5, 9].filter((page) => includesPage(ranges, page))).toEqual([2, 4, 9]);
});
