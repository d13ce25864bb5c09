/** Normalizes untrusted text, sorts names, and fills message templates. */

/** Combining marks. Two of them are letters until they're folded. */
const MARK = /^[\p{M}\uFF9E\uFF9F]$/u;
/** More marks in a row than any script uses. */
const MANY_MARKS = 31;

/**
 * Normalizes a text.
 *
 * A text with more than 30 combining marks in a row is returned unchanged: sorting the marks takes quadratic time, 12 s
 * for 100,000.
 *
 * @see https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format
 */
export function normalized(text: string, form: "NFC" | "NFKC" | "NFKD"): string {
  return hasManyMarks(text) ? text : text.normalize(form);
}

/** Looks at every 31st unit, since a run of so many marks has one of them: most texts are read in a moment. */
function hasManyMarks(text: string): boolean {
  for (let at = MANY_MARKS - 1; at < text.length; at += MANY_MARKS) {
    if (!isMark(text, at)) continue;
    let [first, last] = [at, at];
    // Marks outside of the basic plane have two units.
    while (at - first < 2 * MANY_MARKS && isMark(text, first - 1)) first--;
    while (last - at < 2 * MANY_MARKS && isMark(text, last + 1)) last++;
    if (last - first + 1 >= MANY_MARKS && [...text.slice(first, last + 1)].length >= MANY_MARKS) return true;
    at = last;
  }
  return false;
}

/** Reports whether a unit of a text is a mark, or half of one. */
function isMark(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  // NaN outside of the text. Before the first mark, or an ideograph or Hangul syllable.
  if (!(unit >= 0x300) || (unit >= 0x3400 && unit < 0xd800 && (unit < 0xa4d0 || unit >= 0xac00))) return false;
  const isLow = unit >= 0xdc00 && unit < 0xe000;
  return MARK.test(String.fromCodePoint(text.codePointAt(isLow ? at - 1 : at)!));
}

// Message templates with parameters, so that messages can be translated.

/** Parameters by name. */
export type TextParams = Record<string, string | number>;

/** Replaces each `{name}` with its parameter. Unknown names stay as written. */
export function fillTemplate(text: string, params: TextParams): string {
  return text.replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}

/** Letters that Unicode doesn't decompose, with the letters by which they're sorted. */
const ALIKE: Record<string, string> = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ł: "l", ı: "i", þ: "th" };
/** ASCII symbols in collation order: punctuation, other symbols, currency. */
const MARKS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
const FIRST_SIGN = MARKS.indexOf("`");
const KATAKANA_TO_HIRAGANA = 0x60;
/** Sorts below every letter, so that a name comes before longer names that start with it. */
const END = "\u0001";

/** Folds case, accents and width for comparisons. */
export function foldForSorting(text: string): string {
  return normalized(text.toWellFormed(), "NFKD").replace(/\p{M}+|\0/gu, "").toLowerCase().trim();
}

/**
 * Returns a sort key for a name, for places that can only compare whole strings, such as a database. Compared by code
 * points, the keys sort like `Intl.Collator` with `numeric` for English, German and most other names; case is ignored.
 * The order is: spaces, punctuation, symbols, digits, letters; then accents.
 *
 * @see https://www.unicode.org/reports/tr10/
 */
export function quoteKey(name: string): string {
  const letters = foldForSorting(name)
    .replace(/[ßæœøđłıþ]/g, (letter) => ALIKE[letter]!)
    .replace(/[\u30a1-\u30f6]/g, (kana) => String.fromCharCode(kana.charCodeAt(0) - KATAKANA_TO_HIRAGANA))
    .replace(/[\p{P}\p{S}]/gu, indexOfMark)
    // A number with more digits is larger. With the same number of digits, they're compared.
    .replace(/0*(\d+)/g, (_, digits: string) => `0${String.fromCharCode(0x30 + digits.length)}${digits}`);
  const accents = normalized(name.toWellFormed(), "NFKD").replaceAll("\0", "").toLowerCase().trim();
  return letters + END + accents;
}

/** Sorts items by name, then by ID. */
export function sortByName<T extends { id: string; name: string }>(items: readonly T[]): T[] {
  const keyed = items.map((item) => ({ item, key: quoteKey(item.name) }));
  keyed.sort((a, b) => compare(a.key, b.key) || compare(a.item.id, b.item.id));
  return keyed.map(({ item }) => item);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns a key that sorts a symbol before all digits and letters. */
function indexOfMark(mark: string): string {
  const at = MARKS.indexOf(mark);
  const group = /\p{Sc}/u.test(mark) ? "#" : (at < 0 ? /\p{S}/u.test(mark) : at >= FIRST_SIGN) ? '"' : "!";
  return group + (at < 0 ? `~${mark}` : String.fromCharCode(0x21 + at));
}
