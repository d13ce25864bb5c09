import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { parseCard } from "../../../../services/characters/card/card.ts";
import { embedCard, parsePngCard, removeCard } from "../../../../services/characters/png/png_card.ts";
import {
  cardChunk,
  cardUnder,
  chunksOf,
  deflatedChunk,
  END,
  header,
  internationalChunk,
  pixels,
  plainPng,
  pngOf,
  type RawChunk,
  rawChunk,
  SIGNATURE,
  sillyTavernCard,
  sillyTavernPng,
  sillyTavernReads,
} from "../../../helpers/files/cards.ts";

const picture = [header(2, 2), pixels(2, 2)] as const;
const v1 = { name: "Vé 日本 🦊 $&", description: "d", personality: "", scenario: "", first_mes: "hi", mes_example: "" };
const v2 = { spec: "chara_card_v2", spec_version: "2.0", data: { ...v1, name: "Two" } };
const v3 = { spec: "chara_card_v3", spec_version: "3.0", data: { ...v1, name: "Three" } };
const base64 = (card: unknown) => Buffer.from(JSON.stringify(card)).toString("base64");
const latin1 = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
const nameIn = (...chunks: RawChunk[]) => parsePngCard(pngOf(...chunks)).data.name;

describe("a card is found", () => {
  test.each<[string, RawChunk[], string]>([
    ["behind the pixels, V1", [...picture, cardChunk("chara", v1), END], v1.name],
    ["before the pixels, V2", [picture[0], cardChunk("chara", v2), picture[1], END], "Two"],
    ["as V3 alone", [...picture, cardChunk("ccv3", v3), END], "Three"],
    [
      "with ccv3 before chara, whatever comes first",
      [...picture, cardChunk("chara", v2), cardChunk("ccv3", v3), END],
      "Three",
    ],
    ["in the first of two chara", [...picture, cardChunk("chara", v2), cardChunk("chara", v3), END], "Two"],
    [
      "in chara where ccv3 cannot be read",
      [...picture, ["tEXt", latin1("ccv3\0!!!")], cardChunk("chara", v2), END],
      "Two",
    ],
    ["under a keyword in another case", [...picture, cardChunk("Chara", v2), END], "Two"],
    ["under the keyword one site uses", [...picture, cardChunk("chara_card_v3", v3), END], "Three"],
    ["deflated", [...picture, deflatedChunk("chara", base64(v2)), END], "Two"],
    ["as international text in base64", [...picture, internationalChunk("ccv3", base64(v3), false), END], "Three"],
    ["as international text, raw and deflated", [
      ...picture,
      internationalChunk("chara", JSON.stringify(v1), true),
      END,
    ], v1.name],
    ["in base64 with line breaks and without padding", [
      ...picture,
      ["tEXt", latin1(`chara\0${base64(v2).replace(/=+$/, "").replace(/(.{40})/g, "$1\r\n")}`)],
      END,
    ], "Two"],
    ["behind a byte-order mark", [
      ...picture,
      ["tEXt", latin1(`chara\0${Buffer.from(`\uFEFF${JSON.stringify(v2)}`).toString("base64")}`)],
      END,
    ], "Two"],
    ["in the base64 of page addresses", [
      ...picture,
      ["tEXt", latin1(`chara\0${Buffer.from(JSON.stringify({ ...v2, x: "ÿþ??>>~~" })).toString("base64url")}`)],
      END,
    ], "Two"],
    ["raw in Latin-1, as PNG asks for", [
      ...picture,
      ["tEXt", latin1(`chara\0${JSON.stringify({ ...v2, data: { ...v2.data, name: "Zwö" } })}`)],
      END,
    ], "Zwö"],
    ["as V3 under chara, trusting what it says of itself", [...picture, cardChunk("chara", v3), END], "Three"],
  ])("%s", { tags: ["P06"] }, (_, chunks, name) => {
    expect(nameIn(...chunks)).toBe(name);
  });

  test("next to an unknown chunk with a wrong checksum, and without the data after the end", () => {
    const wrong = rawChunk(cardChunk("ccv3", v3), 1);
    const bytes = Buffer.concat([
      pngOf(...picture),
      wrong,
      rawChunk(cardChunk("chara", v2)),
      rawChunk(END),
      latin1("<html>behind</html>"),
    ]);
    const png = new Uint8Array(bytes);
    expect(parsePngCard(png).data.name).toBe("Two");
    expect(Buffer.from(embedCard(png, parseCard(v2))).toString("latin1")).not.toContain("behind");
  });
});

