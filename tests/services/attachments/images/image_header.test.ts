import { expect, test } from "vitest";
import { sniffImage } from "../../../../services/attachments/images/image_header.ts";
import { animatedWebp, fixtureImage, jpegHeader, makeGif } from "../../../helpers/files/image_files.ts";
import { makeRgbaPng, pngChunk, pngFile, pngHeader } from "../../../helpers/files/png_files.ts";

const RGBA = { colourType: 6, bitDepth: 8 } as const;
const still = fixtureImage("quarters_lossy.webp");

test.each([
  ["PNG", makeRgbaPng(5, 7, () => [1, 2, 3, 4]), "image/png", 5, 7],
  ["JPEG", fixtureImage("quarters.jpg"), "image/jpeg", 48, 32],
  ["extended WebP", still, "image/webp", 48, 32],
  [
    "moving WebP",
    animatedWebp(still, { width: 99, height: 60 }, { x: 0, y: 0, width: 48, height: 32 }),
    "image/webp",
    99,
    60,
  ],
  ["GIF", makeGif({ width: 9, height: 300 }, { width: 1, height: 1 }), "image/gif", 9, 300],
  ["a JPEG's header alone", jpegHeader(65500, 3), "image/jpeg", 65500, 3],
])("recognizes %s and its size", (_name, bytes, type, widthPx, heightPx) => {
  expect(sniffImage(bytes)).toEqual({ type, widthPx, heightPx });
});

test.each([
  ["lossy", "VP8 "],
  ["lossless", "VP8L"],
])("recognizes a simple %s WebP", (_name, type) => {
  const name = type === "VP8 " ? "quarters_plain.webp" : "quarters_lossless.webp";
  const file = fixtureImage(name);
  const at = new TextDecoder("latin1").decode(file).indexOf(type);
  const simple = Uint8Array.from([...file.subarray(0, 12), ...file.subarray(at)]);
  expect(sniffImage(simple)).toEqual({ type: "image/webp", widthPx: 48, heightPx: 32 });
});

test.each([
  ["SVG", '<svg xmlns="http://www.w3.org/2000/svg"/>'.padEnd(40)],
  ["HTML", "<!doctype html><script>alert(1)</script>"],
  ["PDF", "%PDF-1.7 ".padEnd(40, "x")],
  ["a GIF's name alone", "GIF89a"],
  ["a WAVE file", "RIFF\x24\0\0\0WAVEfmt ".padEnd(44, "\0")],
  ["nothing", ""],
])("rejects %s", { tags: ["P08"] }, (_name, text) => {
  expect(sniffImage(new TextEncoder().encode(text))).toBeUndefined();
});

test.each([
  ["2^31 pixels wide", 2 ** 31, 1, RGBA],
  ["2^32 - 1 pixels high", 1, 2 ** 32 - 1, RGBA],
  ["no pixel wide", 0, 1, RGBA],
  ["of three bits a sample", 1, 1, { colourType: 6, bitDepth: 3 } as never],
  ["of sixteen bits a palette index", 1, 1, { colourType: 3, bitDepth: 16 } as const],
  ["of an unknown colour type", 1, 1, { colourType: 5, bitDepth: 8 } as never],
])("rejects a PNG %s", { tags: ["P05"] }, (_name, width, height, layout) => {
  expect(sniffImage(pngFile(pngChunk("IHDR", pngHeader(width, height, layout)), pngChunk("IEND")))).toBeUndefined();
});

test("never throws for a truncated image", () => {
  for (const file of [fixtureImage("quarters.jpg"), still, makeRgbaPng(2, 2, () => [0, 0, 0, 0])]) {
    for (let length = 0; length < file.length; length++) {
      const facts = sniffImage(file.subarray(0, length));
      if (facts !== undefined) expect(facts).toEqual(sniffImage(file));
    }
  }
});
