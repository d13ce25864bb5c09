import { expect, test, vi } from "vitest";
import { isNestedDeeper, isValueDeeper, parseJsonIncrementally } from "../../../services/json/incremental_parse.ts";

const MAX_DEPTH = 500;
const encoder = new TextEncoder();
const parse = (text: string) => parseJsonIncrementally(encoder.encode(text), MAX_DEPTH);

/** Items with commas and brackets in strings, which could confuse a search for separators. */
const ITEMS = Array.from({ length: 4_000 }, (_, n) => ({
  id: `m${n}`,
  content: [`plain ${n}`, 'a "quote", a \\ and [brackets', "}],{", "日本語 🦊 \u2028", "\\"][n % 5],
  nested: [[n, [n]], { list: [n, { deep: ["a,b"] }] }],
  empty: [[], {}, "", null, true, -1.5e-7],
}));
const LIST = JSON.stringify(ITEMS);
/** The items without brackets. */
const HALF = LIST.slice(1, -1);

test.each([
  ["a long list between other members", `{"title":"T, [1]","messages":${LIST},"draft":"d"}`],
  ["a list that comes last", `{"messages":${LIST}}`],
  ["two long lists", `{"a":${LIST},"n":{"x":[1,2]},"b":${LIST}}`],
  ["spaces and line ends around everything", ` \r\n{ "messages"\t:\n${JSON.stringify(ITEMS, null, 2)} , "x" : 1 }\n`],
  ["a name twice, the list first", `{"messages":${LIST},"messages":[1]}`],
  ["a name twice, the list last", `{"messages":[1],"messages":${LIST}}`],
  ["a name twice, two lists", `{"messages":[0,${LIST.slice(1)},"messages":${LIST}}`],
  ["a name that is a part of every object", `{"__proto__":${LIST},"constructor":${LIST}}`],
  ["a name written with escapes", `{"mess\\u0061ges":${LIST}}`],
  ["a list that lies deeper", `{"data":{"messages":${LIST}}}`],
  ["a list by itself", LIST],
  ["a list of lists", `[${LIST},${LIST}]`],
  ["a list of texts with spaces around it", ` [ "[", ${HALF} , "]" ]\n`],
  ["a list after a byte order mark", `\ufeff${LIST}`],
  ["a string by itself", JSON.stringify("x,[".repeat(100_000))],
  ["nothing in it", "{}"],
  ["a byte order mark at its begin", `\ufeff{"messages":${LIST}}`],
])("parses %s like JSON.parse", async (_what, text) => {
  // As text, because comparing objects would ignore the name `__proto__`.
  expect(JSON.stringify(await parse(text)) === JSON.stringify(JSON.parse(text.replace(/^\ufeff/, "")))).toBe(true);
});

test.each([
  ["nothing at all", ""],
  ["no end of the list", `{"messages":[${HALF}`],
  ["no end of the document", `{"messages":[${HALF}]`],
  ["another end of the list", `{"messages":[${HALF}}`],
  ["a comma at the end of the list", `{"messages":[${HALF},]}`],
  ["a comma at its begin", `{"messages":[,${HALF}]}`],
  ["two commas in it", `{"messages":[${HALF},,${HALF}]}`],
  ["no comma between two items", `{"messages":[${HALF} ${HALF}]}`],
  ["a name in the list", `{"messages":[${HALF},"a":1,${HALF}]}`],
  ["something behind the document", `{"messages":[${HALF}]} 1`],
  ["a bracket too many", `{"messages":[${HALF}]]}`],
  ["a value without a name", `{"a":1,[${HALF}]}`],
  ["a string without an end", `{"messages":[${HALF},"a]}`],
  ["a byte order mark between two items", `{"messages":[${HALF},\ufeff${HALF}]}`],
  ["something before the document", `x{"messages":[${HALF}]}`],
  ["no end of a list by itself", `[${HALF}`],
  ["another end of a list by itself", `[${HALF}}`],
  ["two lists", `[${HALF}][${HALF}]`],
  ["a name in a list by itself", `[${HALF},"a":1,${HALF}]`],
  ["something before a list", `"a"[${HALF}]`],
])("refuses %s", async (_what, text) => {
  expect(() => JSON.parse(text)).toThrow(SyntaxError);
  await expect(parse(text)).rejects.toThrow(SyntaxError);
});

test("distinguishes invalid UTF-8 from invalid JSON", async () => {
  const bytes = encoder.encode(`{"messages":${LIST}}`);
  bytes[bytes.length - 20] = 0xff;
  await expect(parseJsonIncrementally(bytes, MAX_DEPTH)).rejects.toThrow(TypeError);
});

test.each([
  ["in an item of a list", (inner: string) => `{"messages":[${HALF},${inner}]}`, 2],
  ["in a member beside a list", (inner: string) => `{"messages":[${HALF}],"more":${inner}}`, 1],
  ["in a list by itself", (inner: string) => `[${HALF},${inner}]`, 1],
])(
  "accepts the maximum depth and refuses one level more: %s",
  { tags: ["P07"] },
  async (_what, document, around) => {
    const levels = (count: number) => document("[".repeat(count - around) + "]".repeat(count - around));
    expect(JSON.stringify(await parse(levels(MAX_DEPTH)))).toBe(levels(MAX_DEPTH));
    await expect(parse(levels(MAX_DEPTH + 1))).rejects.toThrow(RangeError);
    await expect(parse(levels(100_000))).rejects.toThrow(RangeError);
  },
);

test.each([
  ["", ""],
  ['{"messages":', "}"],
])("parses a long list piece by piece: %s[…]%s", async (begin, end) => {
  const text = `${begin}[${Array(10).fill(HALF).join(",")}]${end}`;
  const parsed = vi.spyOn(JSON, "parse");
  try {
    await parse(text);
    const longest = Math.max(...parsed.mock.calls.map(([piece]) => piece.length));
    expect(text.length).toBeGreaterThan(4_000_000);
    expect(longest).toBeLessThan(70_000);
  } finally {
    parsed.mockRestore();
  }
});

test.each([
  [[], 1],
  [{ a: [{}] }, 3],
  [[1, { list: [null, "[[", [2]] }], 4],
  [JSON.parse('{"__proto__":[[]]}'), 3],
])("counts the levels of %j in the value as in its bytes", (value, levels) => {
  // Longer than the limit: shorter bytes can't be nested deeper.
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}          `);
  for (const limit of [levels - 1, levels]) {
    expect(isValueDeeper(value, limit)).toBe(limit < levels);
    expect(isNestedDeeper(bytes, limit)).toBe(limit < levels);
  }
});

test("a value without levels is never nested too deep", () => {
  for (const value of ["[[", 1, null, true]) expect(isValueDeeper(value, 0)).toBe(false);
});
