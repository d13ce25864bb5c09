/**
 * Matches texts: parses queries and extracts snippets. Also scans the encrypted text of documents, newest
 * first. `FoldedTexts` caches the folded text of searched conversations, so that the next search only decrypts blocks
 * that may contain a hit. Only the memory of the search Worker holds the cache, and the Worker ends after a while without
 * searches.
 */
import { AppError } from "../../errors.ts";
import { containsAllTerms, foldForSearch, parseSearchTerms } from "../../json/search_fold.ts";
import type { Opener } from "../../crypto/sealer.ts";
import {
  DOCUMENT_COLUMNS,
  type DocumentRow,
  openDocumentWith,
  openText,
  type TextRow,
} from "../../documents/document.ts";
import type { Reader } from "../../storage/database/database.ts";

/** Maximum length of a query in UTF-16 units. */
const MAX_QUERY_LENGTH = 500;
/** Length of a snippet in UTF-16 units, and how many of them come before the hit. */
const SNIPPET_LENGTH = 160;
const SNIPPET_LEAD = 50;
/** Number of UTF-16 units folded at a time to find a position in a long text. */
const FOLD_CHUNK = 1024;

/** Characters that may look different in JSON, alone or after an escape: `\n` and a combining accent become `\ń`. */
const UNSURE_IN_JSON = /["\\\p{Cc}\p{Cs}\p{M}]+/u;
// deno-lint-ignore no-control-regex -- all of ASCII is meant
const ASCII = /^[\x00-\x7f]*$/;

/**
 * Returns the folded terms of a query: words and quoted phrases. The longest, which is likely the rarest, comes first.
 *
 * @throws {AppError} `invalid_request` if it's empty or too long.
 */
export function parseQuery(query: string): string[] {
  if (query.length > MAX_QUERY_LENGTH) {
    throw new AppError(
      "invalid_request",
      `The query is too long: ${query.length} characters; the limit is ${MAX_QUERY_LENGTH}`,
    );
  }
  const terms = parseSearchTerms(query);
  if (terms.length === 0) throw new AppError("invalid_request", "The query is empty: q contains no words");
  return terms.sort((a, b) => b.length - a.length);
}

/** Returns the longest part of each term that looks the same in JSON and in a string. */
export function listJsonParts(terms: readonly string[]): string[] {
  return terms.map((term) =>
    term.split(UNSURE_IN_JSON).reduce((longest, part) => part.length > longest.length ? part : longest, "")
  ).filter((part) => part !== "");
}

/**
 * Creates a quick test of JSON, so that only JSON that may contain all terms is parsed. `false` means that no string in
 * it contains all terms; `true` may be wrong.
 *
 * It looks for the longest part of each term that looks the same in JSON and in the string. Escapes change quotes,
 * backslashes, control characters and half surrogate pairs, and the last letter of an escape absorbs a following
 * accent.
 */
export function createQuickTest(terms: readonly string[]): (json: string, isAscii: boolean) => boolean {
  const parts = listJsonParts(terms);
  // Doesn't fold a copy, which is three times as fast for ASCII, where only case differs.
  const patterns = parts.every((part) => ASCII.test(part))
    ? parts.map((part) => new RegExp(escapeText(part), "i"))
    : [];
  return (json, isAscii) => {
    if (!isAscii) return containsAllTerms(foldForSearch(json), parts);
    return patterns.length === parts.length && patterns.every((pattern) => pattern.test(json));
  };
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|\/-]/g, "\\$&");
}

/** Returns the part of a text around its first hit as one line, with … at both cuts. Never splits a character. */
export function truncateSnippet(text: string, terms: readonly string[]): string {
  const folded = foldForSearch(text);
  const hit = Math.min(...terms.map((term) => folded.indexOf(term)).filter((at) => at >= 0));
  const at = Number.isFinite(hit) ? toOriginalIndex(text, folded, hit) : 0;
  let start = text.length <= SNIPPET_LENGTH
    ? 0
    : Math.max(0, Math.min(at - SNIPPET_LEAD, text.length - SNIPPET_LENGTH));
  let end = Math.min(text.length, start + SNIPPET_LENGTH);
  if (start > 0) start = findWordStart(text, start, at);
  if (end < text.length && isLow(text.charCodeAt(end))) end--;
  const line = text.slice(start, end).replace(/\s+/g, " ").trim();
  return `${start > 0 ? "…" : ""}${line}${end < text.length ? "…" : ""}`;
}

/**
 * Converts a position in the folded text to one in the original, because folding changes the length of some characters.
 *
 * Uses chunks that end before an ASCII character, which never composes with what precedes it (Unicode Annex 15).
 */
