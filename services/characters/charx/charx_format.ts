/** What a CHARX file is: how large, how it begins, and the names inside. */

/** Largest CHARX file: with pictures of every mood and place they have 30 to 200 MB, a few with sounds twice that. */
export const MAX_CHARX_BYTES = 512 * 1024 * 1024;

/** Largest main picture in one. */
export const MAX_PICTURE_BYTES = 20 * 1024 * 1024;

/** Says whether bytes may begin a CHARX file: a ZIP, or a picture or program with a ZIP behind it. */
export function isCharx(begin: Uint8Array): boolean {
  return isZip(begin) || startsWith(begin, [0xff, 0xd8, 0xff]) || startsWith(begin, [0x4d, 0x5a]);
}

/** Says whether bytes begin as a ZIP with something in it does. */
export function isZip(begin: Uint8Array): boolean {
  return startsWith(begin, [0x50, 0x4b, 0x03, 0x04]);
}

/** The card, by exact name. */
export const CARD_PATH = "card.json";

/** Where the picture lies in a file of ours, unless its card says another place. */
export const PICTURE_PATH = "assets/icon/images/main.png";

const MAX_PATH_CHARACTERS = 500;

/** Says whether a name leads to a file below, on every system that may once unpack it. */
export function isPlainPath(name: string): boolean {
  if (name.length > MAX_PATH_CHARACTERS || /[\\:\p{Cc}]/u.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part !== "__proto__");
}

function startsWith(bytes: Uint8Array, begin: number[]): boolean {
  return begin.every((byte, index) => bytes[index] === byte);
}
