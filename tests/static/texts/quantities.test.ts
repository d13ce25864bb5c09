import { expect, test } from "vitest";
import { loadLater } from "../../../static/src/texts/en/en.ts";
import { bytes, formatProgress } from "../../../static/src/texts/quantities.ts";

await loadLater();

test.each([[0, "0 B"], [999, "999 B"], [1000, "1 kB"], [1_234_567, "1.2 MB"], [4e9, "4 GB"], [3.5e12, "3.5 TB"], [
  9e15,
  "9,000 TB",
]])(
  "formats %d bytes as %s",
  (size, text) => expect(bytes(size)).toBe(text),
);

test("formats the count of a job, and its total if known", () => {
  expect(formatProgress({ done: 3, total: 8, unit: "steps" })).toBe("3 of 8 steps");
  expect(formatProgress({ done: 1200, total: null, unit: "files" })).toBe("1,200 files");
  expect(formatProgress({ done: 1, total: null, unit: "files" })).toBe("1 file");
  expect(formatProgress({ done: 7, total: null, unit: "cards" })).toBe("7 cards");
  expect(formatProgress({ done: 5, total: null, unit: "bytes" })).toBe("5 B");
  expect(formatProgress({ done: 2, total: 3, unit: "cards" })).toBe("2 of 3 cards");
  expect(formatProgress({ done: 40, total: 100, unit: "percent" })).toBe("40%");
  expect(formatProgress(null)).toBeUndefined();
});
