/**
 * Types of documents: files and links whose text a model can be sent, lists of their pages (`"3-5,12"`), and the documents that
 * characters and personas always have at hand. Those aren't part of the card files, which are shared.
 */
import { isId } from "../storage/ids.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "../storage/database/database.ts";

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

/** More ranges than a person writes. */
const MAX_RANGES = 1_000;
/** No document has more pages. */
const MAX_PAGE = 1_000_000;

/**
 * Parses a list of pages.
 *
 * @returns The pages in ascending order, each once; `undefined` if the text isn't a list of pages.
 */
export function parsePages(text: string): PageRange[] | undefined {
  const parts = text.split(",").map((part) => part.trim()).filter((part) => part !== "");
  if (parts.length === 0 || parts.length > MAX_RANGES) return undefined;
  const ranges: PageRange[] = [];
  for (const part of parts) {
    const match = /^(\d{1,7})(?:\s*[-–]\s*(\d{1,7}))?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (first < 1 || last < first || last > MAX_PAGE) return undefined;
    ranges.push({ first, last });
  }
  return joinRanges(ranges);
}

/** Pages from `first` to `last`, both included. The first page of a document is 1. */
export interface PageRange {
  first: number;
  last: number;
}

/** Formats ranges: `"3-5,12"`. */
export function formatPages(ranges: readonly PageRange[]): string {
  return ranges.map(({ first, last }) => first === last ? `${first}` : `${first}-${last}`).join(",");
}

/** Converts page numbers to ranges. */
export function toPageRanges(pages: Iterable<number>): PageRange[] {
  return joinRanges([...pages].map((page) => ({ first: page, last: page })));
}

/** Returns whether a page is in one of the ranges. */
export function includesPage(ranges: readonly PageRange[], page: number): boolean {
  return ranges.some(({ first, last }) => page >= first && page <= last);
}

/** Sorts ranges and joins those that overlap or touch. */
function joinRanges(ranges: readonly PageRange[]): PageRange[] {
  const joined: PageRange[] = [];
  for (const { first, last } of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else joined.push({ first, last });
  }
  return joined;
}

/** Who has documents at hand. */
export type DocumentOwnerKind = "character" | "persona";

/** Stores which documents characters and personas have. */
export class DocumentUses {
  readonly #db: Database;
  readonly #events: EventHub;

  constructor({ db, events }: { db: Database; events: EventHub }) {
    this.#db = db;
    this.#events = events;
  }

  /** Returns the documents of an owner, in order. */
  get(kind: DocumentOwnerKind, id: string): DocumentUse[] {
    const row = this.#db.get<{ uses: string }>(
      "SELECT uses FROM document_use WHERE owner_kind = ? AND owner_id = ?",
      kind,
      id,
    );
    return row === undefined ? [] : parseDocumentUses(JSON.parse(row.uses));
  }

  /** Replaces the documents of an owner. */
  async put(kind: DocumentOwnerKind, id: string, uses: readonly DocumentUse[]): Promise<void> {
    const statement: Statement = uses.length === 0
      ? { sql: "DELETE FROM document_use WHERE owner_kind = ? AND owner_id = ?", params: [kind, id] }
      : {
        sql: "INSERT OR REPLACE INTO document_use (owner_kind, owner_id, uses) VALUES (?, ?, ?)",
        params: [kind, id, JSON.stringify(uses)],
      };
    await this.#db.write([statement]);
    this.#events.publish({ kind, id });
  }

  /** Returns whether there are documents at all; a prompt without any needn't search its history for them. */
  hasDocuments(): boolean {
    return this.#db.get("SELECT 1 FROM document_file WHERE deleted_at IS NULL LIMIT 1") !== undefined;
  }

  /** Lists all owners with their documents. */
  list(): { kind: DocumentOwnerKind; id: string; documents: DocumentUse[] }[] {
    return this.#db.all<{ owner_kind: DocumentOwnerKind; owner_id: string; uses: string }>(
      "SELECT owner_kind, owner_id, uses FROM document_use ORDER BY owner_kind, owner_id",
    ).map(({ owner_kind: kind, owner_id: id, uses }) => ({ kind, id, documents: parseDocumentUses(JSON.parse(uses)) }));
  }
}