test("a card with a wrong checksum is rejected, with this reason", () => {
  const wrong = Buffer.concat([pngOf(...picture), rawChunk(cardChunk("chara", v2), 1), rawChunk(END)]);
  expect(() => parsePngCard(new Uint8Array(wrong))).toThrow(/checksum of its chunk is wrong/);
});

describe("a PNG is rejected before memory is allocated for it", { tags: ["P05"] }, () => {
  const bytes = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat([SIGNATURE, ...parts]));
  const length = (value: number) => {
    const head = rawChunk(picture[1]);
    new DataView(head.buffer).setUint32(0, value);
    return head;
  };
  const ihdr = (change: (data: Uint8Array) => void) => {
    const [type, data] = header(2, 2);
    change(data);
    return rawChunk([type, data]);
  };
  const [head, idat, end, card] = [header(2, 2), pixels(2, 2), END, cardChunk("chara", v2)].map((c) => rawChunk(c));
  test.each<[string, Uint8Array]>([
    ["a length beyond the file", bytes(head!, length(100_000), end!)],
    ["a length of 2^32 - 1", bytes(head!, length(0xffffffff), end!)],
    ["a wrong check sum of the pixels", bytes(head!, rawChunk(pixels(2, 2), 7), card!, end!)],
    ["no IEND", bytes(head!, card!, idat!)],
    ["a cut", bytes(head!, card!, idat!, end!.subarray(0, 5))],
    ["no IDAT", bytes(head!, card!, end!)],
    ["scattered IDAT", bytes(head!, idat!, card!, idat!, end!)],
    ["no IHDR", bytes(card!, idat!, end!)],
    ["two IHDR", bytes(head!, head!, card!, idat!, end!)],
    ["0 × 0", bytes(rawChunk(header(0, 0)), card!, idat!, end!)],
    ["2^31 pixels wide", bytes(rawChunk(header(2 ** 31, 1)), card!, idat!, end!)],
    ["100,000 × 100,000", bytes(rawChunk(header(100_000, 100_000)), card!, idat!, end!)],
    ["30,000 × 30,000 of one colour", bytes(rawChunk(header(30_000, 30_000)), card!, idat!, end!)],
    ["a colour type that is none", bytes(ihdr((data) => data[9] = 5), card!, idat!, end!)],
    ["a depth its colour type has not", bytes(ihdr((data) => data[8] = 4), card!, idat!, end!)],
    ["a filter method that is none", bytes(ihdr((data) => data[11] = 1), card!, idat!, end!)],
    ["palette colours without a palette", bytes(ihdr((data) => data[9] = 3), card!, idat!, end!)],
    ["a palette of four bytes", bytes(head!, rawChunk(["PLTE", new Uint8Array(4)]), card!, idat!, end!)],
    ["a palette behind the pixels", bytes(head!, idat!, rawChunk(["PLTE", new Uint8Array(3)]), card!, end!)],
    ["a chunk whose name is no name", bytes(head!, rawChunk(["a\0b!", new Uint8Array(1)]), card!, idat!, end!)],
  ])("%s", (_, png) => {
    expect(() => parsePngCard(png)).toThrow(expect.objectContaining({ code: "unprocessable" }));
  });
});

