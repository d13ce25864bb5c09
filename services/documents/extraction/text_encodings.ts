/** Encodings of text, and what tells them apart. Used by the page, too. */

/** Encodings that the user can choose, by their names in the Encoding Standard. */
export const TEXT_ENCODINGS = [
  ...["utf-8", "utf-16le", "utf-16be", "windows-1252", "windows-1250", "windows-1251", "windows-1253"] as const,
  ...["windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-874", "iso-8859-2"] as const,
  ...["iso-8859-5", "koi8-u", "ibm866", "macintosh", "shift_jis", "euc-jp", "iso-2022-jp", "gb18030"] as const,
  ...["big5", "euc-kr"] as const,
];
/** One of them. */
export type TextEncodingName = typeof TEXT_ENCODINGS[number];

/** Reports whether bytes are text in UTF-16 without a byte order mark. */
export function findWideEncoding(bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined {
  const sample = bytes.subarray(0, Math.min(bytes.length, 4096) & ~1);
  if (sample.length < 8) return undefined;
  // In any language, some units are spaces, line ends, digits or CJK punctuation: their high bytes are alike.
  const scores = (["utf-16le", "utf-16be"] as const).map((encoding) => {
    const text = new TextDecoder(encoding).decode(sample);
    const units = countMatches(text, /[\t\n\r -~\u00a0-\u024f\u0370-\u06ff\u0e00-\u0e7f\u2010-\u203b\u3000-\u30ff]/g);
    const words = countMatches(text, /[\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]/g);
    const spaces = countMatches(text, /[\t\n\r ,.\u3001\u3002\uff0c]/g);
    const isText = units + words >= text.length * 0.97 && spaces > 0;
    return { encoding, score: isText ? 3 * units + words : 0 };
  }).sort((a, b) => b.score - a.score);
  const hasNul = sample.includes(0);
  const isWide = scores[0]!.score > 2 * scores[1]!.score;
  return isWide && (hasNul || !isValidNarrowText(sample)) ? scores[0]!.encoding : undefined;
}

function isValidNarrowText(bytes: Uint8Array): boolean {
  const isAscii = bytes.every((byte) => byte < 0x80 && byte >= 9);
  return isAscii || decodeStrictly(bytes.subarray(0, bytes.length - 3), "utf-8") !== undefined;
}

/** Decodes text. @returns `undefined` if a byte has no meaning: the standard maps some of them to C1 controls, which no text has. */
export function decodeStrictly(bytes: Uint8Array, encoding: TextEncodingName): string | undefined {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return /[\u0080-\u009f]/.test(text) && encoding !== "utf-8" ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Counts the matches of a pattern. */
export function countMatches(text: string, pattern: RegExp): number {
  let count = 0;
  for (const _ of text.matchAll(pattern)) count++;
  return count;
}
