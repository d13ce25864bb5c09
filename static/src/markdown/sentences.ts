/** Whole sentences out of a text that grows, for those who listen instead of look. */

/** Gives each sentence of a growing text once, as soon as it is whole. */
export class Sentences {
  #spoken = 0;

  /** @param known What is there already; its whole sentences count as read. */
  constructor(known = "") {
    this.#spoken = lastEnd(known);
  }

  /** @param isFinal The text is whole, so the rest counts as a sentence. */
  next(text: string, isFinal: boolean): string {
    if (text.length <= this.#spoken) return "";
    const fresh = text.slice(this.#spoken);
    const end = isFinal ? fresh.length : lastEnd(fresh);
    this.#spoken += end;
    return plain(fresh.slice(0, end));
  }
}

/** Ends of sentences: a mark with white space behind it, a wide mark, or a line's end. */
export const SENTENCE_END = /[.!?…]["'”’)\]*_]*(?=\s)|[。！？]|\n/g;

/** Where the last whole sentence ends. */
function lastEnd(text: string): number {
  let end = 0;
  for (const match of text.matchAll(SENTENCE_END)) end = match.index + match[0].length;
  return end;
}

/** A link or an image. No part of it runs past another opening bracket, so that 100,000 of them take linear time. */
const LINK = /!?\[([^[\]]*)\]\((?:[^()\n]|\([^()\n]*\))*\)/g;

/** Leaves out the marks that only mean looks. */
export function plain(text: string): string {
  return text
    .replace(LINK, "$1")
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+]|```\S*)\s*/gm, "")
    .replace(/[*_`~]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
