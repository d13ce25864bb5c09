import { expect, test } from "vitest";
import { type ReadBytes, readCard } from "../../../../services/characters/card/card_reader.ts";
import { parsePngCard } from "../../../../services/characters/png/png_card.ts";
import { cardChunk, END, header, pngOf, type RawChunk, sillyTavernCard } from "../../../helpers/files/cards.ts";

const CARD = cardChunk("chara", sillyTavernCard("Behind"));
const piece = (bytes: number, fill = 7): RawChunk => ["IDAT", new Uint8Array(bytes).fill(fill)];
const pieces = (count: number, bytes: number) => Array.from({ length: count }, () => piece(bytes));
/** Pixels that look like a chunk with a card but are inside another chunk. */
const decoy = new Uint8Array(pngOf(cardChunk("ccv3", sillyTavernCard("Decoy"))).subarray(8));

/** Reads bytes of a file in memory, and counts the reads. */
function readFrom(file: Uint8Array, counted = { reads: 0 }): ReadBytes {
  return (at, length) => {
    counted.reads++;
    return Promise.resolve(file.slice(at, at + length));
  };
}

async function nameRead(chunks: RawChunk[]): Promise<string> {
  const png = pngOf(header(64, 64), ...chunks, END);
  const { name } = (await readCard(readFrom(png), png.length, true)).data;
  expect(name).toBe(parsePngCard(png).data.name);
  return name;
}

test.each<[string, RawChunk[]]>([
  ["one chunk of pixels", pieces(1, 5000)],
  ["two", pieces(2, 5000)],
  ["seventeen, the last shorter", [...pieces(16, 3000), piece(11)]],
  ["a hundred, the first shorter", [piece(9), ...pieces(99, 300)]],
  ["some of every length", [...pieces(5, 900), ...pieces(4, 700), ...pieces(3, 20)]],
  ["empty ones", pieces(40, 0)],
  ["a text behind them that is longer than all", [...pieces(9, 200), ["tEXt", new Uint8Array(9000).fill(65)]]],
  ["bytes in them that look as a card", [["IDAT", decoy], ["IDAT", decoy], piece(3)]],
  ["chunks of the same length behind them", [...pieces(6, 64), ["eXIf", new Uint8Array(64)]]],
])("finds a card after %s as in the whole file", async (_, pixels) => {
  expect(await nameRead([...pixels, CARD])).toBe("Behind");
});

test("finds a card before the pixels, and reads little of a file with many chunks of pixels", async () => {
  expect(await nameRead([CARD, ...pieces(20, 1000)])).toBe("Behind");
  const counted = { reads: 0 };
  const png = pngOf(header(64, 64), ...pieces(200, 40_000), CARD, END);
  await readCard(readFrom(png, counted), png.length, true);
  expect(counted.reads).toBeLessThan(20);
});
