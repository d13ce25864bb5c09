/** Splits growing text into whole sentences, for screen readers and speech. */

import { stripTags } from "./html_tags.ts";

/** Returns each sentence of a growing text once, as soon as it is complete. */
export class Sentences {
  #spoken = 0;

  /** @param known Text that was there before; its whole sentences are skipped. */
  constructor(known = "") {
    this.#spoken = findLastEnd(known);
  }

  /** @param isFinal The text is complete, so the rest counts as a sentence. */
  next(text: string, isFinal: boolean): string {
    if (text.length <= this.#spoken) return "";
    const fresh = text.slice(this.#spoken);
    const end = isFinal ? fresh.length : findLastEnd(fresh);
    this.#spoken += end;
    return stripMarkdown(fresh.slice(0, end));
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

/** A link or an image. It never crosses another opening bracket, so that 100,000 of them take linear time. */
const LINK = /!?\[([^[\]]*)\]\((?:[^()\n]|\([^()\n]*\))*\)/g;

/** The cells of a table's row; nothing for the line below its head. */
function speakRow(row: string): string {
  if (/^[|:\s-]*$/.test(row)) return "";
  return row.split("|").map((cell) => cell.trim()).filter((cell) => cell !== "").join(", ");
}

/** Removes formatting marks. */
export function stripMarkdown(text: string): string {
  return stripTags(text)
    .replace(LINK, "$1")
    .replace(/\[\^[^\]\s]{1,64}\]:?/g, "")
    .replace(/^[ \t]*\|.*$/gm, speakRow)
    .replace(/^(\s{0,3}[-*+]\s+)\[[ xX]\]\s/gm, "$1")
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+]|```\S*)\s*/gm, "")
    .replace(/[*_`~]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
