/**
 * Reads, checks and writes PNG files: chunks are validated before memory is allocated, and only those that a decoder
 * needs remain.
 */
import { crc32, deflateSync } from "node:zlib";
import { AppError } from "../../errors.ts";
import { joinBytes } from "../../storage/atomic_file.ts";
import { Buffer } from "node:buffer";
import { ImageError, isOpaque, type Raster } from "./raster.ts";

/** The first eight bytes of every PNG. */
const PNG_SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/** Maximum number of chunks. */
export const MAX_CHUNKS = 10_000;

/** Maximum number of pixels: 160 MB decoded, the same as for the images that are read. */
const MAX_PIXELS = 40_000_000;

/** Bytes of a chunk besides its data: length, type, CRC. */
const FRAME_BYTES = 12;

/** Bit depths of each color type. @see https://www.w3.org/TR/png-3/#table111 */
const BIT_DEPTHS: Partial<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

/** One chunk. */
export interface PngChunk {
  type: string;
  /** The whole chunk, from length to CRC. */
  bytes: Uint8Array;
  data: Uint8Array;
}

/** A valid PNG. */
interface PngFile {
  widthPx: number;
  heightPx: number;
  /** From IHDR to IEND. Bytes after IEND are ignored. */
  chunks: PngChunk[];
}

/** Reports whether bytes start with the PNG signature. */
export function isPng(bytes: Uint8Array): boolean {
  return PNG_SIGNATURE.every((byte, index) => bytes[index] === byte);
}

/**
 * Splits a PNG into chunks, which are views of `png`.
 *
 * @throws {AppError} `unprocessable` for an invalid file, too many pixels or too many chunks
 */
export function parsePng(png: Uint8Array): PngFile {
  if (!isPng(png)) throw createDamagedError("it has no PNG signature");
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const chunks: PngChunk[] = [];
  for (let at = PNG_SIGNATURE.length; at < png.length;) {
    const isWhole = png.length - at >= FRAME_BYTES;
    const length = isWhole ? view.getUint32(at) : 0;
    if (!isWhole || length > png.length - at - FRAME_BYTES) throw createDamagedError("a chunk is longer than the file");
    const end = at + FRAME_BYTES + length;
    const chunk = {
      type: readChunkType(png, at + 4),
      bytes: png.subarray(at, end),
      data: png.subarray(at + 8, end - 4),
    };
    if (isCritical(chunk) && !hasValidCrc(chunk)) {
      throw createDamagedError(`the checksum of its ${chunk.type} chunk is wrong`);
    }
    chunks.push(chunk);
    if (chunks.length > MAX_CHUNKS) throw createDamagedError(`it has more than ${MAX_CHUNKS} chunks`);
    if (chunk.type === "IEND") return checkOrder(chunks);
    at = end;
  }
  throw createDamagedError("the IEND chunk is missing");
}

/** Joins chunks to a file. */
export function joinPng(chunks: readonly { bytes: Uint8Array }[]): Uint8Array<ArrayBuffer> {
  return joinBytes([PNG_SIGNATURE, ...chunks.map(({ bytes }) => bytes)]);
}

/** Creates a chunk. @param type Four ASCII letters. */
export function createChunk(type: string, data: Uint8Array): PngChunk {
  const bytes = new Uint8Array(FRAME_BYTES + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  for (let i = 0; i < 4; i++) bytes[4 + i] = type.charCodeAt(i);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return { type, bytes, data: bytes.subarray(8, 8 + data.length) };
}

/** Reports whether the CRC of a chunk is correct. */
export function hasValidCrc({ bytes }: { bytes: Uint8Array }): boolean {
  const stated = new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 4);
  return crc32(bytes.subarray(4, bytes.length - 4)) === stated;
}

/**
 * Parses the data of the IHDR chunk.
 *
 * @throws {AppError} `unprocessable`
 */
export function parsePngHeader(data: Uint8Array): { widthPx: number; heightPx: number; colorType: number } {
  if (data.length !== 13) throw createDamagedError("its IHDR chunk has the wrong length");
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const [widthPx, heightPx] = [view.getUint32(0), view.getUint32(4)];
  if (widthPx === 0 || heightPx === 0) throw createDamagedError("its width or height is 0");
  if (widthPx * heightPx > MAX_PIXELS) {
    throw createDamagedError(`it has ${widthPx} × ${heightPx} pixels; the limit is ${MAX_PIXELS}`);
  }
  if (!isPngFormat(data.subarray(8))) {
    throw createDamagedError("its header has an invalid combination of color type, bit depth and methods");
  }
  return { widthPx, heightPx, colorType: data[9]! };
}

