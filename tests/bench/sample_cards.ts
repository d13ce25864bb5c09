/** Card files for benchmarks: as SillyTavern leaves them, card behind the pixels. */
import { cardChunk, END, header, pngOf, type RawChunk, sillyTavernCard } from "../helpers/cards.ts";

/** Some 333 kB of pixels, in chunks as libraries write them. They are never decoded. */
const CHUNK_BYTES = 32 * 1024;
const CHUNKS = 10;

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
