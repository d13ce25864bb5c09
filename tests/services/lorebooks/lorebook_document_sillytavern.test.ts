import { expect, test } from "vitest";
import worldInfo from "../../fixtures/sillytavern/world_info.json" with { type: "json" };
import { parseLorebook, parseLorebookFile } from "../../../services/lorebooks/lorebook_file.ts";
import { parseSillyTavernLorebook, toSillyTavernLorebook } from "../../../services/lorebooks/lorebook_document.ts";

const encoder = new TextEncoder();

test("round-trips a World Info file, including unknown fields and unusual numbers", async () => {
  expect(await toSillyTavernLorebook(parseSillyTavernLorebook(worldInfo))).toEqual(worldInfo);
});

test("maps the fields of entries", () => {
  const { entries } = parseSillyTavernLorebook(worldInfo);
  expect(entries.map(({ id, enabled, constant, position, insertion_order }) => ({
    id,
    enabled,
    constant,
    position,
    insertion_order,
  }))).toEqual([
    { id: 0, enabled: true, constant: false, position: "before_char", insertion_order: 100 },
    { id: 1, enabled: true, constant: false, position: "after_char", insertion_order: 100 },
    { id: 2, enabled: true, constant: true, position: "before_char", insertion_order: 10 },
    { id: 3, enabled: true, constant: false, position: "after_char", insertion_order: 100 },
    { id: 6, enabled: true, constant: false, position: "after_char", insertion_order: 100 },
    { id: 7, enabled: false, constant: false, position: "before_char", insertion_order: 100 },
    { id: 8, enabled: true, constant: false, position: "after_char", insertion_order: 100 },
  ]);
  expect(entries[1]).toMatchObject({ secondary_keys: ["night", "storm"], extensions: { selectiveLogic: 3 } });
  expect(entries[4]!.extensions).toMatchObject({ position: 6, probability: 50, sticky: 3, cooldown: 2 });
});

test("an edit changes only its field", async () => {
  const book = parseSillyTavernLorebook(worldInfo);
  book.entries[0]!.content = "Sand.";
  book.entries[5]!.enabled = true;
  const { entries, ...others } = await toSillyTavernLorebook(book);
  const { entries: before, ...othersBefore } = worldInfo;
  expect(others).toEqual(othersBefore);
  expect(entries).toEqual({
    ...before,
    "0": { ...before["0"], content: "Sand." },
    "7": { ...before["7"], disable: false },
  });
});

/** A V3 book with everything that SillyTavern has no field for. */
const V3 = {
  name: "Sea",
  description: "All about it",
  scan_depth: 5,
  token_budget: 300,
  recursive_scanning: false,
  extensions: { "some/one": { a: 1 } },
  unknown: [1, null],
  entries: [
    {
      keys: ["wave"],
      content: "@@depth 1\nWet",
      extensions: { chub: { x: 1 }, depth: 7 },
      enabled: true,
      insertion_order: 3,
      use_regex: false,
      case_sensitive: true,
      constant: false,
      selective: true,
      secondary_keys: ["storm"],
      position: "after_char",
      priority: 9,
      id: "e-1",
      name: "Wave",
      comment: "c",
      mine: { deep: [true] },
    },
    { keys: ["gull"], content: "Loud", extensions: {}, enabled: false, insertion_order: 1, use_regex: true },
  ],
};

test("round-trips a V3 book through SillyTavern's format, including V3-only fields", async () => {
  const parsed = parseLorebook({ spec: "lorebook_v3", data: V3 });
  expect(parsed).toEqual({ book: V3, name: "Sea" });
  const there = JSON.parse(JSON.stringify(await toSillyTavernLorebook(parsed.book)));
  expect(there.entries["0"]).toMatchObject({ key: ["wave"], keysecondary: ["storm"], order: 3, depth: 7, position: 1 });
  const { entries: [first, second], ...back } = parseSillyTavernLorebook(there);
  const { entries: _, ...others } = V3;
  expect(back).toEqual(others);
  expect(first).toMatchObject(V3.entries[0]!);
  expect(second).toMatchObject(V3.entries[1]!);
});

test.each<[string, unknown, string | undefined]>([
  ["a bare V2 book without extensions, as SillyTavern leaves it in cards", { entries: [], name: "B" }, "B"],
  ["the book of a card", { spec: "chara_card_v3", data: { name: "Ann", character_book: { entries: [] } } }, "Ann"],
  ["its own name goes first", {
    spec: "chara_card_v2",
    data: { name: "A", character_book: { name: "B", entries: [] } },
  }, "B"],
  ["world info by a list", { entries: [{ key: ["a"], content: "x" }] }, undefined],
])("parses %s", (_, json, name) => {
  expect(parseLorebook(json).name).toBe(name);
});

test("corrects wrong types and skips invalid entries", () => {
  const { book } = parseLorebook({
    entries: [
      { keys: "a, b", content: null, enabled: "yes", insertion_order: "7", priority: "2", secondary_keys: null },
      null,
      "x",
    ],
  });
  expect(book.entries).toEqual([{
    keys: ["a", "b"],
    content: "",
    enabled: true,
    insertion_order: 7,
    priority: 2,
    secondary_keys: [],
    extensions: {},
  }]);
});

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

test.each<[string, unknown]>([
  ["a list", []],
  ["null", null],
  ["a text", "entries"],
  ["an object without entries", { name: "x" }],
  ["a card without a book", { spec: "chara_card_v2", data: { name: "x" } }],
  ["lorebook_v3 without data", { spec: "lorebook_v3", data: [] }],
  ["one nested without end (P07)", { entries: [], x: nested(200_000) }],
  ["a number without bounds", { entries: [], x: JSON.parse("1e999") }],
  ["too many keys", { entries: [{ keys: Array.from({ length: 100_001 }, () => "k"), content: "x" }] }],
  ["too many entries", { entries: Array.from({ length: 10_001 }, () => ({ keys: [], content: "x" })) }],
])("rejects %s", (_, json) => {
  expect(() => parseLorebook(json)).toThrow(expect.objectContaining({ code: "unprocessable" }));
});

test("rejects files that aren't UTF-8 JSON or too long", () => {
  expect(parseLorebookFile(encoder.encode('\uFEFF{"entries":{}}')).book.entries).toEqual([]);
  const refused = (bytes: Uint8Array) => () => parseLorebookFile(bytes);
  expect(refused(encoder.encode("{"))).toThrow(expect.objectContaining({ code: "unprocessable" }));
  expect(refused(new Uint8Array([0x7b, 0xff, 0x7d]))).toThrow(expect.objectContaining({ code: "unprocessable" }));
  expect(refused(new Uint8Array(10 * 1024 * 1024 + 1))).toThrow(expect.objectContaining({ code: "too_large" }));
});

test("names of language built-ins are ordinary members", async () => {
  const text = '{"entries":{"__proto__":{"uid":1,"key":["a"],"content":"x","__proto__":{"y":1}}},"__proto__":{"z":1}}';
  const book = parseSillyTavernLorebook(JSON.parse(text));
  expect(book.entries).toHaveLength(1);
  expect(Object.getPrototypeOf(book)).toBe(Object.prototype);
  const out = await toSillyTavernLorebook(book);
  expect(Object.keys(out.entries as object)).toEqual(["__proto__"]);
  expect(({} as Record<string, unknown>).z).toBeUndefined();
});
