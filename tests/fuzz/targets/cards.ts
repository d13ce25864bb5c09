/** Card files that are read in memory: PNG with its text chunks, JSON of every version, Exif of JPEG and WebP. */
import { Buffer } from "node:buffer";
import { type Card, parseCard, parseCardText, serializeCard, toV2 } from "../../../services/characters/card/card.ts";
import { parseCardBytes } from "../../../services/characters/card/card_file.ts";
import { toCardRow } from "../../../services/characters/card/card_head.ts";
import { embedCard, parsePngCard } from "../../../services/characters/png/png_card.ts";
import {
  cardChunk,
  deflatedChunk,
  END,
  exifComment,
  header,
  internationalChunk,
  jpegWithExif,
  pixels,
  plainPng,
  pngOf,
  type RawChunk,
  rawChunk,
  SIGNATURE,
  sillyTavernCard,
  sillyTavernPng,
  webpWithExif,
} from "../../helpers/files/cards.ts";
import { fixtureImage } from "../../helpers/files/image_files.ts";
import { joined, jsonText, mutateBytes, mutateJson } from "../mutations.ts";
import type { Random } from "../random.ts";
import { claimSame, nextStretch, target, unlessRefused } from "../target.ts";

const V2 = sillyTavernCard("Fox");
const V3 = {
  spec: "chara_card_v3",
  spec_version: "3.0",
  data: {
    ...V2.data,
    nickname: "Foxy",
    creation_date: 1_700_000_000,
    source: ["https://cards.example/fox"],
    creator_notes_multilingual: { de: "Notizen" },
    assets: [{ type: "icon", uri: "ccdefault:", name: "main", ext: "png" }],
  },
};
const V1 = { name: "Fox", description: "Red.", personality: "", scenario: "", first_mes: "Hi.", mes_example: "" };
const PYGMALION = { char_name: "Fox", char_persona: "Red.", char_greeting: "Hi.", world_scenario: "" };
/** SillyTavern's world info in place of a list of entries. */
const BOOK_BY_NUMBER = { ...V2, data: { ...V2.data, character_book: { entries: { 0: { key: "a,b", order: "7" } } } } };
const CARDS_OF_ALL_VERSIONS = [V1, V2, V3, PYGMALION, BOOK_BY_NUMBER];

const [JPEG, WEBP] = [fixtureImage("quarters.jpg"), fixtureImage("quarters_plain.webp")];
const PLAIN = plainPng();

function someJson(random: Random): string {
  const json = random.pick(CARDS_OF_ALL_VERSIONS);
  return jsonText(random, random.chance(0.9) ? mutateJson(random, json) : json);
}

function someTextChunk(random: Random): RawChunk {
  const keyword = random.pick(["chara", "ccv3", "CCV3", "chara_card_v3", "Software", ""]);
  const json = someJson(random);
  const text = random.chance(0.7) ? Buffer.from(json).toString("base64") : json;
  const way = random.below(4);
  if (way === 0) return deflatedChunk(keyword, text);
  if (way === 1) return internationalChunk(keyword, text, random.chance(0.5));
  if (way === 2) return ["tEXt", Buffer.from(`${keyword}\0${text}`, "latin1")];
  const [type, data] = cardChunk(keyword, random.pick(CARDS_OF_ALL_VERSIONS));
  return [random.pick([type, "zTXt", "iTXt"]), mutateBytes(random, data)];
}

function somePng(random: Random): Uint8Array {
  const chunks: RawChunk[] = [header(8, 12), pixels(8, 12), END];
  for (let count = random.size(6); count > 0; count--) {
    chunks.splice(random.below(chunks.length + 1), 0, someTextChunk(random));
  }
  // Check sums are right, so that what is behind them is reached.
  return joined(SIGNATURE, ...chunks.map((chunk) => rawChunk(chunk)));
}

function someExif(random: Random): Uint8Array {
  const text = random.chance(0.5) ? someJson(random) : [...Buffer.from(someJson(random).slice(0, 20_000))].join();
  const letters = random.pick(["ASCII\0\0\0", "UNICODE\0", "JIS\0\0\0\0\0", "\0\0\0\0\0\0\0\0", "odd"]);
  const comment = letters === "UNICODE\0" ? Uint8Array.from(Buffer.from(text, "utf16le")) : text;
  const exif = exifComment(comment, letters);
  const block = random.chance(0.5) ? mutateBytes(random, exif) : exif;
  return random.chance(0.5) ? jpegWithExif(JPEG, block.subarray(0, 65_000)) : webpWithExif(WEBP, block);
}

async function read(bytes: Uint8Array): Promise<void> {
  const file = unlessRefused(() => parseCardBytes(bytes));
  if (file === undefined) return;
  const { card } = file;
  await nextStretch();
  claimSame(parseCardText(serializeCard(card)), card, "A card changes when it is read again");
  await nextStretch();
  const png = embedCard(PLAIN, card);
  await nextStretch();
  const carried: Card = parsePngCard(png);
  await nextStretch();
  claimSame(carried, card, "A card changes in a PNG");
  parseCard(toV2(card));
  toCardRow({ id: "a", path: "/a.png", mtimeMs: 0, size: 0, isExternal: false }, card);
}

/** A JSON text of objects inside each other, as deep as it is long. */
const deep = (levels: number) => `${'{"data":'.repeat(levels)}1${"}".repeat(levels)}`;

export const CARDS = target<Uint8Array>({
  name: "cards",
  generate(random) {
    const way = random.next();
    if (way < 0.3) return Buffer.from(someJson(random));
    if (way < 0.35) return mutateBytes(random, Buffer.from(someJson(random)));
    if (way < 0.65) return somePng(random);
    if (way < 0.8) return mutateBytes(random, random.chance(0.5) ? sillyTavernPng(V2) : somePng(random));
    return random.chance(0.7) ? someExif(random) : mutateBytes(random, someExif(random));
  },
  run: read,
  cases: {
    "100,000 levels of JSON": () => Buffer.from(deep(100_000)),
    "100,000 open lists": () => Buffer.from(`{"name":${"[".repeat(100_000)}`),
    "1 MB of commas as tags": () => Buffer.from(JSON.stringify({ ...V1, tags: ",a".repeat(500_000) })),
    "1 MB of line breaks before a decorator": () =>
      Buffer.from(JSON.stringify({ ...V1, character_book: { entries: [{ content: "\n".repeat(1_000_000) + "@" }] } })),
    "2 MB of digits in an Exif comment": () => webpWithExif(WEBP, exifComment("1,".repeat(1_000_000))),
    "2 MB of commas in an Exif comment": () => webpWithExif(WEBP, exifComment(",".repeat(2_000_000))),
    "10,000 text chunks": () =>
      pngOf(header(8, 12), ...Array.from({ length: 9_990 }, () => cardChunk("chara", {})), pixels(8, 12), END),
    "10 MB in a deflated chunk": () => pngOf(header(8, 12), deflatedChunk("chara", " ".repeat(10_000_000)), END),
  },
});
