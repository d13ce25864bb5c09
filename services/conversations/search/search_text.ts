/** What counts as found: how text is folded, what a query asks for, and the part of a text that is shown. No storage here. */
import { AppError } from "../../errors.ts";
import { normalized } from "../../json/unicode.ts";

/** UTF-16 units of a query; more is no search but a text. */
const MAX_QUERY_LENGTH = 500;
/** UTF-16 units of a snippet, and how many of them stand before the hit. */
const SNIPPET_LENGTH = 160;
const SNIPPET_LEAD = 50;
/** UTF-16 units folded at a time when a place is looked for in a long text. */
const FOLD_CHUNK = 1024;

/** A quoted phrase, also one whose closing quote is not typed yet, or a word. Phones type curly quotes. */
const TERM = /["“”„]([^"“”„]+)(?:["“”„]|$)|(\S+)/g;
/** What may look different in JSON text, by itself or behind an escape: `\n` and a combining accent become `\ń`. */
const UNSURE_IN_JSON = /["\\\p{Cc}\p{Cs}\p{M}]+/u;
// deno-lint-ignore no-control-regex -- all of ASCII is meant
const ASCII = /^[\x00-\x7f]*$/;

/**
 * Gives the form in which texts are compared: NFKC, lower case, and one sigma, since which of the two lower-case ones
 * a capital becomes depends on what follows it.
 */
export function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = normalized(text, "NFKC").toLowerCase();
  return folded.includes("ς") ? folded.replaceAll("ς", "σ") : folded;
}

/**
 * Gives the folded terms of a query, all of which must occur: words, and quoted phrases as a whole. Longest first, since
 * that one is likely the rarest.
 *
 * @throws {AppError} `invalid_request` when it is empty or too long.
 */
export function parseQuery(query: string): string[] {
  if (query.length > MAX_QUERY_LENGTH) {
    throw new AppError("invalid_request", `Cannot search for ${query.length} characters: at most ${MAX_QUERY_LENGTH}`);
  }
  const terms = new Set<string>();
  for (const [, phrase, word] of normalized(query, "NFKC").matchAll(TERM)) {
    const term = fold(phrase?.trim() ?? word ?? "");
    if (term !== "") terms.add(term);
  }
  if (terms.size === 0) throw new AppError("invalid_request", "Cannot search for nothing: q holds no word");
  return [...terms].sort((a, b) => b.length - a.length);
}

/** Tells whether a folded text holds every term. */
export function holdsAll(folded: string, terms: readonly string[]): boolean {
  return terms.every((term) => folded.includes(term));
}

/**
 * Makes a quick test of a sealed value's JSON text, so that only what may hold all terms is parsed. It errs on one side:
 * `false` means that no string in it holds all terms.
 *
 * Of each term it looks for the longest part that stands in the JSON text as it stands in the string: escapes change
 * quotes, backslashes, control characters and half surrogate pairs, and an escape's last letter takes up the accents
 * behind it; parts without any of these are the same in both.
 */
export function createQuickTest(terms: readonly string[]): (json: string, isAscii: boolean) => boolean {
  const parts = terms.map((term) =>
    term.split(UNSURE_IN_JSON).reduce((longest, part) => part.length > longest.length ? part : longest, "")
  ).filter((part) => part !== "");
  // Without folding a copy first: three times as fast on text that is ASCII, where upper and lower case is all there is.
  const patterns = parts.every((part) => ASCII.test(part)) ? parts.map((part) => new RegExp(escaped(part), "i")) : [];
  return (json, isAscii) => {
    if (!isAscii) return holdsAll(fold(json), parts);
    return patterns.length === parts.length && patterns.every((pattern) => pattern.test(json));
  };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|\/-]/g, "\\$&");
}

/** Gives the part of a text around its first hit: one line, marked where it was cut, no character cut in half. */
export function snippetAround(text: string, terms: readonly string[]): string {
  const folded = fold(text);
  const hit = Math.min(...terms.map((term) => folded.indexOf(term)).filter((at) => at >= 0));
  const at = Number.isFinite(hit) ? placeInOriginal(text, folded, hit) : 0;
  let start = text.length <= SNIPPET_LENGTH
    ? 0
    : Math.max(0, Math.min(at - SNIPPET_LEAD, text.length - SNIPPET_LENGTH));
  let end = Math.min(text.length, start + SNIPPET_LENGTH);
  if (start > 0) start = wordBegin(text, start, at);
  if (end < text.length && isLow(text.charCodeAt(end))) end--;
  const line = text.slice(start, end).replace(/\s+/g, " ").trim();
  return `${start > 0 ? "…" : ""}${line}${end < text.length ? "…" : ""}`;
}

/**
 * Finds where a place of the folded text lies in the text itself; folding makes some characters longer or shorter.
 *
 * Goes by chunks that end before an ASCII character, which nothing before it melts into (Unicode Annex 15).
 */
function placeInOriginal(text: string, folded: string, place: number): number {
  if (folded.length === text.length && ASCII.test(text)) return place;
  let [start, rest] = [0, place];
  for (;;) {
    let end = Math.min(start + FOLD_CHUNK, text.length);
    while (end < text.length && text.charCodeAt(end) > 0x7f) end++;
    const length = fold(text.slice(start, end)).length;
    if (length > rest || end === text.length) return start + placeInChunk(text.slice(start, end), rest);
    [start, rest] = [end, rest - length];
  }
}

function placeInChunk(chunk: string, place: number): number {
  let [low, high] = [0, chunk.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (fold(chunk.slice(0, middle)).length <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Moves a cut to the begin of the next word before the hit, where there is one, else out of a surrogate pair. */
function wordBegin(text: string, start: number, hit: number): number {
  const space = text.slice(start, hit).search(/\s\S/);
  if (space >= 0 && space < SNIPPET_LEAD / 2) return start + space + 1;
  return isLow(text.charCodeAt(start)) ? start + 1 : start;
}

function isLow(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00;
}
