/**
 * Documents: files and links whose text can be sent to a model. Defines their types, page lists (`"3-5,12"`) and table
 * rows.
 */
import type { LedgerEntry } from "../json/ledger.ts";
import { isId } from "../storage/ids.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { Opener, PurposeSealer } from "../crypto/sealer.ts";
import type { SealedFile } from "../storage/sealed_file.ts";

/** `extracting` until its text is stored. */
type DocumentState = "extracting" | "ready" | "failed";

/** Why a document has no text. The last three are for links that can't be fetched, cancelled jobs and bugs. */
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

/** What the text is divided into. Only PDF has pages; other files have sections. */
export type PageUnit = typeof PAGE_UNITS[number];

/** All of them. */
export const PAGE_UNITS = ["page", "section"] as const;

/** What a file contains besides the text that is read, by kind. */
export const DOCUMENT_LEDGER = {
  encoding: "The encoding of the text was guessed or chosen",
  encoding_unsure: "The encoding of the text isn't certain",
  undecodable: "Characters that have no meaning in the encoding of the text",
  unmapped: "Characters whose font doesn't say which letters they are",
  page_without_text: "Pages without text, such as scans: they can be sent as images",
  damaged_page: "Pages that can't be read",
  xfa: "A form for Adobe Reader (XFA) whose pages only its program can show",
  missing: "Parts that the file names but doesn't contain",
  outside: "Characters outside of the article, such as menus",
  image: "Images, which have no text",
  link: "Addresses of links, which aren't in the text",
  media: "Audio and video, which have no text",
  embedded: "Attached or embedded files that aren't read",
  tracked_changes: "Tracked changes, read as if accepted",
  formula: "Formulas without a stored result, read as they are written",
  stored_result: "Formulas, read as their stored results",
  repeated: "Repeats of the same cell or row beyond a thousand, which are left out",
  hidden: "Hidden sheets, rows, columns, slides and text, which are read like others",
  script: "Scripts, which aren't run",
  unknown: "Parts of a kind that Parlor doesn't know",
} as const;

/** A kind of entry in the ledger of a document. */
export type DocumentLedgerKind = keyof typeof DOCUMENT_LEDGER;

/** A document without its text. */
export interface StoredDocument {
  id: string;
  /** File name, the title of a link's page, or the name that the user gave it. */
  name: string;
  /** True if reading a link again doesn't change its name. */
  hasOwnName?: true;
  contentType: string;
  /** Size of the original; 0 until a link is fetched. */
  sizeBytes: number;
  /** Number of pages or sections; 0 until it's known. */
  pages: number;
  unit: PageUnit;
  /** Estimated number of tokens of the whole text. */
  tokens: number;
  state: DocumentState;
  error?: DocumentError;
  /** True if its stored fields can't be decrypted. It has no name, type or text then. Never stored. */
  isUnreadable?: true;
  /** Address of a link. */
  url?: string;
  /** Charset that the server of a link named. */
  charset?: string;
  /** Encoding of a text file. */
  encoding?: string;
  /** Encoding that the user chose for the next reading. */
  chosenEncoding?: string;
  /** Languages of the user who added it, to guess an encoding. */
  languages?: string[];
  /** What the file contains besides its text. Absent if it was read by a version without ledgers. */
  ledger?: LedgerEntry<DocumentLedgerKind>[];
  /** Number of the first part of the text. By default 0; it grows each time the file is read again. */
  firstPart?: number;
  /** Set while the file is read again: the first part of the new text, and the state to return to if that fails. */
  reading?: { firstPart: number; before: Pick<StoredDocument, "state" | "error" | "unit" | "pages" | "tokens"> };
  /** Milliseconds since 1970. */
  createdAtMs: number;
  updatedAtMs: number;
}

/** One page or section. */
export interface DocumentPage {
  /** Page number, from 1. */
  n: number;
  text: string;
}

/** How a document is used: as much as fits, all of it, or certain pages. */
export interface DocumentUse {
  id: string;
  use: "auto" | "whole" | "pages";
  /** Page list such as `"3-5,12"`; only with `pages`. */
  pages?: string;
}

/** Maximum length of a document's name. */
export const MAX_DOCUMENT_NAME = 200;

/** Maximum number of documents of a message, conversation, character or persona. */
export const MAX_DOCUMENTS = 100;

/** Parses the `documents` field of a stored message or conversation, which clients write. Skips invalid entries. */
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

/** Maximum number of ranges; nobody writes so many. */
const MAX_RANGES = 1_000;
/** Maximum page number; no document has more pages. */
const MAX_PAGE = 1_000_000;

/**
 * Parses a page list.
 *
 * @returns The pages in ascending order, each once; `undefined` if the text isn't a page list.
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

/** Sorts ranges and merges those that overlap or touch. */
function joinRanges(ranges: readonly PageRange[]): PageRange[] {
  const joined: PageRange[] = [];
  for (const { first, last } of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else joined.push({ first, last });
  }
  return joined;
}

/** Kinds of owners that documents can be attached to. */
export type DocumentOwnerKind = "character" | "persona";

/** Stores which documents are attached to characters and personas. */
export class DocumentUseStore {
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

