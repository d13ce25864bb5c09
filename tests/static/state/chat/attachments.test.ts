import { expect, test } from "vitest";
import { formatPageList, parsePageList } from "../../../../static/src/state/chat/attachments.ts";

test.each([
  ["3-5, 12", [3, 4, 5, 12]],
  ["12,3–4,4", [3, 4, 12]],
  ["", []],
  ["0", undefined],
  ["5-3", undefined],
  ["21", undefined],
  ["a", undefined],
  ["1-9999999", undefined],
])("reads %j as pages of a document with 20", (text, pages) => {
  expect(parsePageList(text, 20)).toEqual(pages);
});

test("writes pages as ranges", () => {
  expect(formatPageList([12, 3, 5, 4, 4])).toBe("3-5,12");
  expect(formatPageList([])).toBe("");
});
