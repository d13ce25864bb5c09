import { expect, test } from "vitest";
import { parseCharacterFields } from "../../../../services/characters/generation/character_writing.ts";

const CARD = {
  name: "Fern",
  description: 'A fox who says "hm".\n\nSecond paragraph, with {{char}} and a 🦊.',
  first_mes: "*waves* Hello {{user}}.",
  tags: ["forest", "kind"],
};

test.each([
  ["JSON", JSON.stringify(CARD)],
  ["JSON in a fence behind words", `Here is your card:\n\`\`\`json\n${JSON.stringify(CARD, null, 2)}\n\`\`\`\nEnjoy!`],
  ["JSON behind thoughts with braces", `<think>{"name": "No"}</think>${JSON.stringify(CARD)}`],
  ["a wrapped card", JSON.stringify({ spec: "chara_card_v2", spec_version: "2.0", data: CARD })],
  ["raw line breaks inside texts", JSON.stringify(CARD).replaceAll("\\n", "\n")],
  ["a comma too many", JSON.stringify(CARD).replace(/\}$/, ",}").replace("]", ",]")],
])("reads an answer: %s", (_, answer) => {
  expect(parseCharacterFields(answer)).toEqual(CARD);
});

test("keeps unescaped quotation marks in the text", () => {
  const answer = '{"name": "Fern", "description": "She says "hm", then "no".", "tags": ["a"]}';
  expect(parseCharacterFields(answer)).toEqual({
    name: "Fern",
    description: 'She says "hm", then "no".',
    tags: ["a"],
  });
});

test("understands other field names, and lists and objects in place of texts", () => {
  const answer = JSON.stringify({
    character: {
      character_name: "Fern",
      "First Message": "Hi.",
      example_dialogue: ["<START>", "{{char}}: Hm."],
      personality: { mood: "calm", pace: 2 },
      tags: "forest, kind",
    },
  });
  expect(parseCharacterFields(answer)).toEqual({
    name: "Fern",
    first_mes: "Hi.",
    mes_example: "<START>\n{{char}}: Hm.",
    personality: "mood: calm\npace: 2",
    tags: ["forest", "kind"],
  });
});

test("reads labeled paragraphs if there is no JSON", () => {
  const answer = [
    "Sure, here is a character.",
    "**Name:** Fern",
    "",
    "## Description",
    "A fox.",
    "Note: she limps.",
    "",
    "First message: *waves*",
    "{{char}}: Hello.",
    "---",
    "Tags: forest, kind",
  ].join("\n");
  expect(parseCharacterFields(answer)).toEqual({
    name: "Fern",
    description: "A fox.\nNote: she limps.",
    first_mes: "*waves*\n{{char}}: Hello.",
    tags: ["forest", "kind"],
  });
});

test.each(["", "I'm sorry, but I can't help with that.", '{"error": "no"}', "[1, 2]", "{{char}} is a fox", "{", '{"'])(
  "finds no fields in text without a character: %s",
  (answer) => expect(parseCharacterFields(answer)).toEqual({}),
);

test("parses an answer at every length, and texts only grow", () => {
  const answer = JSON.stringify(CARD).replace("🦊", "\\ud83e\\udd8a");
  let before: Record<string, unknown> = {};
  for (let length = 1; length <= answer.length; length++) {
    const now = parseCharacterFields(answer.slice(0, length));
    for (const [field, text] of Object.entries(before)) {
      if (typeof text === "string") {
        expect(String(now[field as "name"]).startsWith(text), `${field} at ${length}`).toBe(true);
      }
    }
    before = now;
  }
  expect(before).toEqual(CARD);
});

test("endless nesting breaks nothing", () => {
  expect(parseCharacterFields(`{"name": "Fern", "description": ${"[".repeat(50_000)}`).name).toBe("Fern");
  expect(parseCharacterFields('{"__proto__": {"name": "x"}, "constructor": "y"}')).toEqual({ name: "x" });
});
