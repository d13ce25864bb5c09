/** Scans the sealed text of documents, newest first; search_text.ts decides what a hit is. */
import type { Opener } from "../../crypto/sealer.ts";
import {
  DOCUMENT_COLUMNS,
  type DocumentRow,
  openDocumentWith,
  openText,
  type TextRow,
} from "../../documents/document.ts";
import type { Reader } from "../../storage/database/database.ts";
import { fold, holdsAll, snippetAround } from "./search_text.ts";

/** A page that contains all terms. */
export interface DocumentHit {
  document_id: string;
  /** From 1; also of a section. */
  page: number;
  /** Name of the document. */
  title: string;
  /** The text around the hit, about 160 characters. */
  snippet: string;
  /** When the document was added; ISO 8601, UTC. */
  created_at: string;
}

/** Where a scan continues: after a page of a document. */
export interface DocumentCursor {
  createdAtMs: number;
  id: string;
  page: number;
}

/** Hits, and where to continue. */
export interface DocumentPageOfHits {
  items: DocumentHit[];
  next?: DocumentCursor;
}

/** Bytes opened after which hits are returned, so that first hits don't wait for rare ones. */
const PAGE_BYTES = 8 * 1024 * 1024;

/**
 * Returns hits, at most `limit`. Skips documents that can't be opened.
 *
 * @param terms Folded; all have to occur on one page.
 * @throws The signal's reason once it fires.
 */
export async function scanDocuments(
  { reader, opener }: { reader: Pick<Reader, "all">; opener: Opener },
  { terms, from, limit }: { terms: readonly string[]; from?: DocumentCursor; limit: number },
  signal: AbortSignal,
): Promise<DocumentPageOfHits> {
  const items: DocumentHit[] = [];
  let openedBytes = 0;
  const rows = reader.all<DocumentRow>(
    `SELECT ${DOCUMENT_COLUMNS} FROM document_file
     WHERE deleted_at IS NULL AND (created_at < ?1 OR (created_at = ?1 AND id <= ?2)) ORDER BY created_at DESC, id DESC`,
    from?.createdAtMs ?? Number.MAX_SAFE_INTEGER,
    from?.id ?? "~",
  );
  for (const row of rows) {
    signal.throwIfAborted();
    const document = await openDocumentWith(opener, row).catch(() => undefined);
    if (document?.state !== "ready") continue;
    const { id, name: title, createdAtMs } = document;
    let after = from?.id === id ? from.page : 0;
    for (;;) {
      const [part] = reader.all<TextRow>(
        `SELECT document_id, part, first_page, last_page, sealed FROM document_text
         WHERE document_id = ? AND last_page > ? ORDER BY part LIMIT 1`,
        id,
        after,
      );
      if (part === undefined) break;
      signal.throwIfAborted();
      openedBytes += part.sealed.length;
      for (const { n, text } of await openText(opener, part).catch(() => [])) {
        if (n <= after || !holdsAll(fold(text), terms)) continue;
        const snippet = snippetAround(text, terms);
        items.push({ document_id: id, page: n, title, snippet, created_at: new Date(createdAtMs).toISOString() });
        if (items.length >= limit) return { items, next: { createdAtMs, id, page: n } };
      }
      after = part.last_page;
      if (items.length > 0 && openedBytes >= PAGE_BYTES) return { items, next: { createdAtMs, id, page: after } };
    }
  }
  return { items };
}
