/**
 * Table rows of documents. `document_file` has one row per document and `document_text` its text, a few pages per row.
 * Names, types and text are sealed. Rows of removed documents stay until the trash is emptied.
 */
import type { Opener, PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { SealedFile } from "../storage/sealed_file.ts";
import type { DocumentPage, StoredDocument } from "./document.ts";

/** A row of `document_file`. */
export interface DocumentRow {
  id: string;
  created_at: number;
  /** Also the version that the sealed value is bound to. */
  updated_at: number;
  bytes: number;
  deleted_at: number | null;
  sealed: Uint8Array;
}

/** What is sealed in a row. */
type SealedFields = Omit<StoredDocument, "id" | "sizeBytes" | "createdAtMs" | "updatedAtMs">;

/** A row of `document_text`. */
export interface TextRow {
  document_id: string;
  /** From 0. */
  part: number;
  first_page: number;
  last_page: number;
  sealed: Uint8Array;
}

/** Columns of a `DocumentRow`. */
export const DOCUMENT_COLUMNS = "id, created_at, updated_at, bytes, deleted_at, sealed";

const decoder = new TextDecoder();

/** Returns path and binding of the original. It's never changed, so it has one version. */
export function originalFile(folder: string, id: string): SealedFile {
  return { path: `${folder}/${id}`, aad: { table: "documents", id, field: "file", version: 1 } };
}

/** Returns what the sealed fields of a document are bound to. */
export function documentAad(id: string, updatedAtMs: number) {
  return { table: "document_file", id, field: "fields", version: updatedAtMs };
}

/** Returns what a part of the text is bound to. The text of a document is written once. */
export function textAad(documentId: string, part: number) {
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

/** Returns the statement that changes a document. It fails if the document is gone. */
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
  return sealer.sealNow(documentAad(id, updatedAtMs), JSON.stringify(fields satisfies SealedFields));
}

/** Opens a row. @throws {AppError} `internal` if it was modified or sealed with another key. */
export function openDocument(sealer: Pick<PurposeSealer, "openNow">, row: DocumentRow): StoredDocument {
  const opened = sealer.openNow(documentAad(row.id, row.updated_at), row.sealed);
  return toDocument(row, opened);
}

/** Like `openDocument`, off the calling thread. */
export async function openDocumentWith(opener: Opener, row: DocumentRow): Promise<StoredDocument> {
  return toDocument(row, await opener.open(documentAad(row.id, row.updated_at), row.sealed));
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

/** Seals some pages as a part of a document's text. The statement fails if the document is gone. */
export async function sealText(
  sealer: PurposeSealer,
  documentId: string,
  part: number,
  pages: readonly DocumentPage[],
): Promise<Statement> {
  const sealed = await sealer.seal(textAad(documentId, part), JSON.stringify(pages));
  return {
    sql: `INSERT INTO document_text (document_id, part, first_page, last_page, sealed)
          SELECT id, ?2, ?3, ?4, ?5 FROM document_file WHERE id = ?1`,
    params: [documentId, part, pages[0]!.n, pages.at(-1)!.n, sealed],
    expectChanges: 1,
  };
}

/** Opens a part of a text. @throws {AppError} `internal` */
export async function openText(opener: Opener, row: TextRow): Promise<DocumentPage[]> {
  return JSON.parse(decoder.decode(await opener.open(textAad(row.document_id, row.part), row.sealed)));
}

/** Returns the statement that removes the text of a document. */
export function removeText(id: string): Statement {
  return { sql: "DELETE FROM document_text WHERE document_id = ?", params: [id] };
}

/** Returns the first row of a document's text that has any of the pages. */
export function findTextRow(db: Pick<Database, "get">, id: string, first: number, last: number): TextRow | undefined {
  return db.get<TextRow>(
    `SELECT document_id, part, first_page, last_page, sealed FROM document_text
     WHERE document_id = ? AND last_page >= ? AND first_page <= ? ORDER BY part LIMIT 1`,
    id,
    first,
    last,
  );
}
