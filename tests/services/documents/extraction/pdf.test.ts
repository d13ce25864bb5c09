import { afterAll, expect, test } from "vitest";
import { openImagePool } from "../../../../services/attachments/images/image_pool.ts";
import { encodePng } from "../../../../services/attachments/images/png.ts";
import type { Raster } from "../../../../services/attachments/images/raster.ts";
import { ExtractionFault } from "../../../../services/documents/extraction/extraction.ts";
import {
  extractPageImage,
  READER_LIMITS,
  type ReaderLimits,
} from "../../../../services/documents/extraction/extractor.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { type PngPixels, readPng } from "../../../helpers/files/png_files.ts";
import { dataUrl } from "../../../helpers/files/pictures.ts";
import { type PdfObjects, printPdf, writePdf } from "../../../helpers/files/document_files.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());
const pool = openImagePool(sandbox);
const MIB = 1024 * 1024;

async function read(bytes: Uint8Array<ArrayBuffer>, page = 1, limits: Partial<ReaderLimits> = {}): Promise<PngPixels> {
  const source = { name: "scan.pdf", contentType: "application/pdf", signal: new AbortController().signal };
  const content = ReadableStream.from([bytes]);
  const all = { ...READER_LIMITS, ...limits };
  const jpeg = await extractPageImage(sandbox, { ...source, content, sizeBytes: bytes.length }, page, all);
  return readPng(await pool.toPng(jpeg));
}

async function codeOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
    return "read";
  } catch (error) {
    if (error instanceof ExtractionFault) return error.code;
    throw error;
  }
}

/** Names the color at a place; coordinates are shares of the width and height. */
function colorAt({ width, height, pixels }: PngPixels, x: number, y: number): string {
  const at = (Math.floor(y * height) * width + Math.floor(x * width)) * 4;
  const bits = [0, 1, 2].map((channel) => pixels[at + channel]! > 200 ? 1 : pixels[at + channel]! < 55 ? 0 : "?");
  return { "100": "red", "010": "green", "001": "blue", "000": "black", "111": "white" }[bits.join("")] ??
    bits.join("");
}

/** Red and green at the top, blue and white at the bottom. */
function quarters(side: number): Raster {
  const pixels = new Uint8Array(side * side * 4);
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const isRight = x >= side / 2;
      const color = y < side / 2 ? isRight ? [0, 255, 0] : [255, 0, 0] : isRight ? [255, 255, 255] : [0, 0, 255];
      pixels.set([...color, 255], (y * side + x) * 4);
    }
  }
  return { width: side, height: side, pixels };
}

const QUARTERS = [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]] as const;
const colorsOf = (raster: PngPixels) => QUARTERS.map(([x, y]) => colorAt(raster, x, y));

/** Writes a page of 200 × 200 points without text. @param image Entries of the image's dictionary. */
function writeScan(image: string, hex: string, content = "q 200 0 0 200 0 0 cm /I Do Q"): Uint8Array<ArrayBuffer> {
  const change = (objects: PdfObjects) => ({
    ...objects,
    4: "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 5 0 R /Resources << /XObject << /I 6 0 R >> >> >>",
    5: `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    6: `<< /Type /XObject /Subtype /Image ${image} /Length ${hex.length + 1} >>\nstream\n${hex}>\nendstream`,
  });
  return writePdf(["x"], { change });
}
const toJpeg = (raster: Raster) => pool.toJpeg(encodePng(raster), { maxPx: 4000, quality: 95 });
const toHex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

test("returns the pages of a scan that a browser printed", async () => {
  const shown = async (side: number, type: "png" | "jpeg") => {
    const raster = quarters(side);
    const bytes = type === "png" ? encodePng(raster) : await toJpeg(raster);
    const url = dataUrl(bytes, `image/${type}`);
    return `<style>@page { margin: 0 } body { margin: 0 }</style><img src="${url}" style="width: 400px; height: 400px">`;
  };
  const pdf = await printPdf([await shown(300, "png"), await shown(3000, "jpeg")]);
  for (const page of [1, 2]) {
    const raster = await read(pdf, page);
    expect(Math.max(raster.width, raster.height)).toBeLessThanOrEqual(2048);
    // A5 has 559 × 794 pixels of CSS, and the image takes 400 of them.
    const at = (x: number, y: number) => colorAt(raster, x * 400 / 559, y * 400 / 794);
    expect(QUARTERS.map(([x, y]) => at(x, y)), `page ${page}`).toEqual(["red", "green", "blue", "white"]);
  }
});

test.each([
  [
    "one bit per pixel",
    "/Width 8 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /ASCIIHexDecode",
    "0FF0",
  ],
  ["a stencil", "/Width 8 /Height 2 /ImageMask true /BitsPerComponent 1 /Filter /ASCIIHexDecode", "0FF0"],
  ["gray", "/Width 2 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /ASCIIHexDecode", "00FFFF00"],
])("reads %s", async (_name, image, hex) => {
  expect(colorsOf(await read(writeScan(image, hex)))).toEqual(["black", "white", "white", "black"]);
});

test("places turned images and strips as the page does", async () => {
  const image = "/Width 2 /Height 2 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /ASCIIHexDecode";
  const pixels = "FF000000FF000000FFFFFFFF";
  expect(colorsOf(await read(writeScan(image, pixels)))).toEqual(["red", "green", "blue", "white"]);
  const turned = await read(writeScan(image, pixels, "q 0 200 -200 0 200 0 cm /I Do Q"));
  expect(colorsOf(turned)).toEqual(["green", "white", "red", "blue"]);
  const half = await read(writeScan(image, pixels, "q 200 0 0 100 0 0 cm /I Do Q"));
  expect(colorsOf(half).slice(0, 2)).toEqual(["white", "white"]);
  expect([colorAt(half, 0.25, 0.6), colorAt(half, 0.25, 0.9)]).toEqual(["red", "blue"]);
});

/** Counts the dark pixels of a part of a page; coordinates are shares of the width and height. */
function countDark({ width, height, pixels }: PngPixels, left: number, top: number, right: number, bottom: number) {
  let count = 0;
  for (let y = Math.floor(top * height); y < bottom * height; y++) {
    for (let x = Math.floor(left * width); x < right * width; x++) if (pixels[(y * width + x) * 4]! < 100) count++;
  }
  return count;
}

/** Writes a page of 200 × 200 points with content and annotations. */
function writeText(content: string, annotations: readonly string[] = []): Uint8Array<ArrayBuffer> {
  const numbers = annotations.map((_, n) => `${20 + n} 0 R`).join(" ");
  return writePdf(["x"], {
    change: (objects) => ({
      ...objects,
      1: `<< /Type /Catalog /Pages 2 0 R /AcroForm << /NeedAppearances true /Fields [${numbers}] /DA (/F1 12 Tf) /DR << /Font << /F1 3 0 R >> >> >> >>`,
      4: objects[4]!.replace(/\[0 0 \d+ \d+\]/, "[0 0 200 200]").replace(/>>$/, `/Annots [${numbers}] >>`),
      5: `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ...Object.fromEntries(annotations.map((one, n) => [20 + n, one])),
    }),
  });
}

