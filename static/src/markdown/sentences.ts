/** Splits growing text into whole sentences, for screen readers and speech. */
import { SpokenBlocks, type SpokenWords, toSpokenText } from "./plain_text.ts";

/** Returns each sentence of a growing text once, as soon as it is complete. */
export class Sentences {
  readonly #words: SpokenWords;
  readonly #blocks: SpokenBlocks;
  #spoken = 0;

  /** @param known Text that was there before; its whole sentences are skipped. */
  constructor(words: SpokenWords, known = "") {
    this.#words = words;
    this.#blocks = new SpokenBlocks(words);
    this.#spoken = findLastEnd(known);
    this.#blocks.next(known.slice(0, this.#spoken));
  }

  /** @param isFinal The text is complete, so the rest counts as a sentence. */
  next(text: string, isFinal: boolean): string {
    if (text.length <= this.#spoken) return "";
    const fresh = text.slice(this.#spoken);
    const end = isFinal ? fresh.length : findLastEnd(fresh);
    this.#spoken += end;
    return toSpokenText(this.#blocks.next(fresh.slice(0, end)), this.#words);
  }
}

/** Ends of sentences: a mark before white space, a full-width mark, or a line break. */
export const SENTENCE_END = /[.!?…]["'”’)\]*_]*(?=\s)|[。！？]|\n/g;

/** Returns the end of the last whole sentence. */
function findLastEnd(text: string): number {
  let end = 0;
  for (const match of text.matchAll(SENTENCE_END)) end = match.index + match[0].length;
  return end;
}
