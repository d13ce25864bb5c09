/** Makes PNG files of any color type, depth and fault, written from the PNG specification and apart from the product's own code. */
import { crc32, deflateSync, inflateSync } from "node:zlib";
import { joined } from "../app/joined.ts";

/** How the samples of a pixel lie in the file. PNG specification, section 11.2.2 */
export interface PngLayout {
  colourType: 0 | 2 | 3 | 4 | 6;
  bitDepth: 1 | 2 | 4 | 8 | 16;
  isInterlaced?: boolean;
}

/** One file to make. */
export interface PngSource extends PngLayout {
  width: number;
  height: number;
  /** Samples of one pixel, each within the depth; palette indices for color type 3. */
  samplesAt(x: number, y: number): number[];
  /** RGB triples, for color type 3. */
  palette?: number[][];
  /** Body of a tRNS chunk. */
  transparency?: number[];
  /** Further chunks before IDAT. */
  before?: Uint8Array[];
  /** Filter type of all rows (0 to 4); by default it alternates. */
  filter?: number;
}

/** First eight bytes of every PNG file. */
export const PNG_SIGNATURE = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10);

const ADAM7 = [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];
const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** One chunk with its length and check sum. */
export function pngChunk(type: string, body: Uint8Array = new Uint8Array()): Uint8Array {
  const chunk = new Uint8Array(12 + body.length);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, body.length);
  chunk.set(new TextEncoder().encode(type), 4);
  chunk.set(body, 8);
  view.setUint32(8 + body.length, crc32(chunk.subarray(4, 8 + body.length)));
  return chunk;
}

/** The body of an IHDR chunk. */
export function pngHeader(width: number, height: number, layout: PngLayout): Uint8Array {
  const body = new Uint8Array(13);
  const view = new DataView(body.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  body.set([layout.bitDepth, layout.colourType, 0, 0, layout.isInterlaced ? 1 : 0], 8);
  return body;
}

/** Joins signature and chunks. */
export function pngFile(...chunks: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return joined([PNG_SIGNATURE, ...chunks]);
}

/** Writes a whole file. */
export function makePng(source: PngSource): Uint8Array<ArrayBuffer> {
  const passes = source.isInterlaced ? ADAM7 : [[0, 0, 1, 1]];
  const rows = passes.flatMap(([x0, y0, dx, dy]) => passRows(source, x0!, y0!, dx!, dy!));
  return pngFile(
    pngChunk("IHDR", pngHeader(source.width, source.height, source)),
    ...source.before ?? [],
    ...source.palette ? [pngChunk("PLTE", Uint8Array.from(source.palette.flat()))] : [],
    ...source.transparency ? [pngChunk("tRNS", Uint8Array.from(source.transparency))] : [],
    pngChunk("IDAT", deflateSync(joined(rows))),
    pngChunk("IEND"),
  );
}

/** An image of eight bits a channel. */
export function makeRgbaPng(width: number, height: number, samplesAt: PngSource["samplesAt"]): Uint8Array<ArrayBuffer> {
  return makePng({ width, height, colourType: 6, bitDepth: 8, samplesAt });
}

/** Pixels of a file, four bytes each. */
export interface PngPixels {
  width: number;
  height: number;
  pixels: Uint8Array;
}

/** Reads a file of eight bits a channel, RGB or RGBA, not interlaced: what the product writes. */
export function readPng(file: Uint8Array): PngPixels {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const [width, height, channels] = [view.getUint32(16), view.getUint32(20), file[25] === 6 ? 4 : 3];
  const parts: Uint8Array[] = [];
  for (let at = 8; at < file.length; at += 12 + view.getUint32(at)) {
    const body = file.subarray(at + 8, at + 8 + view.getUint32(at));
    if (new TextDecoder().decode(file.subarray(at + 4, at + 8)) === "IDAT") parts.push(body);
  }
  const data = inflateSync(joined(parts));
  const pixels = new Uint8Array(width * height * 4).fill(255);
  let above = new Uint8Array(width * channels);
  for (let y = 0; y < height; y++) {
    const start = y * (width * channels + 1);
    const row = new Uint8Array(width * channels);
    for (let i = 0; i < row.length; i++) {
      const guesses = guessesAt(i, row, above, channels);
      row[i] = data[start + 1 + i]! + guesses[data[start]!]!;
      pixels[(y * width + Math.floor(i / channels)) * 4 + i % channels] = row[i]!;
    }
    above = row;
  }
  return { width, height, pixels };
}

function passRows(source: PngSource, x0: number, y0: number, dx: number, dy: number): Uint8Array[] {
  const { width, height, bitDepth, colourType } = source;
  const columns = Math.ceil((width - x0) / dx);
  if (columns <= 0) return [];
  const pixelBytes = Math.max(1, CHANNELS[colourType] * bitDepth / 8);
  let above = new Uint8Array(Math.ceil(columns * CHANNELS[colourType] * bitDepth / 8));
  const rows: Uint8Array[] = [];
  for (let y = y0; y < height; y += dy) {
    const bits: number[] = [];
    for (let x = x0; x < width; x += dx) {
      for (const sample of source.samplesAt(x, y)) {
        for (let bit = bitDepth - 1; bit >= 0; bit--) bits.push(sample >> bit & 1);
      }
    }
    const raw = new Uint8Array(above.length);
    bits.forEach((bit, index) => raw[index >> 3]! |= bit << (7 - (index & 7)));
    rows.push(filtered(source.filter ?? rows.length % 5, raw, above, pixelBytes));
    above = raw;
  }
  return rows;
}

function filtered(type: number, raw: Uint8Array, above: Uint8Array, pixelBytes: number): Uint8Array {
  const row = new Uint8Array(raw.length + 1);
  row[0] = type;
  for (let i = 0; i < raw.length; i++) row[i + 1] = raw[i]! - guessesAt(i, raw, above, pixelBytes)[type]!;
  return row;
}

/** What each filter takes off a byte, by its number. PNG specification, section 9.2 */
function guessesAt(i: number, row: Uint8Array, above: Uint8Array, pixelBytes: number): number[] {
  const left = i < pixelBytes ? 0 : row[i - pixelBytes]!;
  const up = above[i]!;
  const corner = i < pixelBytes ? 0 : above[i - pixelBytes]!;
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  const paeth = a <= b && a <= c ? left : b <= c ? up : corner;
  return [0, left, up, (left + up) >> 1, paeth];
}
