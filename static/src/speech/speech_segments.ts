/** What of a message is read aloud, in pieces: a sentence each, and apart by voice where quotations have one of their own. */
import { plain, SENTENCE_END } from "../markdown/sentences.ts";

/** One thing to say. */
export interface SpeechSegment {
  text: string;
  /** It stands in quotation marks; always false where nobody asked to tell them apart. */
  isQuoted: boolean;
}

/** Longer sentences are said in parts: servers take 4,096 characters, and many make all of a text before its first sound. */
const MAX_LENGTH = 400;

/** Closing marks by the opening one; a straight mark is its own. */
const QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "“": "”",
  "„": "“”",
  "«": "»",
  "»": "«",
  "「": "」",
  "『": "』",
};

/** A full stop behind one of these ends no sentence. */
const ABBREVIATED = /(?:^|[\s("“„«])(?:Mrs?|Ms|Dr|Prof|St|vs|bzw|ca|Nr|No|z\.\s?B|e\.g|i\.e|\p{Lu}|\d{1,2})\.$/u;

/** Takes a growing text apart. */
export class SpeechSegments {
  readonly #isSplit: boolean;
  #read = 0;
  #isInCode = false;
  #isAtLineStart = true;
  /** What closes the quotation that is open. */
  #closing: string | undefined;

  /** @param options.isSplit Quotations become pieces of their own. @param options.known Text that is not said any more. */
  constructor({ isSplit = false, known = "" }: { isSplit?: boolean; known?: string } = {}) {
    this.#isSplit = isSplit;
    // A full stop at its end is one, whatever comes behind it.
    this.next(`${known} `, false);
  }

  /** Gives the pieces that became whole. @param isFinal The text is whole, so its rest is one more. */
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

/** Cuts a text behind each whole sentence; what is left without an end is one only where the text is whole. */
function splitSentences(text: string, isFinal: boolean): string[] {
  const sentences: string[] = [];
  let from = 0;
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    // Only the end of the sentence counts; with all of it, a text of abbreviations would take quadratic time.
    if (ABBREVIATED.test(text.slice(Math.max(from, end - ABBREVIATION_LENGTH), end))) continue;
    sentences.push(text.slice(from, end));
    from = end;
  }
  if (isFinal && from < text.length) sentences.push(text.slice(from));
  return sentences;
}

/** Gives a text as it is said: without marks of looks, addresses by their host alone, nothing where no word is. */
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
