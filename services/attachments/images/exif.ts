/** The Exif block of an image: a TIFF structure of directories and entries. @see Exif 2.32, section 4.6 */

/** An Exif block. */
export interface Exif {
  tiff: DataView;
  isLittle: boolean;
  /** Offset of the first directory. */
  firstAt: number;
}

/** One directory entry. */
export interface ExifEntry {
  /** Number of values; for bytes and text, number of bytes. */
  count: number;
  /** Offset of the value, or of its offset if it's longer than four bytes. */
  valueAt: number;
}

const ORIENTATION_TAG = 0x0112;

/** "Exif\0\0" starts the block in JPEG files and some WebP files. */
const EXIF_MARK = [0x45, 0x78, 0x69, 0x66, 0, 0];

/** Finds the Exif block of a JPEG or WebP file. */
export function findExif(picture: Uint8Array): Exif | undefined {
  const block = picture[0] === 0xff ? findJpegBlock(picture) : findWebpBlock(picture);
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

/** @see RFC 9649, section 2.7 */
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
