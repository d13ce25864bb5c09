/** PNG around the pixels: what of a file may reach the decoder, and how a new file is written. */
import { Buffer } from "node:buffer";
import { crc32, deflateSync } from "node:zlib";
import { ImageFault, isOpaque, type Raster } from "./raster.ts";

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/** Maximum number of chunks, as for cards. */
const MAX_CHUNKS = 10_000;

/** Chunks the pixels depend on. All others (texts, profiles, times) are left out: no decoder has to inflate them. */
const PICTURE_CHUNKS = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"];

/**
 * Gives a PNG file of which only the picture is left, after its structure was found whole.
 *
 * @param bytes A file whose header was sniffed as PNG.
 * @throws {ImageFault} for a chunk beyond the file, a wrong check sum, chunks missing or in the wrong order.
 */
export function pictureOf(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kept: Uint8Array[] = [SIGNATURE];
  const seen: string[] = [];
  let chunkCount = 0;
  for (let at = SIGNATURE.length; seen.at(-1) !== "IEND";) {
    if (++chunkCount > MAX_CHUNKS) throw new ImageFault(`more than ${MAX_CHUNKS} chunks`);
    if (at + 12 > bytes.length) throw new ImageFault("the file ends before its IEND chunk");
    const end = at + 12 + view.getUint32(at);
    const type = Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, 4).toString("latin1");
    if (end > bytes.length) throw new ImageFault(`the chunk at byte ${at} is longer than the file`);
    if (PICTURE_CHUNKS.includes(type)) {
      if (crc32(bytes.subarray(at + 4, end - 4)) !== view.getUint32(end - 4)) {
        throw new ImageFault(`the check sum of the ${type} chunk at byte ${at} is wrong`);
      }
      checkOrder(type, seen);
      seen.push(type);
      kept.push(bytes.subarray(at, end));
    } else if (type[0] === type[0]!.toUpperCase()) {
      throw new ImageFault("it needs a chunk of an unknown kind"); // PNG specification, section 5.4
    }
    at = end;
  }
  if (!seen.includes("IDAT")) throw new ImageFault("it has no IDAT chunk");
  if (bytes[25] === 3 && !seen.includes("PLTE")) throw new ImageFault("its palette is missing");
  return Buffer.concat(kept);
}

/** PNG specification, section 5.6 */
function checkOrder(type: string, seen: string[]): void {
  const isMisplaced = type === "IHDR" ? seen.length > 0 : seen[0] !== "IHDR" ||
    (type === "PLTE" && seen.length > 1) ||
    (type === "tRNS" && (seen.includes("tRNS") || seen.includes("IDAT")));
  if (isMisplaced) throw new ImageFault(`a ${type} chunk stands in the wrong place`);
}

/** Effort of the compression: higher ones take several times as long for a few percent. */
const DEFLATE_LEVEL = 6;

/** Writes a picture as PNG file, without an alpha channel where nothing is transparent. */
export function encodePng(raster: Raster): Uint8Array<ArrayBuffer> {
  const channels = isOpaque(raster) ? 3 : 4;
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, raster.width);
  header.setUint32(4, raster.height);
  header.setUint8(8, 8);
  header.setUint8(9, channels === 3 ? 2 : 6);
  return Uint8Array.from(Buffer.concat([
    SIGNATURE,
    chunk("IHDR", new Uint8Array(header.buffer)),
    chunk("IDAT", deflateSync(filterRows(raster, channels), { level: DEFLATE_LEVEL })),
    chunk("IEND", new Uint8Array()),
  ]));
}

function chunk(type: string, body: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(12 + body.length);
  bytes.writeUInt32BE(body.length);
  bytes.write(type, 4, "latin1");
  bytes.set(body, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), bytes.length - 4);
  return bytes;
}

/** Filters that pay: none is for palettes, average hardly ever wins. PNG specification, section 9.2 */
const FILTERS = [1, 2, 4];

/** Puts before each row the filter that leaves the smallest sum of differences, as PNG's specification advises (12.7). */
function filterRows({ width, height, pixels }: Raster, channels: 3 | 4): Uint8Array {
  const length = width * channels;
  const filtered = new Uint8Array(height * (length + 1));
  let above = new Uint8Array(length);
  let row = new Uint8Array(length);
  let best = new Uint8Array(length);
  let tried = new Uint8Array(length);
  for (let y = 0; y < height; y++) {
    const start = y * width * 4;
    for (let x = 0, to = 0; x < width; x++) {
      for (let channel = 0; channel < channels; channel++) row[to++] = pixels[start + x * 4 + channel]!;
    }
    let bestSum = Infinity;
    let bestFilter = 0;
    for (const filter of FILTERS) {
      const sum = filterRow(filter, row, above, channels, tried);
      if (sum >= bestSum) continue;
      [bestSum, bestFilter] = [sum, filter];
      [best, tried] = [tried, best];
    }
    filtered[y * (length + 1)] = bestFilter;
    filtered.set(best, y * (length + 1) + 1);
    [above, row] = [row, above];
  }
  return filtered;
}

/** Fills `out`; gives the sum of its values, taken as signed. */
function filterRow(filter: number, row: Uint8Array, above: Uint8Array, channels: number, out: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < row.length; i++) {
    const left = i < channels ? 0 : row[i - channels]!;
    const guess = filter === 1 ? left : filter === 2 ? above[i]! : paeth(left, above[i]!, i, above, channels);
    const value = row[i]! - guess & 255;
    out[i] = value;
    sum += value < 128 ? value : 256 - value;
  }
  return sum;
}

function paeth(left: number, up: number, i: number, above: Uint8Array, channels: number): number {
  const corner = i < channels ? 0 : above[i - channels]!;
  const toLeft = Math.abs(up - corner);
  const toUp = Math.abs(left - corner);
  const toCorner = Math.abs(left + up - 2 * corner);
  return toLeft <= toUp && toLeft <= toCorner ? left : toUp <= toCorner ? up : corner;
}
