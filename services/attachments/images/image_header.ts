/** Reads image headers without decoding the image: type, dimensions, and the Exif block. */
import { isPngFormat } from "./png.ts";
import { Buffer } from "node:buffer";

/** Supported image types, and the only types served for images. */
export type ImageType = "image/png" | "image/jpeg" | "image/webp" | "image/gif";

/** Contents of an image header. */
export interface ImageFacts {
  type: ImageType;
  widthPx: number;
  heightPx: number;
}

/**
 * Recognizes type and size of an image.
 *
 * @param bytes The file or its start: 30 bytes for PNG, GIF and WebP; for JPEG everything up to the frame header.
 * @returns `undefined` if it isn't a PNG, JPEG, WebP or GIF with a valid header.
 */
export function sniffImage(bytes: Uint8Array): ImageFacts | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return sniffPng(view) ?? sniffJpeg(view) ?? sniffGif(view) ?? sniffWebp(view);
}

function sniffPng(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 33 || view.getUint32(0) !== 0x89504e47 || view.getUint32(4) !== 0x0d0a1a0a) return undefined;
  if (view.getUint32(8) !== 13 || readText(view, 12) !== "IHDR") return undefined;
  if (!isPngFormat([24, 25, 26, 27, 28].map((at) => view.getUint8(at)))) return undefined;
  const [widthPx, heightPx] = [view.getUint32(16), view.getUint32(20)];
  // https://www.w3.org/TR/png-3/#11IHDR: at most 2^31 - 1.
  return widthPx > 0x7fffffff || heightPx > 0x7fffffff ? undefined : toFacts("image/png", widthPx, heightPx);
}

/** Walks the markers up to the frame header. @see ITU T.81, annex B */
function sniffJpeg(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 4 || view.getUint16(0) !== 0xffd8 || view.getUint8(2) !== 0xff) return undefined;
  let at = 2;
  while (at + 9 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at++; // Fill byte
    } else if (isFrame(marker)) {
      return toFacts("image/jpeg", view.getUint16(at + 7), view.getUint16(at + 5));
    } else if (marker === 0xd9 || marker === 0xda || marker < 0xc0 || view.getUint16(at + 2) < 2) {
      return undefined; // End of the image, or image data before any frame
    } else {
      at += 2 + view.getUint16(at + 2);
    }
  }
  return undefined;
}

/** SOF0 to SOF15, without DHT, JPG and DAC in the same range. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

function sniffGif(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 13) return undefined;
  const magic = readText(view, 0) + readText(view, 4, 2);
  if (magic !== "GIF87a" && magic !== "GIF89a") return undefined;
  return toFacts("image/gif", view.getUint16(6, true), view.getUint16(8, true));
}

/** Lossy, lossless or extended, by the first chunk. @see RFC 9649, section 2 */
function sniffWebp(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 30 || readText(view, 0) !== "RIFF" || readText(view, 8) !== "WEBP") return undefined;
  switch (readText(view, 12)) {
    case "VP8 ":
      if (view.getUint8(23) !== 0x9d || view.getUint8(24) !== 0x01 || view.getUint8(25) !== 0x2a) return undefined;
      return toFacts("image/webp", view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
    case "VP8L": {
      const bits = view.getUint32(21, true);
      if (view.getUint8(20) !== 0x2f || bits >>> 29 !== 0) return undefined;
      return toFacts("image/webp", (bits & 0x3fff) + 1, (bits >>> 14 & 0x3fff) + 1);
    }
    case "VP8X":
      return toFacts("image/webp", 1 + readUint24(view, 24), 1 + readUint24(view, 27));
    default:
      return undefined;
  }
}

function toFacts(type: ImageType, widthPx: number, heightPx: number): ImageFacts | undefined {
  return widthPx === 0 || heightPx === 0 ? undefined : { type, widthPx, heightPx };
}

function readText(view: DataView, offset: number, length = 4): string {
  return String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + offset, length));
}

function readUint24(view: DataView, offset: number): number {
  return view.getUint16(offset, true) | view.getUint8(offset + 2) << 16;
}

