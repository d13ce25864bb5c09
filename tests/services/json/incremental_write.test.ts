import { expect, test } from "vitest";
import { writeJsonIncrementally } from "../../../services/json/incremental_write.ts";

test.each([
  {},
  { list: [], object: {}, absent: undefined, mixed: [undefined, 1, { text: "é\n\u2028\\n" }] },
  { a: { b: { c: { d: [1, { e: null }] } } }, "": [[[[1], []]]] },
  JSON.parse('{"__proto__":{"own":1},"list":[{"__proto__":[]}]}'),
  { data: { book: { entries: Array.from({ length: 45 }, (_, n) => ({ n, keys: ["a\n", [], {}] })) } } },
  [1, "two", [3], { four: 4 }],
  "a text",
  null,
])("%j is written as by JSON.stringify", async (json) => {
  expect(await writeJsonIncrementally(json, 4)).toBe(JSON.stringify(json, null, 4));
  expect(await writeJsonIncrementally(json)).toBe(JSON.stringify(json));
});
