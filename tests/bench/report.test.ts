import { expect, test } from "vitest";
import { findSections, formatDocument, type RunFacts } from "./report.ts";

const FACTS: RunFacts = {
  rounds: 5,
  cores: 2,
  load: 0.5,
  denoVersion: "2.9.6",
  platform: "linux, x86_64",
  date: "2026-11-21",
};
const KEPT = `
## Single rows

| Measurement | Parlor |
| --- | --- |
| a request | 1 ms |

## Soak

- 2026-11-21
`;

test("a whole run replaces the table, and keeps the sections after it", () => {
  const row = { what: "a chat", own: "2 ms", limit: "–", counterpart: "–", target: "–" };
  const page = formatDocument([{ figures: [row], use: { load: [0.1, 0.2], elsewhere: 0 } }], FACTS);
  const newer = formatDocument([], { ...FACTS, date: "2026-11-22" });
  expect(page).toContain("| a chat | 2 ms |");
  expect(newer + findSections(page + KEPT)).toBe(newer + KEPT);
  expect(findSections(newer + findSections(page + KEPT))).toBe(KEPT);
  expect(newer + findSections(page)).toBe(newer);
  expect(findSections("")).toBe("");
});

test("the sections of the page are found", async () => {
  const text = await Deno.readTextFile(new URL("../../docs/benchmarks.md", import.meta.url));
  expect(findSections(text)).toMatch(/^\n## Single rows\n[^]*\n## Soak\n/);
});
