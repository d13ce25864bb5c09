/** The order of names in lists: that of dictionaries, with numbers by their value. */
import { normalized } from "../json/unicode.ts";

/** Letters that Unicode does not take apart, as dictionaries place them. */
const ALIKE: Record<string, string> = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ł: "l", ı: "i", þ: "th" };
/** The marks of ASCII in their order there: punctuation, then signs, then what stands for money. */
const MARKS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
const FIRST_SIGN = MARKS.indexOf("`");
const KATAKANA_TO_HIRAGANA = 0x60;
/** Below every letter, so that a name stands before those that it begins. */
const END = "\u0001";

/** Gives a text as it is compared: no case, no accents, no forms of width. */
export function folded(text: string): string {
  return normalized(text.toWellFormed(), "NFKD").replace(/\p{M}+|\0/gu, "").toLowerCase().trim();
}

/**
 * Gives what a name is ordered by where only whole texts can be compared, as in a database: by code points these keys stand
 * as `Intl.Collator` with `numeric` puts English, German and most other names; case alone makes no difference.
 *
 * @see Unicode Collation Algorithm: spaces, punctuation, symbols, digits, letters; accents where all else is the same.
 */
export function nameKey(name: string): string {
  const letters = folded(name)
    .replace(/[ßæœøđłıþ]/g, (letter) => ALIKE[letter]!)
    .replace(/[\u30a1-\u30f6]/g, (kana) => String.fromCharCode(kana.charCodeAt(0) - KATAKANA_TO_HIRAGANA))
    .replace(/[\p{P}\p{S}]/gu, placeOfMark)
    // With more digits it is larger, with as many it is compared digit by digit.
    .replace(/0*(\d+)/g, (_, digits: string) => `0${String.fromCharCode(0x30 + digits.length)}${digits}`);
  const accents = normalized(name.toWellFormed(), "NFKD").replaceAll("\0", "").toLowerCase().trim();
  return letters + END + accents;
}

/** Puts things into the order of their names, and of their ids where those are alike. */
export function inNameOrder<T extends { id: string; name: string }>(items: readonly T[]): T[] {
  const keyed = items.map((item) => ({ item, key: nameKey(item.name) }));
  keyed.sort((a, b) => compare(a.key, b.key) || compare(a.item.id, b.item.id));
  return keyed.map(({ item }) => item);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Gives what puts a mark before all digits and letters, and in its order among marks. */
function placeOfMark(mark: string): string {
  const at = MARKS.indexOf(mark);
  const group = /\p{Sc}/u.test(mark) ? "#" : (at < 0 ? /\p{S}/u.test(mark) : at >= FIRST_SIGN) ? '"' : "!";
  return group + (at < 0 ? `~${mark}` : String.fromCharCode(0x21 + at));
}
