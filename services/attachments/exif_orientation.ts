/** How a camera was held, from the Exif block of a JPEG: the one fact of it that changes what one sees. */

/** Tag 0x0112 of Exif 2.32 */
const ORIENTATION_TAG = 0x0112;

/** "Exif" and two zero bytes open the block. */
const EXIF_MARK = [0x45, 0x78, 0x69, 0x66, 0, 0];

/**
 * Gives the orientation of a JPEG.
 *
 * @returns 1 to 8; 1 also where nothing, or nothing sensible, is said.
 */
export function orientationOf(jpeg: Uint8Array): number {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  let at = 2;
  while (at + 4 <= jpeg.length && jpeg[at] === 0xff && jpeg[at + 1]! >= 0xc0 && jpeg[at + 1] !== 0xda) {
    const end = at + 2 + view.getUint16(at + 2);
    if (end > jpeg.length || end < at + 4) return 1;
    if (jpeg[at + 1] === 0xe1 && EXIF_MARK.every((byte, index) => jpeg[at + 4 + index] === byte)) {
      return orientationIn(new DataView(jpeg.buffer, jpeg.byteOffset + at + 10, Math.max(0, end - at - 10)));
    }
    at = end;
  }
  return 1;
}

/** Reads the first directory of the TIFF structure. */
function orientationIn(tiff: DataView): number {
  if (tiff.byteLength < 8) return 1;
  const isLittle = tiff.getUint16(0) === 0x4949;
  const directory = tiff.getUint32(4, isLittle);
  if (directory + 2 > tiff.byteLength) return 1;
  const count = tiff.getUint16(directory, isLittle);
  for (let index = 0; index < count; index++) {
    const entry = directory + 2 + index * 12;
    if (entry + 12 > tiff.byteLength) return 1;
    if (tiff.getUint16(entry, isLittle) !== ORIENTATION_TAG) continue;
    const value = tiff.getUint16(entry + 8, isLittle);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}
