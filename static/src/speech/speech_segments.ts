/** Splits a message into segments to read aloud: sentences, and quotations if they have their own voice. */
import { plain, SENTENCE_END } from "../markdown/sentences.ts";

/** One segment of speech. */
export interface SpeechSegment {
  text: string;
  /** True inside quotation marks; always false if quotations aren't split. */
  isQuoted: boolean;
}

/**
 * Longer sentences are split. Servers accept 4,096 characters, and many generate all of a text before its first sound.
 */
const MAX_LENGTH = 400;

/** Closing quotation marks by their opening one. A straight mark is its own. */
const QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "“": "”",
  "„": "“”",
  "«": "»",
  "»": "«",
  "「": "」",
  "『": "』",
};

/** Abbreviations: a period after one of these ends no sentence. */
const ABBREVIATED = /(?:^|[\s("“„«])(?:Mrs?|Ms|Dr|Prof|St|vs|bzw|ca|Nr|No|z\.\s?B|e\.g|i\.e|\p{Lu}|\d{1,2})\.$/u;

/** Splits a growing text. */
export class SpeechSegments {
  readonly #isSplit: boolean;
  #read = 0;
  #isInCode = false;
  #isAtLineStart = true;
  /** The closing mark of the open quotation. */
  #closing: string | undefined;

  /** @param options.isSplit Quotations become segments. @param options.known Text to skip. */
  constructor({ isSplit = false, known = "" }: { isSplit?: boolean; known?: string } = {}) {
    this.#isSplit = isSplit;
    // A period at the end counts, whatever follows.
    this.next(`${known} `, false);
  }

  /** Returns the segments that became complete. @param isFinal The text is complete, so its rest is a segment. */
  next(text: string, isFinal: boolean): SpeechSegment[] {
    const sentences = splitSentences(text.slice(this.#read), isFinal);
    return sentences.flatMap((sentence) => {
      this.#read += sentence.length;
      return this.#piecesOf(sentence);
    });
  }

  #piecesOf(sentence: string): SpeechSegment[] {
    const isLineStart = this.#isAtLineStart;
    this.#isAtLineStart = sentence.endsWith("\n");
    if (isLineStart && /^\s{0,3}(?:```|~~~)/.test(sentence)) {
      this.#isInCode = !this.#isInCode;
      return [];
    }
    if (this.#isInCode) return [];
    const runs = this.#isSplit ? this.#runsOf(sentence) : [{ text: sentence, isQuoted: false }];
    // A quotation that nobody closed ends with its paragraph.
    if (this.#isAtLineStart) this.#closing = undefined;
    return runs.flatMap(({ text, isQuoted }) => listSpokenParts(text).map((part) => ({ text: part, isQuoted })));
  }

  /** Cuts a sentence at its quotation marks, which go. */
  #runsOf(sentence: string): SpeechSegment[] {
    const runs: SpeechSegment[] = [];
    let text = "";
    const cut = (isQuoted: boolean) => {
      runs.push({ text, isQuoted });
      text = "";
    };
    for (const letter of sentence) {
      if (this.#closing?.includes(letter)) {
        cut(true);
        this.#closing = undefined;
      } else if (this.#closing === undefined && Object.hasOwn(QUOTES, letter)) {
        cut(false);
        this.#closing = QUOTES[letter];
      } else text += letter;
    }
    cut(this.#closing !== undefined);
    return runs;
  }
}

/** More than the longest of `ABBREVIATED`. */
const ABBREVIATION_LENGTH = 12;

/** Splits a text after each whole sentence. The rest counts only if the text is complete. */
function splitSentences(text: string, isFinal: boolean): string[] {
  const sentences: string[] = [];
  let from = 0;
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    // Only the end of the sentence counts; otherwise a text of abbreviations takes quadratic time.
    if (ABBREVIATED.test(text.slice(Math.max(from, end - ABBREVIATION_LENGTH), end))) continue;
    sentences.push(text.slice(from, end));
    from = end;
  }
  if (isFinal && from < text.length) sentences.push(text.slice(from));
  return sentences;
}

/** Returns a text as it is spoken: without formatting, URLs as their host, nothing without words. */
function listSpokenParts(text: string): string[] {
  const said = plain(text)
    .replace(/\bhttps?:\/\/(?:www\.)?([^\s/?#]+)\S*/g, "$1")
    .replace(/^\||\|$/g, "")
    .replace(/\s*\|\s*/g, ", ")
    .trim();
  return /[\p{L}\p{N}]/u.test(said) ? [...shorter(said)] : [];
}

function* shorter(text: string): Generator<string> {
  let rest = text;
  while (rest.length > MAX_LENGTH) {
    const head = rest.slice(0, MAX_LENGTH);
    const at = Math.max(head.lastIndexOf(" "), ...[",", ";", ":", "、", "，"].map((mark) => head.lastIndexOf(mark)));
    const cut = at <= 0 ? MAX_LENGTH : at + 1;
    yield rest.slice(0, cut).trim();
    rest = rest.slice(cut).trim();
  }
  if (rest !== "") yield rest;
}
