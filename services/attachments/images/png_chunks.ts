/** A PNG file as its chunks, judged from their headers before anything is allocated. Pixels are never touched here. */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import { joinedBytes } from "../../storage/concat_bytes.ts";

/** The first eight bytes of every PNG. */
export const PNG_SIGNATURE: readonly number[] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Maximum number of chunks of a file. */
export const MAX_CHUNKS = 10_000;

/** Most pixels a picture may have: 160 MB once decoded, as much as the image Workers take. */
const MAX_PIXELS = 40_000_000;

/** Bytes of a chunk beside its data: length, type, CRC. */
const FRAME_BYTES = 12;

/** Bit depths each colour type may have. @see PNG, third edition, table 12 */
const BIT_DEPTHS: Partial<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

/** One chunk: where it lies in its file. */
export interface PngChunk {
  type: string;
  /** Everything, from the length to the CRC. */
  bytes: Uint8Array;
  data: Uint8Array;
}

/** A PNG that has the parts every PNG has, in their order. */
export interface PngFile {
  widthPx: number;
  heightPx: number;
  /** From IHDR to IEND; what lay behind is not part of the picture. */
  chunks: PngChunk[];
}

/** Says whether bytes begin as a PNG does. */
export function isPng(bytes: Uint8Array): boolean {
  return PNG_SIGNATURE.every((byte, index) => bytes[index] === byte);
}

/**
 * Takes a PNG apart. The chunks are views of `png`.
 *
 * @throws {AppError} `unprocessable` when a rule of the format is broken or the picture has too many pixels or chunks.
 */
export function readPng(png: Uint8Array): PngFile {
  if (!isPng(png)) throw broken("it does not begin as one");
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const chunks: PngChunk[] = [];
  for (let at = PNG_SIGNATURE.length; at < png.length;) {
    const isWhole = png.length - at >= FRAME_BYTES;
    const length = isWhole ? view.getUint32(at) : 0;
    if (!isWhole || length > png.length - at - FRAME_BYTES) throw broken("a chunk is longer than the file");
    const end = at + FRAME_BYTES + length;
    const chunk = { type: typeAt(png, at + 4), bytes: png.subarray(at, end), data: png.subarray(at + 8, end - 4) };
    if (isCritical(chunk) && !hasValidCrc(chunk)) throw broken(`the check sum of its ${chunk.type} is wrong`);
    chunks.push(chunk);
    if (chunks.length > MAX_CHUNKS) throw broken(`it has more than ${MAX_CHUNKS} chunks`);
    if (chunk.type === "IEND") return checked(chunks);
    at = end;
  }
  throw broken("it has no end");
}

/** Puts chunks together to a file. */
export function joinPng(chunks: readonly { bytes: Uint8Array }[]): Uint8Array<ArrayBuffer> {
  return joinedBytes([Uint8Array.from(PNG_SIGNATURE), ...chunks.map(({ bytes }) => bytes)]);
}

/** Makes a chunk. @param type Four ASCII letters. */
export function makeChunk(type: string, data: Uint8Array): PngChunk {
  const bytes = new Uint8Array(FRAME_BYTES + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  for (let i = 0; i < 4; i++) bytes[4 + i] = type.charCodeAt(i);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return { type, bytes, data: bytes.subarray(8, 8 + data.length) };
}

/** Says whether the check sum of a chunk is the one of its content. */
export function hasValidCrc({ bytes }: { bytes: Uint8Array }): boolean {
  const stated = new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 4);
  return crc32(bytes.subarray(4, bytes.length - 4)) === stated;
}

/**
 * Reads a picture's header, the data of IHDR.
 *
 * @throws {AppError} `unprocessable`
 */
export function readHeader(data: Uint8Array): { widthPx: number; heightPx: number; colourType: number } {
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

/** The order of chunks that the format demands. @see PNG, third edition, section 5.6 */
function checked(chunks: PngChunk[]): PngFile {
  const [first] = chunks;
  if (first?.type !== "IHDR") throw broken("it does not begin with its header");
  const { widthPx, heightPx, colourType } = readHeader(first.data);
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

function typeAt(png: Uint8Array, at: number): string {
  const type = String.fromCharCode(...png.subarray(at, at + 4));
  if (!/^[A-Za-z]{4}$/.test(type)) throw broken("a chunk has no proper name");
  return type;
}

/** A decoder cannot do without chunks whose names begin with a capital. */
function isCritical({ type }: PngChunk): boolean {
  return type.charCodeAt(0) < 0x60;
}

function broken(found: string): AppError {
  return new AppError("unprocessable", `Cannot read the PNG: ${found}`);
}