function toOriginalIndex(text: string, folded: string, offset: number): number {
  if (folded.length === text.length && ASCII.test(text)) return offset;
  let [start, rest] = [0, offset];
  for (;;) {
    let end = Math.min(start + FOLD_CHUNK, text.length);
    while (end < text.length && text.charCodeAt(end) > 0x7f) end++;
    const length = foldForSearch(text.slice(start, end)).length;
    if (length > rest || end === text.length) return start + toChunkIndex(text.slice(start, end), rest);
    [start, rest] = [end, rest - length];
  }
}

function toChunkIndex(chunk: string, offset: number): number {
  let [low, high] = [0, chunk.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (foldForSearch(chunk.slice(0, middle)).length <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Moves a cut to the next start of a word before the hit, or at least out of a surrogate pair. */
function findWordStart(text: string, start: number, hit: number): number {
  const space = text.slice(start, hit).search(/\s\S/);
  if (space >= 0 && space < SNIPPET_LEAD / 2) return start + space + 1;
  return isLow(text.charCodeAt(start)) ? start + 1 : start;
}

function isLow(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00;
}

/** Maximum memory of the folded texts. The text of 100,000 messages takes about 40 MB. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Memory of a block besides its text. */
const BLOCK_BYTES = 200;

/** A block of a conversation's active path. */
export interface FoldedBlock {
  id: number;
  version: number;
  segment: number;
  position: number;
  /** The block's JSON, folded. */
  text: string;
  /** Memory of the text. */
  sizeBytes: number;
}

/**
 * A state of a conversation. Each change of its messages increases the revision; an id can be used again after a purge.
 */
interface ConversationVersion {
  id: string;
  revision: number;
  created_at: number;
}

interface Entry {
  revision: number;
  createdAt: number;
  blocks: readonly FoldedBlock[];
  bytes: number;
}

/** A cache of limited size for the most recent conversations. */
export class FoldedTexts {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Returns all blocks of a conversation's active path, newest first. */
  find({ id, revision, created_at }: ConversationVersion): readonly FoldedBlock[] | undefined {
    const entry = this.#entries.get(id);
    return entry?.revision === revision && entry.createdAt === created_at ? entry.blocks : undefined;
  }

  /**
   * Caches all blocks of a conversation if there is space. Never drops another conversation: searches go from the
   * newest to the oldest, so the cached ones are the newest, and a large library would only displace all of them.
   */
  add({ id, revision, created_at: createdAt }: ConversationVersion, blocks: readonly FoldedBlock[]): void {
    this.#bytes -= this.#entries.get(id)?.bytes ?? 0;
    this.#entries.delete(id);
    const bytes = blocks.reduce((sum, { sizeBytes }) => sum + BLOCK_BYTES + sizeBytes, BLOCK_BYTES);
    if (this.#bytes + bytes > this.#maxBytes) return;
    this.#bytes += bytes;
    this.#entries.set(id, { revision, createdAt, blocks, bytes });
  }
}

/** A page of a document that contains all terms. */
export interface DocumentHit {
  document_id: string;
  /** Page or section number, from 1. */
  page: number;
  /** Name of the document. */
  title: string;
  /** The text around the hit, about 160 characters. */
  snippet: string;
  /** When the document was added; ISO 8601, UTC. */
  created_at: string;
}

/** Where a scan of documents continues: after a page of a document. */
export interface DocumentCursor {
  createdAtMs: number;
  id: string;
  page: number;
}

/** Hits, and where to continue. */
interface DocumentPageOfHits {
  items: DocumentHit[];
  next?: DocumentCursor;
}

/** Number of decrypted bytes after which hits are returned, so that first hits don't wait for rare ones. */
const PAGE_BYTES = 8 * 1024 * 1024;

/**
 * Scans the text of documents and returns hits, newest first, at most `limit`. Skips unreadable documents.
 *
 * @param terms Folded. All of them must occur on the same page.
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
    const { id, name: title, createdAtMs, firstPart = 0 } = document;
    let after = from?.id === id ? from.page : 0;
    for (;;) {
      const [part] = reader.all<TextRow>(
        `SELECT document_id, part, first_page, last_page, sealed FROM document_text
         WHERE document_id = ? AND part >= ? AND last_page > ? ORDER BY part LIMIT 1`,
        id,
        firstPart,
        after,
      );
      if (part === undefined) break;
      signal.throwIfAborted();
      openedBytes += part.sealed.length;
      for (const { n, text } of await openText(opener, part).catch(() => [])) {
        if (n <= after || !containsAllTerms(foldForSearch(text), terms)) continue;
        const snippet = truncateSnippet(text, terms);
        items.push({ document_id: id, page: n, title, snippet, created_at: new Date(createdAtMs).toISOString() });
        if (items.length >= limit) return { items, next: { createdAtMs, id, page: n } };
      }
      after = part.last_page;
      if (items.length > 0 && openedBytes >= PAGE_BYTES) return { items, next: { createdAtMs, id, page: after } };
    }
  }
  return { items };
}