describe("text chunks", { tags: ["P06"] }, () => {
  test("inflates a compressed text of a gigabyte only up to the limit", () => {
    const bomb = deflateSync(new Uint8Array(1024 * 1024 * 1024), { level: 9 });
    expect(bomb.length).toBeLessThan(1.1 * 1024 * 1024);
    const before = Deno.memoryUsage().rss;
    for (const chunk of ["zTXt", "iTXt"]) {
      const head = chunk === "zTXt" ? "chara\0\0" : "chara\0\x01\0\0\0";
      const png = pngOf(...picture, [chunk, new Uint8Array(Buffer.concat([latin1(head), bomb]))], END);
      expect(() => parsePngCard(png)).toThrow(expect.objectContaining({ code: "too_large" }));
    }
    expect(Deno.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  test("tries only a few of a hundred such chunks", () => {
    const bomb = deflatedChunk("chara", "A".repeat(30 * 1024 * 1024));
    const chunks = Array.from({ length: 100 }, () => bomb);
    expect(() => nameIn(...picture, ...chunks, END)).toThrow(expect.objectContaining({ code: "too_large" }));
    expect(() => nameIn(...picture, ...chunks, cardChunk("chara", v2), END)).toThrow();
    expect(nameIn(...picture, ...chunks, cardChunk("ccv3", v3), END)).toBe("Three");
  });

  test("rejects a file with 100,000 chunks", () => {
    const chunks = Array.from({ length: 100_000 }, (): RawChunk => ["tEXt", latin1("a\0b")]);
    const png = pngOf(...picture, ...chunks, cardChunk("chara", v2), END);
    expect(() => parsePngCard(png)).toThrow(
      expect.objectContaining({ code: "unprocessable", message: expect.stringContaining("10000 chunks") }),
    );
  });

  test.each<[string, RawChunk]>([
    ["bad base64", ["tEXt", latin1("chara\0e30*")]],
    ["bad UTF-8", ["tEXt", latin1(`chara\0${Buffer.from('{"name":"\xff\xfe"}', "latin1").toString("base64")}`)]],
    ["no JSON", ["tEXt", latin1(`chara\0${Buffer.from("{name:").toString("base64")}`)]],
    ["no text", ["tEXt", latin1("chara\0")]],
    ["a damaged deflate stream", ["zTXt", latin1("chara\0\0nonsense")]],
    ["an international text without its fields", ["iTXt", latin1("chara\0\0")]],
    ["a card's word as another chunk's text", ["tEXt", latin1(`note\0chara\0${base64(v2)}`)]],
  ])("rejects %s", (_, chunk) => {
    expect(() => nameIn(...picture, chunk, END)).toThrow(expect.objectContaining({ code: "unprocessable" }));
  });
});

test("an edit of a SillyTavern card changes only the name: all other chunks are identical byte for byte", () => {
  const original = sillyTavernCard("Fox");
  const png = sillyTavernPng(original);
  const card = parsePngCard(png);
  card.data.name = "Vixen 狐";
  const edited = embedCard(png, parseCard(card));

  const others = (file: Uint8Array) =>
    chunksOf(file).filter(({ text }) => !/^(chara|ccv3)\0/.test(text)).map(({ bytes }) =>
      Buffer.from(bytes).toString("hex")
    );
  expect(others(edited)).toEqual(others(png));
  expect(chunksOf(edited).map(({ type }) => type)).toEqual(
    ["IHDR", "tEXt", "tEXt", "iCCP", "acTL", "tEXt", "IDAT", "IDAT", "IEND"],
  );
  const before = sillyTavernReads(png);
  before.name = before.data.name = "Vixen 狐";
  expect(JSON.stringify(sillyTavernReads(edited))).toBe(JSON.stringify(before));
});

test("writes both versions from the same card, so that V2 readers get valid V2", () => {
  const received = sillyTavernCard("Fox");
  const card = parseCard({ ...received, spec: "chara_card_v3", spec_version: "3.0" });
  card.data.nickname = "Foxy";
  card.data.assets = [{ type: "icon", uri: "ccdefault:", name: "main", ext: "png" }];
  card.data.character_book!.entries[0]!.content = "@@depth 4\n@@@scan_depth 2\nFoxes are red.\n@@end";
  const png = embedCard(plainPng(), card);
  expect(cardUnder(png, "ccv3")).toEqual(card);
  const chara = cardUnder(png, "chara");
  expect(chara).toMatchObject({
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: { name: "Fox", extensions: card.data.extensions },
  });
  expect(Object.keys(chara.data)).not.toContain("assets");
  expect(Object.keys(chara.data)).not.toContain("nickname");
  expect(chara.data.character_book.entries[0].content).toBe("Foxes are red.\n@@end");
  expect(chara.data.character_book.extensions).toEqual({});
  expect(cardUnder(embedCard(png, card, { versions: "v2" }), "ccv3")).toBeUndefined();
});

test("writing a card removes old copies in any spelling and compression", () => {
  const png = pngOf(
    header(2, 2),
    cardChunk("Chara", v2),
    deflatedChunk("chara", base64(v1)),
    pixels(2, 2),
    internationalChunk("CCV3", base64(v3), true),
    END,
  );
  const written = embedCard(png, parseCard({ ...v2, data: { ...v2.data, name: "New" } }));
  expect(chunksOf(written).map(({ type }) => type)).toEqual(["IHDR", "tEXt", "tEXt", "IDAT", "IEND"]);
  expect(sillyTavernReads(written).data.name).toBe("New");
  expect(chunksOf(removeCard(written)).map(({ type }) => type)).toEqual(["IHDR", "IDAT", "IEND"]);
});

test("chunks match the reference values", () => {
  const hex = (chunk: Uint8Array) => Buffer.from(chunk).toString("hex");
  expect(hex(rawChunk(["tEXt", latin1("chara\0e30=")])).slice(-8)).toBe("22d86daf");
  const written = embedCard(plainPng(), parseCard({ name: "A" }));
  for (const { type, bytes } of chunksOf(written)) {
    expect(hex(bytes)).toBe(hex(rawChunk([type, bytes.slice(8, -4)])));
  }
});
