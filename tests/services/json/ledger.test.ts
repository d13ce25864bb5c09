import { expect, test } from "vitest";
import { Ledger, parseLedger } from "../../../services/json/ledger.ts";

const REASONS = { image: "Images", unknown: "Unknown parts" };

test("counts by kind, with the first five different examples in 120 characters", () => {
  const ledger = new Ledger(REASONS);
  for (let n = 0; n < 8; n++) ledger.add("unknown", { example: `part ${n % 7}` });
  ledger.add("image", { count: 3 });
  ledger.add("image", { count: 0, example: "none" });
  ledger.add("image", { example: "x".repeat(500) });
  expect(ledger.list()).toEqual([
    {
      kind: "unknown",
      count: 8,
      reason: "Unknown parts",
      examples: ["part 0", "part 1", "part 2", "part 3", "part 4"],
    },
    { kind: "image", count: 4, reason: "Images", examples: ["x".repeat(120)] },
  ]);
});

test("accepts only known kinds, numbers and short examples from a child, and its own sentences", () => {
  const sent = [
    { kind: "image", count: 2, reason: "anything", examples: ["a", "b", 3] },
    { kind: "__proto__", count: 1 },
    { kind: "other", count: 1 },
    { kind: "unknown", count: -4 },
    null,
    "text",
  ];
  expect(parseLedger(sent.slice(0, 2), REASONS)).toEqual([
    { kind: "image", count: 2, reason: "Images", examples: ["a", "b", "3"] },
  ]);
  for (const value of [undefined, null, "x", {}, [null], sent.slice(2), [{ kind: "image", count: "much" }]]) {
    expect(parseLedger(value, REASONS)).toEqual([]);
  }
});
