import { describe, expect, test } from "vitest";
import { parseCard, parseCardText, removeDecorators, toV2 } from "../../../../services/characters/card/card.ts";
import { sillyTavernCard } from "../../../helpers/files/cards.ts";

const text = (value: string) => new TextEncoder().encode(value);
const refused = expect.objectContaining({ code: "unprocessable" });

test("a V1 card becomes V3 with all its fields, and unknown fields stay at the root", () => {
  const card = parseCard({
    name: "A",
    description: "d",
    first_mes: "hi",
    avatar: "none",
    fav: true,
    creatorcomment: "c",
  });
  expect(card).toEqual({
    spec: "chara_card_v3",
    spec_version: "3.0",
    avatar: "none",
    fav: true,
    data: {
      name: "A",
      description: "d",
      personality: "",
      scenario: "",
      first_mes: "hi",
      mes_example: "",
      creator_notes: "c",
      system_prompt: "",
      post_history_instructions: "",
      creator: "",
      character_version: "",
      alternate_greetings: [],
      group_only_greetings: [],
      tags: [],
      extensions: {},
    },
  });
});

test("a Pygmalion card is read by its own field names", () => {
  const json = { char_name: "P", char_persona: "p", char_greeting: "g", example_dialogue: "e", world_scenario: "w" };
  expect(parseCard(json).data).toMatchObject({
    name: "P",
    description: "p",
    first_mes: "g",
    mes_example: "e",
    scenario: "w",
  });
});

test("a card that claims to be V2 or V3 but lacks data is read from its root", () => {
  expect(parseCard({ spec: "chara_card_v2", name: "Broken", description: "d" })).toMatchObject({
    spec: "chara_card_v3",
    data: { name: "Broken", description: "d" },
  });
});

test("data takes precedence over the copies at the root, which are updated to match", () => {
  const received = sillyTavernCard("Fox");
  received.name = "Stale";
  received.description = "stale";
  const card = parseCard(received);
  expect(card).toMatchObject({ name: "Fox", description: received.data.description, data: { name: "Fox" } });
  expect(card.chat).toBe(received.chat);
});

test("a valid card is unchanged, including the order of its fields", () => {
  const received = { ...sillyTavernCard("Fox"), spec: "chara_card_v3", spec_version: "3.0" };
  expect(JSON.stringify(parseCard(received))).toBe(JSON.stringify(received));
  expect(JSON.stringify(parseCard(parseCard(received)))).toBe(JSON.stringify(received));
});

test("corrects wrong types if only one interpretation makes sense", { tags: ["P07"] }, () => {
  const { data } = parseCard({
    spec: "chara_card_v2",
    spec_version: 2,
    data: {
      name: 7,
      description: null,
      character_version: 1.5,
      alternate_greetings: "only one",
      tags: "a, b,,c",
      extensions: [],
      nickname: null,
      character_book: { entries: { "0": { key: ["x"], content: null, disable: true, order: "5" }, "1": null } },
    },
  });
  expect(data).toMatchObject({ name: "7", description: "", character_version: "1.5", tags: ["a", "b", "c"] });
  expect(data).toMatchObject({ alternate_greetings: ["only one"], extensions: {}, nickname: "" });
  expect(data.character_book!.entries).toEqual([
    {
      key: ["x"],
      keys: ["x"],
      content: "",
      disable: true,
      order: "5",
      enabled: false,
      insertion_order: 5,
      extensions: {},
    },
  ]);
  expect(parseCard({ name: "A", description: "", character_book: null }).data).not.toHaveProperty("character_book");
});

describe("refuses data that isn't a card", () => {
  test.each<[string, unknown]>([
    ["null", null],
    ["an array", [{ name: "A" }]],
    ["a text", "A"],
    ["no name", { description: "d", first_mes: "" }],
    ["a blank name", { spec: "chara_card_v2", data: { name: "  " } }],
    ["a lorebook", { spec: "lorebook_v3", data: { name: "Book", entries: [] } }],
    ["a world of SillyTavern", { name: "World", entries: {} }],
    ["a preset", { name: "Preset", temperature: 1, prompts: [] }],
  ])("%s", (_, json) => {
    expect(() => parseCard(json)).toThrow(refused);
  });

  test("reads 100,000 levels of nesting, in text and parsed, without a stack overflow", { tags: ["P07"] }, () => {
    const deep = `{"name":"A","description":"","extensions":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect(() => parseCardText(text(deep))).toThrow(refused);
    expect(() => parseCardText(text("[".repeat(1_000_000)))).toThrow(refused);
  });

  test("handles a number beyond all bounds, invalid UTF-8 and a text of 50 MB", { tags: ["P07"] }, () => {
    expect(() => parseCardText(text('{"name":"A","description":"","extensions":{"x":1e999}}'))).toThrow(refused);
    expect(() => parseCardText(new Uint8Array([0x7b, 0xff, 0x7d]))).toThrow(refused);
    expect(() => parseCardText(new Uint8Array(50_000_000).fill(0x20))).toThrow(
      expect.objectContaining({ code: "too_large" }),
    );
  });
});

test(
  "prototype names are ordinary keys, the last duplicate key wins, and lone surrogates are kept",
  { tags: ["P07"] },
  () => {
    const json =
      '{"name":"A","name":"B","description":"\\ud800","__proto__":{"polluted":1},"extensions":{"__proto__":{"polluted":1},"constructor":1}}';
    const card = parseCardText(text(json));
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect((card as Record<string, unknown>).polluted).toBeUndefined();
    expect(card.data.name).toBe("B");
    expect(card.data.description).toBe("\ud800");
    expect(JSON.stringify(toV2(card))).toContain('"__proto__":{"polluted":1}');
    expect(JSON.stringify(card)).toContain("\\ud800");
  },
);

test("decorators are lines at the start of a lorebook text", () => {
  expect(removeDecorators("@@depth 4\n@@@role user\n\nText\n@@not_one")).toBe("\nText\n@@not_one");
  expect(removeDecorators("mail@@example")).toBe("mail@@example");
  expect(removeDecorators("@@depth 4")).toBe("");
});