test("draws the text of a page, its form and its stamps at their places, but not the invisible text of a scan", async () => {
  const stamp = "0 0 1 rg 0 0 50 20 re f BT 1 0 0 rg /F1 20 Tf 2 2 Td (III) Tj ET";
  const page = await read(writeText("BT /F1 24 Tf 10 160 Td (HHH) Tj 3 Tr 0 -60 Td (HHH) Tj ET", [
    "<< /Type /Annot /Subtype /Widget /FT /Tx /F 4 /T (name) /V (HHH) /DA (/F1 12 Tf) /Rect [100 40 190 60] >>",
    "<< /Type /Annot /Subtype /Stamp /F 4 /Rect [120 140 170 160] /AP << /N 30 0 R >> >>",
    ...Array.from({ length: 8 }, () => "null"),
    `<< /Type /XObject /Subtype /Form /BBox [0 0 50 20] /Resources << /Font << /F1 3 0 R >> >> /Length ${stamp.length} >>\n` +
    `stream\n${stamp}\nendstream`,
  ]));
  expect([page.width, page.height]).toEqual([400, 400]);
  expect(countDark(page, 0.05, 0.1, 0.35, 0.2)).toBeGreaterThan(200);
  expect(countDark(page, 0, 0.3, 0.5, 0.6)).toBe(0);
  expect(countDark(page, 0.5, 0.7, 0.95, 0.8)).toBeGreaterThan(50);
  const red = Array.from({ length: 400 * 400 }, (_, n) => n * 4)
    .filter((at) => page.pixels[at]! > 180 && page.pixels[at + 1]! < 80).map((at) => at / 4);
  expect(red.length).toBeGreaterThan(50);
  for (const at of red) {
    expect([at % 400 > 239 && at % 400 < 342, at > 78 * 400 && at < 122 * 400], `${at % 400}, ${at / 400}`).toEqual([
      true,
      true,
    ]);
  }
});

test("refuses pages without images and text and pages that don't exist", async () => {
  const pdf = writePdf([" "]);
  expect(await codeOf(read(pdf))).toBe("no_text");
  expect(await codeOf(read(pdf, 2))).toBe("unsupported");
});

test("never decodes an image with too many pixels", async () => {
  const raw = "/ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /ASCIIHexDecode";
  expect(await codeOf(read(writeScan(`/Width 100000 /Height 100000 ${raw}`, "00")))).toBe("no_text");
  // A JPEG whose own header claims more than the page says.
  const jpeg = await toJpeg(quarters(64));
  const frame = jpeg.findIndex((byte, at) => byte === 0xff && (jpeg[at + 1] === 0xc0 || jpeg[at + 1] === 0xc2));
  jpeg.set([0xff, 0xdc, 0xff, 0xdc], frame + 5);
  const dct = "/Width 64 /Height 64 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter [/ASCIIHexDecode /DCTDecode]";
  expect(await codeOf(read(writeScan(dct, toHex(jpeg)), 1, { memoryBytes: 256 * MIB, timeMs: 20_000 })))
    .toMatch(/^(no_text|damaged|too_large|timeout)$/);
});

test("rejects thousands of images, and reads deep nesting", async () => {
  const image = "/Width 2 /Height 2 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /ASCIIHexDecode";
  const many = "q 1 0 0 1 0 0 cm /I Do 200 0 0 200 0 0 cm Q /I Do ".repeat(2_000);
  expect(await codeOf(read(writeScan(image, "FF000000FF000000FFFFFFFF", many)))).toBe("too_large");
  const deep = `${"q 1 0 0 1 0 0 cm ".repeat(3_000)} 200 0 0 200 0 0 cm /I Do`;
  expect(await codeOf(read(writeScan(image, "FF000000FF000000FFFFFFFF", deep)))).toBe("read");
});
