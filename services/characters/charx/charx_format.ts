/** Limits, signatures and names of the CHARX format. */

/** Maximum size. Files with many images have 30 to 200 MB, a few with sounds twice that. */
export const MAX_CHARX_BYTES = 512 * 1024 * 1024;

/** Maximum size of the main image. */
export const MAX_CHARX_IMAGE_BYTES = 20 * 1024 * 1024;

/** Reports whether a file may be a CHARX: a ZIP, or an image or program with a ZIP appended. */
export function isCharx(begin: Uint8Array): boolean {
  return isZip(begin) || startsWith(begin, [0xff, 0xd8, 0xff]) || startsWith(begin, [0x4d, 0x5a]);
}

/** Reports whether bytes start as a non-empty ZIP. */
export function isZip(begin: Uint8Array): boolean {
  return startsWith(begin, [0x50, 0x4b, 0x03, 0x04]);
}

/** Exact name of the card. */
export const CARD_PATH = "card.json";

/** Default path of the image. */
export const IMAGE_PATH = "assets/icon/images/main.png";

const MAX_PATH_CHARACTERS = 500;

/** Reports whether a path is safe to unpack on every operating system. */
export function isSafeCharxPath(name: string): boolean {
  if (name.length > MAX_PATH_CHARACTERS || /[\\:\p{Cc}]/u.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part !== "__proto__");
}

function startsWith(bytes: Uint8Array, begin: number[]): boolean {
  return begin.every((byte, index) => bytes[index] === byte);
}
