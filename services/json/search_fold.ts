/**
 * Folds texts for searches, so that words are found however they're typed. The server and the page fold alike, and the
 * page imports this file, so it must not load anything else of the server.
 *
 * @see https://www.unicode.org/reports/tr10/#Searching
 */
import { normalized } from "./text.ts";

// deno-lint-ignore no-control-regex -- all of ASCII is meant
const ASCII = /^[\x00-\x7f]*$/;
/** What is typed for letters that Unicode doesn't decompose, and for typographic signs. */
const TYPED: Record<string, string> = {
  ...{ ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ð: "d", ħ: "h", ł: "l", ı: "i", þ: "th", ς: "σ" },
  ...Object.fromEntries([..."\u2018\u2019\u201a\u201b\u2032\u02b9\u02bb\u02bc"].map((sign) => [sign, "'"])),
  ...Object.fromEntries([..."\u201c\u201d\u201e\u201f\u00ab\u00bb\u301d\u301e\u301f"].map((sign) => [sign, '"'])),
  ...Object.fromEntries([..."\u2010\u2011\u2012\u2013\u2014\u2015\u2212"].map((sign) => [sign, "-"])),
  // ´ is decomposed into a space and an accent. The breve makes й another letter than и.
  " \u0301": "'",
  "\u0438\u0306": "\u0439",
};
/**
 * What isn't typed: accents, the points of Hebrew and Arabic, tatweel, soft hyphens, joiners, variation selectors and marks
 * of direction. Marks that make another letter or vowel in kana, Thai and Indic scripts stay.
 */
const SILENT = [
  "\\u0300-\\u036f\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f", // Accents
  "\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7", // Hebrew
  "\\u0610-\\u061a\\u0640\\u064b-\\u065f\\u0670\\u06d6-\\u06dc\\u06df-\\u06e4\\u06e7\\u06e8\\u06ea-\\u06ed", // Arabic
  "\\u08d3-\\u08e1\\u08e3-\\u08ff", // Arabic, extended
  "\\u00ad\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufe00-\\ufe0f\\ufeff",
].join("");
const FOLDED = new RegExp(
  ` \\u0301|\\u0438\\u0306|[${SILENT}${Object.keys(TYPED).filter((key) => key.length === 1).join("")}]`,
  "g",
);

/**
 * Folds a text for comparison: case, accents, widths, typographic signs, Hebrew and Arabic points, and letters that many
 * keyboards lack. `"Việt"` becomes `"viet"`, `"it’s"` `"it's"`, `"ＡＢＣ"` `"abc"`.
 */
export function foldForSearch(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = normalized(text, "NFKD").toLowerCase().replace(FOLDED, (found) => TYPED[found] ?? "");
  // Composed again: か isn't a part of が, nor 하 of 한.
  return normalized(folded, "NFC");
}

/** A quoted phrase, with or without a closing quote, or a word. Phones type curly quotes. */
const TERM = /["“”„＂]([^"“”„＂]+)(?:["“”„＂]|$)|(\S+)/g;

/** Returns the folded terms of a query, in its order: words, and quoted phrases as a whole. */
export function parseSearchTerms(query: string): string[] {
  const terms = [...query.matchAll(TERM)].map(([, phrase, word]) => foldForSearch(phrase ?? word ?? "").trim());
  return [...new Set(terms.filter((term) => term !== ""))];
}

/** Returns whether a folded text contains all terms. */
export function containsAllTerms(folded: string, terms: readonly string[]): boolean {
  return terms.every((term) => folded.includes(term));
}

/**
 * Letters that are folded together: with the marks that follow, or the jamo of a syllable. No mark of another letter is in
 * between, so that the folded letters of a text are its folded text.
 */
const CLUSTER =
  /[\u1100-\u115f\ua960-\ua97c]+[\u1160-\u11a7\ud7b0-\ud7c6]*[\u11a8-\u11ff\ud7cb-\ud7fb]*|[\ud800-\udbff][\udc00-\udfff](?:\p{M}|[\uff9e\uff9f])*|[^](?:\p{M}|[\uff9e\uff9f])*/gu;

/**
 * Finds folded terms in a text.
 *
 * @param terms From `parseSearchTerms`.
 * @returns Start and end of the hits in the text, in order and without overlaps. The longest term wins. Hits are whole
 *   letters with their marks.
 */
export function findTerms(text: string, terms: readonly string[]): [start: number, end: number][] {
  if (terms.length === 0 || !containsAnyTerm(foldForSearch(text), terms)) return [];
  let folded = "";
  /** For each unit of the folded text, the start and end of its letter in the text. */
  const starts: number[] = [];
  const ends: number[] = [];
  for (const { 0: letter, index } of text.matchAll(CLUSTER)) {
    const part = foldForSearch(letter);
    // What isn't typed belongs to the letter before it.
    if (part === "" && ends.length > 0) ends[ends.length - 1] = index + letter.length;
    for (let n = 0; n < part.length; n++) {
      starts.push(index);
      ends.push(index + letter.length);
    }
    folded += part;
  }
  const longestFirst = terms.toSorted((a, b) => b.length - a.length);
  const hits: [number, number][] = [];
  for (let at = 0; at < folded.length;) {
    const found = longestFirst.map((term) => ({ term, index: folded.indexOf(term, at) })).filter(({ index }) =>
      index >= 0
    )
      .reduce<{ term: string; index: number } | undefined>(
        (first, each) => first === undefined || each.index < first.index ? each : first,
        undefined,
      );
    if (found === undefined) break;
    at = found.index + found.term.length;
    const start = starts[found.index]!;
    const end = ends[at - 1]!;
    const last = hits.at(-1);
    if (last !== undefined && start < last[1]) last[1] = Math.max(last[1], end);
    else hits.push([start, end]);
  }
  return hits;
}

function containsAnyTerm(folded: string, terms: readonly string[]): boolean {
  return terms.some((term) => folded.includes(term));
}
