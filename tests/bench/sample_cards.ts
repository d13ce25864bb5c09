/** Card files for benchmarks, like SillyTavern's: the card follows the pixels. */
import { deflateSync } from "node:zlib";
import { cardChunk, END, header, pngOf, type RawChunk, sillyTavernCard } from "../helpers/files/cards.ts";

/** About 333 kB of pixels, in chunks like those of libraries. They are never decoded. */
const CHUNK_BYTES = 32 * 1024;
const CHUNKS = 10;
const [WIDTH_PX, HEIGHT_PX] = [1024, 1536];

const noise = crypto.getRandomValues(new Uint8Array(CHUNK_BYTES));

/** Writes `count` card files into a folder. @param chunks Of 32 KiB each; a few make small files. */
export async function writeCards(folder: string, count: number, chunks = CHUNKS): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (let n = 0; n < count; n++) {
    const told = `${"Somebody who has seen much and tells of it gladly. ".repeat(40)}${n}`;
    await Deno.writeFile(`${folder}/card-${n}.png`, cardFile(`Character ${n}`, told, chunks));
  }
}

/** Makes one card file. @param chunks Of 32 KiB each. */
export function cardFile(name: string, description: string, chunks = CHUNKS): Uint8Array<ArrayBuffer> {
  const pixels = Array.from({ length: chunks }, (): RawChunk => ["IDAT", noise]);
  const card = sillyTavernCard(name);
  card.data.description = description;
  const v3 = { ...card, spec: "chara_card_v3", spec_version: "3.0" };
  return pngOf(header(512, 768), ...pixels, cardChunk("chara", card), cardChunk("ccv3", v3), END);
}

/** Returns a card with an image of 1024×1536 pixels that compresses like a painting. */
export function samplePortrait(): Uint8Array {
  const rows = new Uint8Array((WIDTH_PX * 3 + 1) * HEIGHT_PX);
  const grain = crypto.getRandomValues(new Uint8Array(65_536));
  for (let y = 0; y < HEIGHT_PX; y++) {
    const begin = y * (WIDTH_PX * 3 + 1);
    rows[begin] = 1; // Each pixel is stored as the difference from the previous one.
    for (let i = 0; i < WIDTH_PX * 3; i++) rows[begin + 1 + i] = (grain[(begin + i) & 0xffff]! & 7) - 3;
  }
  const card = { ...sillyTavernCard("Portrait"), spec: "chara_card_v3", spec_version: "3.0" };
  return pngOf(header(WIDTH_PX, HEIGHT_PX), ["IDAT", deflateSync(rows)], cardChunk("ccv3", card), END);
}
