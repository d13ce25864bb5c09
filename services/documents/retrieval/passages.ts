/** Cuts the text of a document into passages: parts of a page that are ranked and sent by themselves. */
import type { DocumentPage } from "../document.ts";

/** A part of a page. */
export interface Passage {
  /** From 0, in reading order. */
  n: number;
  /** Number of its page. */
  page: number;
  text: string;
}

/** Longest passage in UTF-16 units: about 200 tokens. */
const PASSAGE_LENGTH = 900;
/** Shorter paragraphs are joined with the next one. */
const MIN_LENGTH = 300;

/** Yields the passages of a page. @param first Number of the first one. */
export function* toPassages({ n: page, text }: DocumentPage, first: number): Generator<Passage> {
  let n = first;
  let passage = "";
  const separator = "\n\n";
  for (const paragraph of splitParagraphs(text)) {
    const isFull = passage.length + paragraph.length + separator.length > PASSAGE_LENGTH;
    if (passage !== "" && (isFull || passage.length >= MIN_LENGTH)) {
      yield { n: n++, page, text: passage };
      passage = "";
    }
    passage = passage === "" ? paragraph : `${passage}${separator}${paragraph}`;
  }
  if (passage !== "") yield { n: n++, page, text: passage };
}

/** Splits a page at empty lines; longer paragraphs after sentences, else between words. */
function* splitParagraphs(text: string): Generator<string> {
  for (const whole of text.split(/\n\s*\n/)) {
    let rest = whole.trim();
    while (rest.length > PASSAGE_LENGTH) {
      const end = findCut(rest.slice(0, PASSAGE_LENGTH));
      yield rest.slice(0, end).trim();
      rest = rest.slice(end).trim();
    }
    if (rest !== "") yield rest;
  }
}

function findCut(piece: string): number {
  let sentence = 0;
  for (const { index, 0: mark } of piece.matchAll(/[.!?。！？]["”’)]?\s|[。！？]/g)) sentence = index + mark.length;
  if (sentence > PASSAGE_LENGTH / 3) return sentence;
  // The lines of a PDF end inside sentences, so a line break is no better than a space.
  const space = Math.max(piece.lastIndexOf(" "), piece.lastIndexOf("\n")) + 1;
  if (space > PASSAGE_LENGTH / 3) return space;
  return (piece.charCodeAt(piece.length - 1) & 0xfc00) === 0xd800 ? piece.length - 1 : piece.length;
}
