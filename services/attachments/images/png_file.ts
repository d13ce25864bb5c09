/** Prepares PNG files for the decoder, and encodes new ones. */
import { Buffer } from "node:buffer";
import { crc32, deflateSync } from "node:zlib";
import { ImageError, isOpaque, type Raster } from "./raster.ts";

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/** Maximum number of chunks, as for cards. */
const MAX_CHUNKS = 10_000;

/** Chunks needed for decoding. All others (text, profiles, times) are removed, so that no decoder inflates them. */
const PICTURE_CHUNKS = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"];

/**
 * Returns a PNG with only the chunks needed for decoding, after checking its structure.
 *
 * @param bytes A file recognized as PNG.
 * @throws {ImageError} for a truncated chunk, a wrong CRC, or missing or misplaced chunks
 */
export function keepPixelChunks(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kept: Uint8Array[] = [SIGNATURE];
  const seen: string[] = [];
  let chunkCount = 0;
  for (let at = SIGNATURE.length; seen.at(-1) !== "IEND";) {
    if (++chunkCount > MAX_CHUNKS) throw new ImageError(`more than ${MAX_CHUNKS} chunks`);
    if (at + 12 > bytes.length) throw new ImageError("the file ends before its IEND chunk");
    const end = at + 12 + view.getUint32(at);
    const type = Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, 4).toString("latin1");
    if (end > bytes.length) throw new ImageError(`the chunk at byte ${at} is longer than the file`);
    if (PICTURE_CHUNKS.includes(type)) {
      if (crc32(bytes.subarray(at + 4, end - 4)) !== view.getUint32(end - 4)) {
        throw new ImageError(`the check sum of the ${type} chunk at byte ${at} is wrong`);
      }
      checkOrder(type, seen);
      seen.push(type);
      kept.push(bytes.subarray(at, end));
    } else if (type[0] === type[0]!.toUpperCase()) {
      throw new ImageError("it needs a chunk of an unknown kind"); // https://www.w3.org/TR/png-3/#5Chunk-naming-conventions
    }
    at = end;
  }
  if (!seen.includes("IDAT")) throw new ImageError("it has no IDAT chunk");
  if (bytes[25] === 3 && !seen.includes("PLTE")) throw new ImageError("its palette is missing");
  return Buffer.concat(kept);
}

/** @see https://www.w3.org/TR/png-3/#5ChunkOrdering */
function checkOrder(type: string, seen: string[]): void {
  const isMisplaced = type === "IHDR" ? seen.length > 0 : seen[0] !== "IHDR" ||
    (type === "PLTE" && seen.length > 1) ||
    (type === "tRNS" && (seen.includes("tRNS") || seen.includes("IDAT")));
  if (isMisplaced) throw new ImageError(`a ${type} chunk is in the wrong place`);
}

/** Higher levels take several times as long and save a few percent. */
const DEFLATE_LEVEL = 6;

/** Encodes an image as PNG, without alpha if it's opaque. */
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

/** Filters that pay off: None suits palettes, Average hardly ever wins. @see https://www.w3.org/TR/png-3/#9Filters */
const FILTERS = [1, 2, 4];

/**
 * Chooses the filter with the smallest sum of differences for each row. @see
 * https://www.w3.org/TR/png-3/#12Filter-selection
 */
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

/** Filters a row into `out`. @returns The sum of absolute values. */
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
