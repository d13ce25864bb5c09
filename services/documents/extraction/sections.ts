/** Divides text without pages into sections of about a page: at headings, else between paragraphs or lines. */

/** A paragraph, list item or table row. */
export interface TextBlock {
  text: string;
  /** 1 to 6 for a heading. */
  heading?: number;
  /** Starts a section whatever its length: a chapter's file. */
  isChapter?: boolean;
}

/** A section is closed before the block that would make it longer, in UTF-16 units. */
const SECTION_LENGTH = 3_000;
/** A heading starts a section only if the one before has this length; a page of headings stays one section. */
const MIN_SECTION_LENGTH = 600;
/** Headings below this level don't start a section. */
const MAX_HEADING = 3;

/** Divides blocks into sections. Never yields an empty one. */
export function* toSections(blocks: Iterable<TextBlock>, separator = "\n\n"): Generator<string> {
  let section: string[] = [];
  let length = 0;
  for (const { text: whole, heading, isChapter } of blocks) {
    for (const text of splitLong(whole)) {
      const startsHere = isChapter || (heading !== undefined && heading <= MAX_HEADING && length >= MIN_SECTION_LENGTH);
      if (length > 0 && (startsHere || length + text.length > SECTION_LENGTH)) {
        yield section.join(separator);
        section = [];
        length = 0;
      }
      if (text.trim() === "") {
        if (length > 0 && separator === "\n") section.push(text);
        continue;
      }
      section.push(text);
      length += text.length + separator.length;
    }
  }
  if (length > 0) yield section.join(separator).trimEnd();
}

/** Splits a block that is longer than a section, between words if possible. */
function* splitLong(text: string): Generator<string> {
  let at = 0;
  while (text.length - at > SECTION_LENGTH) {
    const piece = text.slice(at, at + SECTION_LENGTH);
    const space = Math.max(piece.lastIndexOf("\n"), piece.lastIndexOf(" "));
    let end = space > SECTION_LENGTH / 2 ? space + 1 : SECTION_LENGTH;
    if ((text.charCodeAt(at + end) & 0xfc00) === 0xdc00) end--; // inside a surrogate pair
    yield text.slice(at, at + end);
    at += end;
  }
  yield text.slice(at);
}
