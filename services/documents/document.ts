/** Types of documents: files and links whose text a model can be sent. */
import { isId } from "../storage/ids.ts";
import { formatPages, parsePages } from "./page_ranges.ts";

/** `extracting` until its text is stored. */
export type DocumentState = "extracting" | "ready" | "failed";

/** Why a document has no text. The last three are failures to fetch a link, cancelled jobs and defects. */
export const DOCUMENT_ERRORS = [
  ...["encrypted", "no_text", "too_large", "damaged", "timeout", "unsupported"] as const,
  ...["upstream_error", "cancelled", "internal"] as const,
];
/** One of them. */
export type DocumentErrorCode = typeof DOCUMENT_ERRORS[number];

/** Why a document has no text. */
export interface DocumentError {
  code: DocumentErrorCode;
  message: string;
}

/** What its parts are. Only PDF has pages; the text of other files is divided into sections. */
export type PageUnit = "page" | "section";

/** A document without its text. */
export interface StoredDocument {
  id: string;
  /** File name, or the title of a link's page. */
  name: string;
  contentType: string;
  /** Size of the original; 0 until a link is fetched. */
  sizeBytes: number;
  /** Number of pages or sections; 0 until they are known. */
  pages: number;
  unit: PageUnit;
  /** Estimated tokens of the whole text. */
  tokens: number;
  state: DocumentState;
  error?: DocumentError;
  /** True if what is stored about it can't be opened: it has no name, type or text. Never stored. */
  isUnreadable?: true;
  /** Address of a link. */
  url?: string;
  /** Milliseconds since 1970. */
  createdAtMs: number;
  updatedAtMs: number;
}

/** One page or section. */
export interface DocumentPage {
  /** From 1. */
  n: number;
  text: string;
}

/** How a document is used: as much as fits, all of it, or the pages named. */
export interface DocumentUse {
  id: string;
  use: "auto" | "whole" | "pages";
  /** Such as `"3-5,12"`; only with `pages`. */
  pages?: string;
}

/** Most documents that one message, conversation, character or persona may have. */
export const MAX_DOCUMENTS = 100;

/**
 * Parses the `documents` field of a stored message or conversation, which clients write. Skips what isn't valid.
 */
export function parseDocumentUses(value: unknown): DocumentUse[] {
  if (!Array.isArray(value)) return [];
  const uses: DocumentUse[] = [];
  for (const item of value.slice(0, MAX_DOCUMENTS)) {
    if (typeof item !== "object" || item === null) continue;
    const { id, use, pages } = item as Record<string, unknown>;
    if (typeof id !== "string" || !isId(id) || uses.some((other) => other.id === id)) continue;
    const ranges = use === "pages" && typeof pages === "string" ? parsePages(pages) : undefined;
    if (ranges !== undefined) uses.push({ id, use: "pages", pages: formatPages(ranges) });
    else uses.push({ id, use: use === "whole" ? "whole" : "auto" });
  }
  return uses;
}
