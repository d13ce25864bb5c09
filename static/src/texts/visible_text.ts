/**
 * Makes text from elsewhere safe to decide by: what is invisible or changes the reading order is shown as its code
 * point, and words that mix alphabets are marked.
 */

/** A piece of a text, in order. */
export type TextPart =
  /** Shown as it is. */
  | { kind: "text"; text: string }
  /** A character that is shown as its code point, such as `U+202E`. */
  | { kind: "hidden"; code: string }
  /** A word with letters of scripts that aren't written together: their ISO 15924 codes, such as `["Cyrl", "Latn"]`. */
  | { kind: "mixed"; text: string; scripts: string[] };

/**
 * Splits a text into what is shown as it is and what isn't.
 *
 * @param options.isStrict Shows every invisible character. Otherwise those that ordinary text needs stay: joiners and
 *   variation selectors in emoji, joiners between letters of scripts that use them.
 */
export function splitVisibly(text: string, { isStrict = false } = {}): TextPart[] {
  const parts: TextPart[] = [];
  const hidden = isStrict ? ANY_HIDDEN : MISPLACED_HIDDEN;
  let end = 0;
  for (const match of text.matchAll(hidden)) {
    addWords(parts, text.slice(end, match.index));
    parts.push({ kind: "hidden", code: formatCodePoint(match[0]) });
    end = match.index + match[0].length;
  }
  addWords(parts, text.slice(end));
  return parts;
}

/** Returns a text with its hidden characters as `⟨U+202E⟩`, for labels and messages that can't hold elements. */
export function toVisibleText(text: string, options: { isStrict?: boolean } = {}): string {
  return splitVisibly(text, options).map((part) => part.kind === "hidden" ? `⟨${part.code}⟩` : part.text).join("");
}

/** Returns whether a text shows all that it contains: no hidden character and no word of mixed scripts. */
export function isPlain(text: string, options: { isStrict?: boolean } = {}): boolean {
  return splitVisibly(text, options).every(({ kind }) => kind === "text");
}

/** Returns JSON with the hidden characters of its strings as escapes (`\\u202e`), for a text field. The value is the same. */
export function escapeHiddenInJson(json: string): string {
  return json.replace(
    ANY_HIDDEN,
    (found) =>
      Array.from({ length: found.length }, (_, n) => `\\u${found.charCodeAt(n).toString(16).padStart(4, "0")}`).join(
        "",
      ),
  );
}

/**
 * Invisible or reordering: controls but line breaks and tabs, format characters, lone surrogates, private use, separators
 * of lines and paragraphs, and everything that Unicode calls default-ignorable (variation selectors, fillers, tags).
 * U+2800 and U+1D159 are blank symbols. Spaces are visible as spaces, except those without a width of their own.
 *
 * @see https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point
 */
const HIDDEN = String
  .raw`(?![\n\t])\p{Cc}|\p{Cf}|\p{Cs}|\p{Co}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point}|[\u2800\u{1D159}]`;
const ANY_HIDDEN = new RegExp(HIDDEN, "gu");

/** Scripts whose letters take other forms with a joiner or without. @see https://www.unicode.org/reports/tr31/#Layout_and_Format_Control_Characters */
const JOINING = [
  "Arab",
  "Beng",
  "Deva",
  "Gujr",
  "Guru",
  "Khmr",
  "Knda",
  "Mlym",
  "Mong",
  "Orya",
  "Sinh",
  "Syrc",
  "Taml",
  "Telu",
]
  .map((script) => String.raw`\p{scx=${script}}`).join("");
const MISPLACED_HIDDEN = new RegExp(
  [
    // A joiner of an emoji, and its variation selector.
    String.raw`(?<=\p{Extended_Pictographic}[\uFE0F\u{1F3FB}-\u{1F3FF}]?)\u200D(?=\p{Extended_Pictographic})`,
    String.raw`(?<=[\p{Extended_Pictographic}\d#*])[\uFE0E\uFE0F]`,
    String.raw`(?<=[${JOINING}]\p{M}*)[\u200C\u200D](?=[${JOINING}])`,
  ].map((allowed) => `(?!${allowed})`).join("") + `(?:${HIDDEN})`,
  "gu",
);

function formatCodePoint(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

function addWords(parts: TextPart[], text: string): void {
  if (text === "") return;
  // Every other script needs a character beyond Latin-1.
  if (!/[\u{100}-\u{10FFFF}]/u.test(text)) return void parts.push({ kind: "text", text });
  let end = 0;
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
    const scripts = findMixedScripts(word);
    if (scripts === undefined) continue;
    if (index > end) parts.push({ kind: "text", text: text.slice(end, index) });
    parts.push({ kind: "mixed", text: word, scripts });
    end = index + word.length;
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
}

/** Scripts in general use. @see https://www.unicode.org/reports/tr31/#Table_Recommended_Scripts */
const SCRIPTS = [
  ...["Latn", "Cyrl", "Grek", "Armn", "Hebr", "Arab", "Syrc", "Thaa", "Deva", "Beng", "Guru", "Gujr", "Orya", "Taml"],
  ...["Telu", "Knda", "Mlym", "Sinh", "Thai", "Laoo", "Tibt", "Mymr", "Geor", "Ethi", "Khmr", "Mong", "Cher", "Copt"],
  ...["Hang", "Hani", "Hira", "Kana", "Bopo"],
].map((code) => ({ code, letters: new RegExp(String.raw`^\p{scx=${code}}$`, "u") }));
const NO_SCRIPT = /^[\p{scx=Zyyy}\p{scx=Zinh}]$/u;
/** The writing systems of several scripts that a word may use, alone or with Latin. */
const WRITING_SYSTEMS = [["Hani", "Hira", "Kana"], ["Hani", "Bopo"], ["Hani", "Hang"]];

/**
 * Returns the scripts of a word that isn't "highly restrictive": neither of one script nor of Latin with one of the
 * writing systems of Chinese, Japanese and Korean.
 *
 * @see https://www.unicode.org/reports/tr39/#Restriction_Level_Detection
 */
function findMixedScripts(word: string): string[] | undefined {
  // A letter can be written in several scripts; each must fit.
  const letters = [...word].filter((letter) => !NO_SCRIPT.test(letter)).map((letter) => {
    const found = SCRIPTS.filter(({ letters }) => letters.test(letter)).map(({ code }) => code);
    return found.length === 0 ? ["Zzzz"] : found;
  });
  const isCovered = (allowed: readonly string[]) =>
    letters.every((found) => found.some((code) => allowed.includes(code)));
  const found = [...new Set(letters.flat())];
  if (found.some((code) => isCovered([code]))) return undefined;
  if (WRITING_SYSTEMS.some((system) => isCovered(["Latn", ...system]))) return undefined;
  return letters.length === 0 ? undefined : found.sort();
}
