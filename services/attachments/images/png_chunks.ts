/** Splits PNG files into chunks and validates them before allocating memory. Pixels aren't decoded. */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import { joinBytes } from "../../storage/file_pieces.ts";

/** The first eight bytes of every PNG. */
const PNG_SIGNATURE: readonly number[] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Maximum number of chunks. */
export const MAX_CHUNKS = 10_000;

/** Maximum number of pixels: 160 MB decoded, the same as for the image Workers. */
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
export interface PngFile {
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
  if (!isPng(png)) throw broken("it does not begin as one");
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const chunks: PngChunk[] = [];
  for (let at = PNG_SIGNATURE.length; at < png.length;) {
    const isWhole = png.length - at >= FRAME_BYTES;
    const length = isWhole ? view.getUint32(at) : 0;
    if (!isWhole || length > png.length - at - FRAME_BYTES) throw broken("a chunk is longer than the file");
    const end = at + FRAME_BYTES + length;
    const chunk = {
      type: readChunkType(png, at + 4),
      bytes: png.subarray(at, end),
      data: png.subarray(at + 8, end - 4),
    };
    if (isCritical(chunk) && !hasValidCrc(chunk)) throw broken(`the check sum of its ${chunk.type} is wrong`);
    chunks.push(chunk);
    if (chunks.length > MAX_CHUNKS) throw broken(`it has more than ${MAX_CHUNKS} chunks`);
    if (chunk.type === "IEND") return checkOrder(chunks);
    at = end;
  }
  throw broken("it has no end");
}

/** Joins chunks to a file. */
export function joinPng(chunks: readonly { bytes: Uint8Array }[]): Uint8Array<ArrayBuffer> {
  return joinBytes([Uint8Array.from(PNG_SIGNATURE), ...chunks.map(({ bytes }) => bytes)]);
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
export function parsePngHeader(data: Uint8Array): { widthPx: number; heightPx: number; colourType: number } {
  if (data.length !== 13) throw broken("its header has a wrong length");
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const [widthPx, heightPx] = [view.getUint32(0), view.getUint32(4)];
  const [bitDepth, colourType, compression, filter, interlace] = data.subarray(8) as unknown as number[];
  if (widthPx === 0 || heightPx === 0) throw broken("it has no pixels");
  if (widthPx * heightPx > MAX_PIXELS) {
    throw broken(`it has ${widthPx} × ${heightPx} pixels, more than ${MAX_PIXELS}`);
  }
  if (!BIT_DEPTHS[colourType!]?.includes(bitDepth!) || compression !== 0 || filter !== 0 || interlace! > 1) {
    throw broken("its header names a format that does not exist");
  }
  return { widthPx, heightPx, colourType: colourType! };
}

/** Checks the order of chunks. @see https://www.w3.org/TR/png-3/#5ChunkOrdering */
function checkOrder(chunks: PngChunk[]): PngFile {
  const [first] = chunks;
  if (first?.type !== "IHDR") throw broken("it does not begin with its header");
  const { widthPx, heightPx, colourType } = parsePngHeader(first.data);
  const types = chunks.map(({ type }) => type);
  const firstData = types.indexOf("IDAT");
  const palette = types.indexOf("PLTE");
  if (firstData < 0) throw broken("it has no pixels");
  if (types.slice(firstData, types.lastIndexOf("IDAT")).some((type) => type !== "IDAT")) {
    throw broken("its pixels are scattered");
  }
  if (palette < 0 ? colourType === 3 : palette > firstData || types.lastIndexOf("PLTE") !== palette) {
    throw broken("its palette is missing or out of place");
  }
  const paletteBytes = chunks[palette]?.data.length ?? 3;
  if (paletteBytes === 0 || paletteBytes > 768 || paletteBytes % 3 !== 0) throw broken("its palette has a wrong size");
  if (types.lastIndexOf("IHDR") > 0) throw broken("it has two headers");
  if (chunks.at(-1)!.data.length > 0) throw broken("its end holds something");
  return { widthPx, heightPx, chunks };
}

function readChunkType(png: Uint8Array, at: number): string {
  const type = String.fromCharCode(...png.subarray(at, at + 4));
  if (!/^[A-Za-z]{4}$/.test(type)) throw broken("a chunk has no proper name");
  return type;
}

/** Decoders can't ignore chunks whose type starts with a capital letter. */
function isCritical({ type }: PngChunk): boolean {
  return type.charCodeAt(0) < 0x60;
}

function broken(found: string): AppError {
  return new AppError("unprocessable", `Can't read the PNG: ${found}`);
}
