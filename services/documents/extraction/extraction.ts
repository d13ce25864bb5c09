/**
 * What the extraction of a text takes and gives; both sides of the Worker use it. Text without pages is divided into sections of
 * about a page: at headings, else between paragraphs or lines.
 */
import type { DocumentErrorCode, DocumentPage, PageUnit } from "../document.ts";

/** Limits of one document. */
export interface ExtractionLimits {
  /** Bytes after decompression, of an archive's entries together. */
  inflatedBytes: number;
  pages: number;
  /** UTF-16 units of the whole text. */
  chars: number;
}

/** The limits of every document. */
export const EXTRACTION_LIMITS: ExtractionLimits = {
  inflatedBytes: 512 * 1024 * 1024,
  pages: 5_000,
  chars: 64 * 1024 * 1024,
};

/** A file to read. */
export interface ExtractionInput {
  bytes: Uint8Array<ArrayBuffer>;
  name: string;
  /** As `sniffDocument` says. */
  contentType: string;
  limits: ExtractionLimits;
  /** Address of a link, for its title. */
  url?: string;
  /** The page, from 1, whose images are wanted instead of the text. */
  imagePage?: number;
}

/** Gives pages as they are read. */
export interface PageSink {
  /** Names the document, if the file does, and says what its parts are. */
  begin(about: { unit: PageUnit; total: number; title?: string }): void;
  /** Adds a page. Waits while earlier pages are being stored. @throws {ExtractionFault} `too_large` */
  add(text: string): Promise<void>;
}

/** Why a document can't be read; its message is shown to the owner. */
export class ExtractionFault extends Error {
  /** @param pages Pages of a file without text, if it has pages. */
  constructor(readonly code: DocumentErrorCode, message: string, readonly pages = 0) {
    super(message);
  }
}

/** Sent to the Worker: what to read, its bytes in order, the end; then a request for each batch. */
export type ExtractionOrder =
  | ({ kind: "begin"; sizeBytes: number } & Omit<ExtractionInput, "bytes">)
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "end" }
  | { kind: "more" };

/** Sent by the Worker. It waits for `more` after each batch. */
export type ExtractionAnswer =
  | { kind: "begin"; unit: PageUnit; total: number; title?: string }
  | { kind: "pages"; pages: DocumentPage[] }
  | { kind: "end" }
  | { kind: "image"; jpeg: Uint8Array<ArrayBuffer> }
  | { kind: "fault"; code: DocumentErrorCode; message: string; pages: number }
  | { kind: "memory"; bytes: number };

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