  /** Returns whether there are documents at all. If not, a prompt needn't search its history for them. */
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

/**
 * A row of `document_file`, one per document. Names and types are encrypted. Rows of deleted documents stay until they
 * leave the trash.
 */
export interface DocumentRow {
  id: string;
  created_at: number;
  /** Also the version in the AAD of `sealed`. */
  updated_at: number;
  bytes: number;
  deleted_at: number | null;
  sealed: Uint8Array;
}

/** The encrypted fields of a row. */
type SealedFields = Omit<StoredDocument, "id" | "sizeBytes" | "createdAtMs" | "updatedAtMs">;

/** A row of `document_text`: the encrypted text of a few pages. */
export interface TextRow {
  document_id: string;
  /** Number of the part, from 0. */
  part: number;
  first_page: number;
  last_page: number;
  sealed: Uint8Array;
}

/** Columns of a `DocumentRow`. */
export const DOCUMENT_COLUMNS = "id, created_at, updated_at, bytes, deleted_at, sealed";

const decoder = new TextDecoder();

/** Returns path and binding of the original. It's never changed, so it has one version. */
export function getOriginalFile(folder: string, id: string): SealedFile {
  return { path: `${folder}/${id}`, aad: { table: "documents", id, field: "file", version: 1 } };
}

/** Returns the AAD of a document's encrypted fields. */
export function createDocumentAad(id: string, updatedAtMs: number) {
  return { table: "document_file", id, field: "fields", version: updatedAtMs };
}

/** Returns the AAD of a part of the text. A part is written once: each reading numbers its parts from the last one. */
export function createTextAad(documentId: string, part: number) {
  return { table: "document_text", id: documentId, field: `pages/${part}`, version: 1 };
}

/** Returns the statement that adds a document. */
export function insertDocument(sealer: PurposeSealer, document: StoredDocument): Statement {
  const { id, sizeBytes, createdAtMs, updatedAtMs } = document;
  return {
    sql: "INSERT INTO document_file (id, created_at, updated_at, bytes, sealed) VALUES (?, ?, ?, ?, ?)",
    params: [id, createdAtMs, updatedAtMs, sizeBytes, sealFields(sealer, document)],
  };
}

/** Returns the statement that changes a document. It fails if the document no longer exists. */
export function updateDocument(sealer: PurposeSealer, document: StoredDocument): Statement {
  const { id, sizeBytes, updatedAtMs } = document;
  return {
    sql: "UPDATE document_file SET updated_at = ?, bytes = ?, sealed = ? WHERE id = ?",
    params: [updatedAtMs, sizeBytes, sealFields(sealer, document), id],
    expectChanges: 1,
  };
}

function sealFields(sealer: PurposeSealer, document: StoredDocument): Uint8Array<ArrayBuffer> {
  const { id, sizeBytes: _, createdAtMs: __, updatedAtMs, ...fields } = document;
  return sealer.sealNow(createDocumentAad(id, updatedAtMs), JSON.stringify(fields satisfies SealedFields));
}

/** Decrypts a row. @throws {AppError} `internal` if it was modified or encrypted with another key. */
export function openDocument(sealer: Pick<PurposeSealer, "openNow">, row: DocumentRow): StoredDocument {
  const opened = sealer.openNow(createDocumentAad(row.id, row.updated_at), row.sealed);
  return toDocument(row, opened);
}

/** Like `openDocument`, off the calling thread. */
export async function openDocumentWith(opener: Opener, row: DocumentRow): Promise<StoredDocument> {
  return toDocument(row, await opener.open(createDocumentAad(row.id, row.updated_at), row.sealed));
}

function toDocument(row: DocumentRow, opened: Uint8Array): StoredDocument {
  const fields: SealedFields = JSON.parse(decoder.decode(opened));
  return {
    ...fields,
    id: row.id,
    sizeBytes: row.bytes,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
  };
}

/**
 * Returns the statement that adds some pages, encrypted, as a part of a document's text. It fails if the document no
 * longer exists.
 */
export async function sealText(
  sealer: PurposeSealer,
  documentId: string,
  part: number,
  pages: readonly DocumentPage[],
): Promise<Statement> {
  const sealed = await sealer.seal(createTextAad(documentId, part), JSON.stringify(pages));
  return {
    sql: `INSERT INTO document_text (document_id, part, first_page, last_page, sealed)
          SELECT id, ?2, ?3, ?4, ?5 FROM document_file WHERE id = ?1`,
    params: [documentId, part, pages[0]!.n, pages.at(-1)!.n, sealed],
    expectChanges: 1,
  };
}

/** Decrypts a part of a text. @throws {AppError} `internal` */
export async function openText(opener: Opener, row: TextRow): Promise<DocumentPage[]> {
  return JSON.parse(decoder.decode(await opener.open(createTextAad(row.document_id, row.part), row.sealed)));
}

/** Returns the statement that deletes the text of a document, by default all parts. */
export function removeText(id: string, { from = 0, to = Number.MAX_SAFE_INTEGER } = {}): Statement {
  return {
    sql: "DELETE FROM document_text WHERE document_id = ? AND part >= ? AND part < ?",
    params: [id, from, to],
  };
}

/** Returns the first text row of a document that contains any of the pages. */
export function findTextRow(
  db: Pick<Database, "get">,
  { id, firstPart = 0 }: Pick<StoredDocument, "id" | "firstPart">,
  first: number,
  last: number,
): TextRow | undefined {
  return db.get<TextRow>(
    `SELECT document_id, part, first_page, last_page, sealed FROM document_text
     WHERE document_id = ? AND part >= ? AND last_page >= ? AND first_page <= ? ORDER BY part LIMIT 1`,
    id,
    firstPart,
    first,
    last,
  );
}

/** Returns the number of the part after the last one of a document. */
export function findNextPart(db: Pick<Database, "get">, id: string): number {
  const row = db.get<{ next: number | null }>(
    "SELECT max(part) + 1 AS next FROM document_text WHERE document_id = ?",
    id,
  );
  return row?.next ?? 0;
}
