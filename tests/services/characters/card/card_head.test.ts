import { expect, test } from "vitest";
import { readCardSync } from "../../../../services/characters/card/card_head.ts";
import { parsePngCard } from "../../../../services/characters/png/png_card.ts";
import { cardChunk, END, header, pngOf, type RawChunk, sillyTavernCard } from "../../../helpers/files/cards.ts";

const CARD = cardChunk("chara", sillyTavernCard("Behind"));
const piece = (bytes: number, fill = 7): RawChunk => ["IDAT", new Uint8Array(bytes).fill(fill)];
const pieces = (count: number, bytes: number) => Array.from({ length: count }, () => piece(bytes));
/** Pixels that look like a chunk with a card but are inside another chunk. */
const decoy = new Uint8Array(pngOf(cardChunk("ccv3", sillyTavernCard("Decoy"))).subarray(8));

async function nameRead(chunks: RawChunk[]): Promise<string> {
  const path = await Deno.makeTempFile({ suffix: ".png" });
  try {
    const png = pngOf(header(64, 64), ...chunks, END);
    await Deno.writeFile(path, png);
    const { name } = readCardSync(path, png.length).data;
    expect(name).toBe(parsePngCard(png).data.name);
    return name;
  } finally {
    await Deno.remove(path);
  }
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
  const reads = await readsOf([...pieces(200, 40_000), CARD]);
  expect(reads).toBeLessThan(20);
});

/** Returns how often a file is read during the search for its card. */
async function readsOf(chunks: RawChunk[]): Promise<number> {
  let count = 0;
  const { readSync } = Deno.FsFile.prototype;
  Deno.FsFile.prototype.readSync = function (buffer) {
    count++;
    return readSync.call(this, buffer);
  };
  try {
    await nameRead(chunks);
  } finally {
    Deno.FsFile.prototype.readSync = readSync;
  }
  return count;
}