/** Returns an image as a data URL, or undefined if the bytes are not an image of a supported type. */
export function toDataUrl(bytes: Uint8Array): string | undefined {
  const type = sniffImage(bytes)?.type;
  if (type === undefined) return undefined;
  return `data:${type};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")}`;
}

/** The Exif block of an image: a TIFF structure of directories and entries. @see Exif 2.32, section 4.6 */
interface Exif {
  tiff: DataView;
  isLittle: boolean;
  /** Offset of the first directory. */
  firstAt: number;
}

/** One directory entry. */
interface ExifEntry {
  /** Number of values; for bytes and text, number of bytes. */
  count: number;
  /** Offset of the value, or of its offset if it's longer than four bytes. */
  valueAt: number;
}

const ORIENTATION_TAG = 0x0112;

/** "Exif\0\0" starts the block in JPEG files and some WebP files. */
const EXIF_MARK = [0x45, 0x78, 0x69, 0x66, 0, 0];

/** Finds the Exif block of a JPEG or WebP file. */
export function findExif(image: Uint8Array): Exif | undefined {
  const block = image[0] === 0xff ? findJpegBlock(image) : findWebpBlock(image);
  if (block === undefined) return undefined;
  const bare = EXIF_MARK.every((byte, index) => block[index] === byte) ? block.subarray(EXIF_MARK.length) : block;
  if (bare.length < 8) return undefined;
  const tiff = new DataView(bare.buffer, bare.byteOffset, bare.byteLength);
  const isLittle = tiff.getUint16(0) === 0x4949;
  return { tiff, isLittle, firstAt: tiff.getUint32(4, isLittle) };
}

/** Finds an entry of a directory. */
export function findEntry({ tiff, isLittle }: Exif, directoryAt: number, tag: number): ExifEntry | undefined {
  if (directoryAt + 2 > tiff.byteLength) return undefined;
  const count = tiff.getUint16(directoryAt, isLittle);
  for (let index = 0; index < count; index++) {
    const at = directoryAt + 2 + index * 12;
    if (at + 12 > tiff.byteLength) return undefined;
    if (tiff.getUint16(at, isLittle) !== tag) continue;
    return { count: tiff.getUint32(at + 4, isLittle), valueAt: at + 8 };
  }
}

/**
 * Returns the camera orientation.
 *
 * @returns 1 to 8; 1 if missing or invalid.
 */
export function readOrientation(jpeg: Uint8Array): number {
  const exif = findExif(jpeg);
  const entry = exif && findEntry(exif, exif.firstAt, ORIENTATION_TAG);
  const value = entry === undefined ? 1 : exif!.tiff.getUint16(entry.valueAt, exif!.isLittle);
  return value >= 1 && value <= 8 ? value : 1;
}

function findJpegBlock(jpeg: Uint8Array): Uint8Array | undefined {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  for (let at = 2; at + 4 <= jpeg.length && jpeg[at] === 0xff && jpeg[at + 1]! >= 0xc0 && jpeg[at + 1] !== 0xda;) {
    const end = at + 2 + view.getUint16(at + 2);
    if (end > jpeg.length || end < at + 4) return undefined;
    const block = jpeg.subarray(at + 4, end);
    if (jpeg[at + 1] === 0xe1 && EXIF_MARK.every((byte, index) => block[index] === byte)) return block;
    at = end;
  }
}

/** Finds the Exif chunk of a WebP file. @see RFC 9649, section 2.7 */
function findWebpBlock(webp: Uint8Array): Uint8Array | undefined {
  const view = new DataView(webp.buffer, webp.byteOffset, webp.byteLength);
  if (webp.length < 12 || view.getUint32(0) !== 0x52494646 || view.getUint32(8) !== 0x57454250) return undefined;
  for (let at = 12; at + 8 <= webp.length;) {
    const length = view.getUint32(at + 4, true);
    if (length > webp.length - at - 8) return undefined;
    if (view.getUint32(at) === 0x45584946) return webp.subarray(at + 8, at + 8 + length);
    at += 8 + length + length % 2;
  }
}
