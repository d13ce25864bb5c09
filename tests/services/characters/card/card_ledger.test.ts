import { expect, test } from "vitest";
import { parseCard } from "../../../../services/characters/card/card.ts";
import { createCardLedger } from "../../../../services/characters/card/card_ledger.ts";

const ledgerOf = (data: Record<string, unknown>, root: Record<string, unknown> = {}) =>
  createCardLedger(parseCard({ spec: "chara_card_v3", spec_version: "3.0", ...root, data: { name: "Fox", ...data } }))
    .map(({ kind, count, examples }) => ({ kind, count, examples }));

test("a card whose fields are all used has no ledger", () => {
  const extensions = { fav: true, talkativeness: "0.5", "parlor/voice": "v1", depth_prompt: { prompt: "Stay." } };
  expect(ledgerOf({ extensions, nickname: "Red", tags: ["forest"] }, { creatorcomment: "", avatar: "none" })).toEqual(
    [],
  );
});

test("names scripts, other programs' data and unknown fields of a card", () => {
  const extensions = {
    world: "Forest",
    regex_scripts: [{ scriptName: "Bold" }, { scriptName: "Trim" }],
    chub: { id: 7 },
    risuai: { customScripts: [{ in: "a" }, { in: "b" }], utilityBot: false, bias: [["fox", 5]] },
    empty: {},
  };
  const assets = [{ type: "icon", uri: "https://pictures.example/fox.png", name: "main" }];
  expect(ledgerOf({ extensions, assets, mood: "calm" }, { weather: "rain" })).toEqual([
    { kind: "regex_script", count: 2, examples: ["Bold", "Trim"] },
    { kind: "program_data", count: 2, examples: ["chub", "risuai: bias"] },
    { kind: "card_script", count: 2, examples: ["risuai: customScripts"] },
    { kind: "remote_asset", count: 1, examples: ["main"] },
    { kind: "unknown_field", count: 2, examples: ["mood", "weather"] },
  ]);
});

test("parts of a card that can't be read stay in it and are named", () => {
  const book = parseCard({ spec: "chara_card_v3", data: { name: "Fox", character_book: "Forest" } });
  expect(book.data.character_book).toBeUndefined();
  expect(book.data.extensions).toEqual({ "parlor/unread": { character_book: "Forest" } });
  expect(ledgerOf({ character_book: "Forest" })).toEqual([
    { kind: "unreadable_part", count: 1, examples: ["character_book"] },
  ]);
  const entries = parseCard({ name: "Fox", description: "", character_book: { entries: [7, { keys: ["a"] }] } });
  expect(entries.data.character_book).toMatchObject({
    entries: [{ keys: ["a"] }],
    extensions: { "parlor/unread": { entries: [7] } },
  });
});

test("names the macros of a card that Parlor doesn't have", () => {
  const extensions = { depth_prompt: { prompt: "{{fourth}}" } };
  const texts = {
    description: "{{first}} {{user}}",
    first_mes: "{{second}}",
    alternate_greetings: ["{{third::{{char}}}}"],
  };
  expect(ledgerOf({ ...texts, extensions, creator_notes: "{{notSent}}" })).toEqual([
    { kind: "unknown_macro", count: 4, examples: ["{{first}}", "{{fourth}}", "{{second}}", "{{third}}"] },
  ]);
});
