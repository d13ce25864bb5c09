import { expect, test } from "vitest";
import { computeOffsets, findRowAt } from "../../../../static/src/components/lists/virtual_offsets.ts";

const offsets = computeOffsets([10, 20, 30], (height) => height);

test("places rows one below another", () => expect([...offsets]).toEqual([0, 10, 30, 60]));

test.each([[-5, 0], [0, 0], [9, 0], [10, 1], [29, 1], [30, 2], [59, 2], [60, 2], [1e9, 2]])(
  "finds at %i px row %i",
  (y, index) => expect(findRowAt(offsets, y)).toBe(index),
);

test("an empty list has no height and only the first row", () => {
  const none = computeOffsets([], () => 10);
  expect([[...none], findRowAt(none, 100)]).toEqual([[0], 0]);
});
