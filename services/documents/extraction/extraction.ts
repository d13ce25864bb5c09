/** What the extraction of a text takes and gives; both sides of the Worker use it. */
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
