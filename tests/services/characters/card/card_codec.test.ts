import { Buffer } from "node:buffer";
import { afterAll, expect, test } from "vitest";
import { parseCard } from "../../../../services/characters/card/card.ts";
import { CardCodec, type ReadCard } from "../../../../services/characters/card/card_codec.ts";
import { createWholeCardLedger } from "../../../../services/characters/card/card_ledger.ts";
import { toCardHead } from "../../../../services/characters/card/card_head.ts";
import type { CardEdits, CardFormatOptions } from "../../../../services/characters/card/card_work.ts";
import { readScanEntries, SCAN_DEFAULTS } from "../../../../services/lorebooks/scan_entries.ts";
import type { Lorebook } from "../../../../services/lorebooks/lorebook_document.ts";
import { toGreetingNames } from "../../../../services/prompts/participants.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import {
  cardChunk,
  deflatedChunk,
  END,
  header,
  pixels,
  plainPng,
  pngOf,
  sillyTavernCard,
} from "../../../helpers/files/cards.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());
const here = new CardCodec(sandbox, Infinity);
const inChild = new CardCodec(sandbox, 0);

const bytes = (json: unknown) => new TextEncoder().encode(JSON.stringify(json));
const entry = (n: number) => ({
  ...{
    id: n,
    keys: [`fox ${n}`, "/f(o)x/i"],
    secondary_keys: ["red"],
    content: `@@depth 2\nRed ${n}.`,
    comment: `No. ${n}`,
  },
  ...{ enabled: n % 3 !== 0, insertion_order: n, constant: n === 1, selective: true, use_regex: true, priority: 3 },
  extensions: {
    ...{ position: 4, depth: 3, role: 1, probability: 40, useProbability: true, selectiveLogic: 2, sticky: 1 },
    ...{ group: "a,b", match_scenario: true, triggers: ["normal"], own: { deep: { deeper: {} } } },
    sillytavern: { characterFilter: { names: ["Fox"], tags: ["red"], isExclude: true } },
  },
});
const st = sillyTavernCard("Füchsin 日本");
const rich = {
  ...st,
  spec: "chara_card_v3",
  spec_version: "3.0",
  own_field: { kept: [1, { two: 2 }] },
  data: {
    ...st.data,
    nickname: "Foxy",
    group_only_greetings: ["Hello, all."],
    assets: [{ type: "icon", uri: "embeded://a.png", name: "main", ext: "png" }, "odd", null],
    extensions: {
      ...{
        fav: "true",
        talkativeness: "0.7",
        world: "Woods",
        own: { list: [[1], {}] },
        parlor: { folder: "A", more: 1 },
      },
      ...{
        depth_prompt: { prompt: "Be red.", depth: 2, role: "user" },
        risuai: { emotions: [["joy", "__asset:1", "png"]] },
      },
    },
    character_book: { name: "Lore", scan_depth: 5, own: {}, entries: [0, 1, 2, 3].map(entry) },
  },
};
const v2Only = [
  header(8, 12),
  cardChunk("ccv3", rich),
  cardChunk("chara", { ...rich, spec: "chara_card_v2", v2_field: 1 }),
];

const FILES: [string, string, Uint8Array][] = [
  ["JSON", "a.json", bytes(rich)],
  ["a card of version 1", "a.json", bytes({ name: "Fox", description: "Red.", first_mes: "Hi." })],
  [
    "world info by number",
    "a.json",
    bytes({ ...st, data: { ...st.data, character_book: { entries: { 7: { key: "a,b" } } } } }),
  ],
  ["a PNG with both versions", "a.png", pngOf(...v2Only, pixels(8, 12), END)],
  [
    "compressed text",
    "a.png",
    pngOf(
      header(8, 12),
      deflatedChunk("chara", Buffer.from(JSON.stringify(st)).toString("base64")),
      pixels(8, 12),
      END,
    ),
  ],
];

/** All that lists, prompts and pages show of a card. */
function shown({ card }: ReadCard) {
  const { data } = card;
  const book = data.character_book as Lorebook | undefined;
  return {
    head: toCardHead(card),
    names: toGreetingNames(card, "Mia"),
    texts: [data.description, data.personality, data.scenario, data.first_mes, data.mes_example, data.system_prompt],
    lists: [data.alternate_greetings, data.group_only_greetings, data.tags],
    more: [data.creator_notes, data.character_version, data.extensions.depth_prompt, data.extensions.talkativeness],
    world: data.extensions.world,
    book: book && [book.name, book.scan_depth, book.entries.length],
    entries: book &&
      [...readScanEntries({ id: "1", name: "", book } as never, SCAN_DEFAULTS)].map(({ owner: _, ...read }) => read),
  };
}

test.each(FILES)("a card is the same whether it's read at once or in the sandbox: %s", async (_, path, file) => {
  const [small, large] = [await here.parse(path, file), await inChild.parse(path, file)];
  expect(small.text).toBeUndefined();
  expect(JSON.parse(new TextDecoder().decode(large.text))).toEqual(JSON.parse(JSON.stringify(small.card)));
  expect(large.version).toBe(small.version);
  expect(large.ledger).toEqual(createWholeCardLedger(small.card));
  expect(shown(large)).toEqual(shown(small));
  const [anySmall, anyLarge] = [await here.parseAny(file), await inChild.parseAny(file)];
  expect([anyLarge.version, anyLarge.avatarPng]).toEqual([anySmall.version, anySmall.avatarPng]);
});

const EDITS: CardEdits[] = [
  {},
  { dropsFolder: true },
  { mainIcon: "ccdefault:", dropsAssets: { hasImage: true } },
  { set: { name: "Mia", description: "Tall.", extensions: { "parlor/persona": { version: 1 } } } },
];
const FORMATS: CardFormatOptions[] = [
  { kind: "png" },
  { kind: "png", versions: "v2" },
  { kind: "json" },
  { kind: "json", isV2: true },
  { kind: "shared_json" },
];

test("a changed card is written alike at once and in the sandbox, in every format", async () => {
  const [small, large] = [await here.parse("a.json", bytes(rich)), await inChild.parse("a.json", bytes(rich))];
  const png = plainPng();
  for (const edits of EDITS) {
    expect((await inChild.edit(large, edits)).version).toBe((await here.edit(small, edits)).version);
    for (const format of FORMATS) {
      const options = { edits, png: format.kind === "png" ? png : undefined };
      expect(await inChild.write(large, format, options)).toEqual(await here.write(small, format, options));
    }
    expect(await inChild.planCharx(large, edits, png, undefined)).toEqual(
      await here.planCharx(small, edits, png, undefined),
    );
  }
});

test("a card without readable text is refused alike at once and in the sandbox", async () => {
  for (const text of ["{", "[1]", '{"name":""}', `${'{"data":'.repeat(500)}1${"}".repeat(500)}`]) {
    const file = new TextEncoder().encode(text);
    const error = await here.parse("a.json", file).catch((error) => error);
    await expect(inChild.parse("a.json", file)).rejects.toMatchObject({ code: error.code, message: error.message });
  }
});

test("what is left of a large card is bounded, except for its texts and its lorebook", async () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, { n }]));
  const book = { entries: [{ ...entry(1), ...many, extensions: many }, entry(2)], ...many };
  const json = { ...rich, ...many, data: { ...rich.data, ...many, extensions: many, character_book: book } };
  const { card, text } = await inChild.parse("a.json", bytes(json));
  expect(JSON.stringify(card).length).toBeLessThan(200_000);
  expect(JSON.parse(new TextDecoder().decode(text))).toEqual(parseCard(json));
});