/** Reports whether the last five bytes of an IHDR chunk are a valid combination. */
export function isPngFormat([bitDepth, colorType, compression, filter, interlace]: Iterable<number>): boolean {
  return BIT_DEPTHS[colorType!]?.includes(bitDepth!) === true && compression === 0 && filter === 0 && interlace! <= 1;
}

/** Checks the order of chunks. @see https://www.w3.org/TR/png-3/#5ChunkOrdering */
function checkOrder(chunks: PngChunk[]): PngFile {
  const [first] = chunks;
  if (first?.type !== "IHDR") throw createDamagedError("it doesn't start with an IHDR chunk");
  const { widthPx, heightPx, colorType } = parsePngHeader(first.data);
  const types = chunks.map(({ type }) => type);
  const firstData = types.indexOf("IDAT");
  const palette = types.indexOf("PLTE");
  if (firstData < 0) throw createDamagedError("it has no IDAT chunk");
  if (types.slice(firstData, types.lastIndexOf("IDAT")).some((type) => type !== "IDAT")) {
    throw createDamagedError("its IDAT chunks aren't consecutive");
  }
  if (palette < 0 ? colorType === 3 : palette > firstData || types.lastIndexOf("PLTE") !== palette) {
    throw createDamagedError("its palette is missing or in the wrong place");
  }
  const paletteBytes = chunks[palette]?.data.length ?? 3;
  if (paletteBytes === 0 || paletteBytes > 768 || paletteBytes % 3 !== 0) {
    throw createDamagedError("its palette has the wrong size");
  }
  if (types.lastIndexOf("IHDR") > 0) throw createDamagedError("it has two IHDR chunks");
  if (chunks.at(-1)!.data.length > 0) throw createDamagedError("its IEND chunk isn't empty");
  return { widthPx, heightPx, chunks };
}

function readChunkType(png: Uint8Array, at: number): string {
  const type = String.fromCharCode(...png.subarray(at, at + 4));
  if (!/^[A-Za-z]{4}$/.test(type)) throw createDamagedError("the type of a chunk is invalid");
  return type;
}

/** Decoders can't ignore chunks whose type starts with a capital letter. */
function isCritical({ type }: PngChunk): boolean {
  return type.charCodeAt(0) < 0x60;
}

function createDamagedError(found: string): AppError {
  return new AppError("unprocessable", `Can't read the PNG: ${found}`);
}

/** Chunks needed for decoding. All others (text, profiles, times) are removed, so that no decoder inflates them. */
const IMAGE_DATA_CHUNKS = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"];

/**
 * Returns a PNG with only the chunks needed for decoding, after checking its structure.
 *
 * @param bytes A file recognized as PNG.
 * @throws {ImageError} for a truncated chunk, a wrong CRC, or missing or misplaced chunks
 */
export function keepPixelChunks(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const output: Uint8Array[] = [PNG_SIGNATURE];
  const seen: string[] = [];
  let chunkCount = 0;
  for (let at = PNG_SIGNATURE.length; seen.at(-1) !== "IEND";) {
    if (++chunkCount > MAX_CHUNKS) throw new ImageError(`more than ${MAX_CHUNKS} chunks`);
    if (at + 12 > bytes.length) throw new ImageError("the file ends before its IEND chunk");
    const end = at + 12 + view.getUint32(at);
    const type = Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, 4).toString("latin1");
    if (end > bytes.length) throw new ImageError(`the chunk at byte ${at} is longer than the file`);
    if (IMAGE_DATA_CHUNKS.includes(type)) {
      if (crc32(bytes.subarray(at + 4, end - 4)) !== view.getUint32(end - 4)) {
        throw new ImageError(`the checksum of the ${type} chunk at byte ${at} is wrong`);
      }
      checkPixelOrder(type, seen);
      seen.push(type);
      output.push(bytes.subarray(at, end));
    } else if (type[0] === type[0]!.toUpperCase()) {
      throw new ImageError("it has an unknown critical chunk"); // https://www.w3.org/TR/png-3/#5Chunk-naming-conventions
    }
    at = end;
  }
  if (!seen.includes("IDAT")) throw new ImageError("it has no IDAT chunk");
  if (bytes[25] === 3 && !seen.includes("PLTE")) throw new ImageError("its palette is missing");
  return Buffer.concat(output);
}

/** Checks the order of chunks. @see https://www.w3.org/TR/png-3/#5ChunkOrdering */
function checkPixelOrder(type: string, seen: string[]): void {
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
    PNG_SIGNATURE,
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

/**
 * The filters that reduce the size: None is for palettes, and Average is hardly ever the best.
 *
 * @see https://www.w3.org/TR/png-3/#9Filters
 */
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
