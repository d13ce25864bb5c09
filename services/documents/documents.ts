/** Stores documents: the original as an encrypted file, and its text, which jobs extract, as encrypted rows. */
import { KeyedMutex, Semaphore } from "../async/locks.ts";
import { createUuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job_store.ts";
import type { Log } from "../log.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { foldForSearch } from "../json/search_fold.ts";
import { estimateTokens } from "../llm/token_count.ts";
import { removeLeftovers } from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import { readSealedFile, readSealedRange, writeSealedFile } from "../storage/sealed_file.ts";
import {
  DOCUMENT_COLUMNS,
  type DocumentError,
  type DocumentPage,
  type DocumentRow,
  findNextPart,
  findTextRow,
  getOriginalFile,
  insertDocument,
  MAX_DOCUMENT_NAME,
  openDocument,
  openText,
  type PageRange,
  removeText,
  sealText,
  type StoredDocument,
  updateDocument,
} from "./document.ts";
import { DOCUMENT_HEAD_BYTES, type DocumentType, ExtractionFault, sniffDocument } from "./extraction/extraction.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import { extractDocument, type ExtractionSource, extractPageImage, READER_LIMITS } from "./extraction/extractor.ts";

/** Dependencies of `Documents`. */
export interface DocumentsDeps {
  /** Reads the files. */
  sandbox: Sandbox;
  db: Database;
  /** For the purpose "documents". */
  sealer: PurposeSealer;
  /** `<datadir>/documents` */
  folder: string;
  /** Maximum size of an original. */
  maxBytes: number;
  trash: { put(kind: string, title: string, record: unknown, id?: string): Statement; publishChange(): void };
  jobs: JobRunner;
  /** Opens the guard that fetches links. */
  openGuard(): Promise<Guard>;
  events: EventHub;
  log: Log;
  now(): number;
  /** Called when the text of a document changes. */
  onTextChange?(id: string): void;
  /** Limits of the Worker that extracts the text. */
  limits?: Partial<typeof READER_LIMITS>;
}

/** A file to store. */
export interface DocumentUpload {
  content: AsyncIterable<Uint8Array>;
  /** Returns the file name, once the first bytes have arrived. */
  getName(): string | undefined;
  /** ID and creation time of a document that is imported again. */
  id?: string;
  createdAtMs?: number;
  /** Type of the original if the name doesn't show it. */
  contentType?: string;
  /** Address from which it was fetched. */
  url?: string;
  /** Languages of the user, to guess an encoding. */
  languages?: readonly string[];
}

/** Kind of job. */
const EXTRACTION = "document";
/** Number of concurrent extractions: each may take 512 MiB. */
const PARALLEL = 1;
const PDF = "application/pdf";
/** Number of rows that `listPage` decrypts at once. */
const ROWS_AT_ONCE = 200;
const MAX_URL = 2048;

/** Stores and reads documents. */
export class Documents {
  readonly #deps: DocumentsDeps;
  readonly #pageImages = new Semaphore(PARALLEL);
  /** A change reads what another one wrote. */
  readonly #changes = new KeyedMutex();
  /** IDs of documents that are being added. */
  readonly #adding = new Set<string>();

  /** Continues the extractions that an earlier process left unfinished. */
  constructor(deps: DocumentsDeps) {
    this.#deps = deps;
    deps.jobs.register(EXTRACTION, {
      parallel: PARALLEL,
      resumable: true,
      run: (context) => this.#runJob(context),
      discard: (params) => this.#fail(toDocumentId(params), { code: "cancelled", message: "The job was cancelled" }),
    });
  }

  /** Lists all documents, newest first. Unreadable ones are `failed` with the error `damaged`. */
  list(): StoredDocument[] {
    return this.#deps.db.all<DocumentRow>(
      `SELECT ${DOCUMENT_COLUMNS} FROM document_file WHERE deleted_at IS NULL ORDER BY created_at DESC, id DESC`,
    ).map((row) => this.#open(row));
  }

  /**
   * Lists a page of documents, newest first.
   *
   * @param options.words Only documents whose name has this text.
   * @param options.isWanted Only documents for which it returns true.
   * @throws {AppError} `invalid_request` for an invalid cursor
   */
  async listPage(
    { cursor, limit, words = "", isWanted = () => true }: {
      cursor?: string;
      limit: number;
      words?: string;
      isWanted?: (id: string) => boolean;
    },
  ): Promise<{ items: StoredDocument[]; nextCursor?: string }> {
    const query = foldForSearch(words.trim());
    const items: StoredDocument[] = [];
    let from = cursor === undefined ? undefined : parseListCursor(cursor);
    for (;;) {
      const rows = this.#deps.db.all<DocumentRow>(
        `SELECT ${DOCUMENT_COLUMNS} FROM document_file WHERE deleted_at IS NULL
         AND (?1 IS NULL OR created_at < ?1 OR created_at = ?1 AND id < ?2) ORDER BY created_at DESC, id DESC LIMIT ?3`,
        from?.createdAtMs ?? null,
        from?.id ?? null,
        ROWS_AT_ONCE,
      );
      for (const row of rows) {
        if (!isWanted(row.id)) continue;
        const document = this.#open(row);
        if (query !== "" && !foldForSearch(document.name).includes(query)) continue;
        const last = items.at(-1);
        if (last !== undefined && items.length === limit) {
          return { items, nextCursor: `${last.createdAtMs}.${last.id}` };
        }
        items.push(document);
      }
      const end = rows.at(-1);
      if (end === undefined || rows.length < ROWS_AT_ONCE) return { items };
      from = { createdAtMs: end.created_at, id: end.id };
      await yieldIfTickUsedUp();
    }
  }

  /**
   * Renames a document. A link keeps this name when it is read again.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`, `invalid_request`; `unprocessable` if it's damaged
   */
  async rename(id: string, text: string, expected?: ExpectedVersion): Promise<StoredDocument> {
    const name = cleanName(text);
    if (name === "") {
      const message = "the name is empty";
      throw new AppError("invalid_request", message, { issues: [{ path: "name", message }] });
    }
    if (this.get(id).isUnreadable) {
      throw new AppError("unprocessable", `Can't rename document "${id}": its data can't be decrypted`);
    }
    return await this.#change(id, (before) => {
      this.get(id);
      assertExpected(`document "${id}"`, expected, before.updatedAtMs);
      return { ...before, name, hasOwnName: true };
    });
  }

  /** @throws {AppError} `not_found`, also for a document in the trash */
  get(id: string): StoredDocument {
    const document = this.find(id);
    if (document === undefined) throw new AppError("not_found", `Document "${id}" not found`);
    return document;
  }

  /** Finds a document that isn't in the trash. An unreadable one is `failed` with the error `damaged`. */
  find(id: string): StoredDocument | undefined {
    const row = this.#findRow(id);
    return row === undefined || row.deleted_at !== null ? undefined : this.#open(row);
  }

  /**
   * Stores a file and starts extracting its text.
   *
   * @throws {AppError} `unsupported_media_type` if its text can't be extracted; `too_large`, `storage_full`; errors of
   *   `content`; `conflict` if the ID is taken
   */
  async add(upload: DocumentUpload): Promise<{ document: StoredDocument; jobId: string }> {
    const { now } = this.#deps;
    const id = upload.id ?? createUuidV7();
    return await this.#claim(id, async () => {
      const { head, content } = await readHead(upload.content);
      const name = toName(upload.getName());
      const contentType = sniffDocument(head, name, upload.contentType);
      if (contentType === undefined) throw createUnsupportedError(name);
      const sizeBytes = await this.#writeOriginal(id, content);
      const createdAtMs = upload.createdAtMs ?? now();
      const document = createDocument({ id, name, contentType, sizeBytes, createdAtMs, updatedAtMs: now() });
      const { url, languages = [] } = upload;
      return await this.#insert({
        ...document,
        // An export has the name that it had.
        ...(url !== undefined && { url, hasOwnName: true as const }),
        ...(languages.length > 0 && { languages: [...languages] }),
      });
    });
  }

  /**
   * Adds a link. The job fetches it.
   *
   * @throws {AppError} `invalid_request` if it isn't a URL; `address_not_allowed`; `conflict` if the ID is taken
   */
  async addLink(
    address: string,
    { id = createUuidV7(), languages = [] }: { id?: string; languages?: readonly string[] } = {},
  ): Promise<{ document: StoredDocument; jobId: string }> {
    const { now, openGuard } = this.#deps;
    const url = parseLink(address);
    (await openGuard()).check(url);
    const name = toName(`${url.host}${url.pathname === "/" ? "" : url.pathname}`);
    const nowMs = now();
    const facts = {
      id,
      name,
      contentType: "text/html",
      sizeBytes: 0,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    };
    const document = {
      ...createDocument(facts),
      url: url.href,
      ...(languages.length > 0 && { languages: [...languages] }),
    } satisfies StoredDocument;
    return await this.#claim(id, () => this.#insert(document));
  }

  /**
   * Reads the original again, with this version of the program. The old text stays until the new one is complete.
   *
   * @param encoding Encoding of a text file; by default it's found anew.
   * @throws {AppError} `not_found`; `conflict` while it's being read; `unprocessable` if it's damaged
   */
  async readAgain(id: string, encoding?: string): Promise<JobSnapshot> {
    const { db, jobs } = this.#deps;
    const last = this.#findJob(id);
    // It still stores its end. Until then, the job runner takes a new one for it.
    if (last !== undefined && this.get(id).state !== "extracting") await jobs.ended(last.id);
    const { name, state, createdAtMs, isUnreadable } = this.get(id);
    if (isUnreadable) throw new AppError("unprocessable", `Can't read "${name}" again: its data can't be decrypted`);
    if (state === "extracting") throw new AppError("conflict", `"${name}" is being read. Try again when that is done`);
    const { firstPart } = await this.#change(id, ({ chosenEncoding: _, ...before }) => ({
      ...before,
      state: "extracting",
      ...(encoding !== undefined && { chosenEncoding: encoding }),
      reading: {
        firstPart: findNextPart(db, id),
        before: {
          state: before.state,
          ...(before.error && { error: before.error }),
          unit: before.unit,
          pages: before.pages,
          tokens: before.tokens,
        },
      },
    })).then(({ reading }) => reading!);
    const params = { id, createdAtMs, firstPart };
    return await jobs.start(EXTRACTION, { title: name, params, key: id }).catch(async (error) => {
      await this.#fail(id, { code: "internal", message: "The server is shutting down" });
      throw error;
    });
  }

  /** Yields the original, or a part of it. @throws {AppError} `not_found`; `internal` while reading */
  readOriginal(id: string, range?: { start: number; end: number }): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const { sealer, folder } = this.#deps;
    this.get(id);
    const file = getOriginalFile(folder, id);
    return range === undefined ? readSealedFile(sealer, file) : readSealedRange(sealer, file, range);
  }

  /**
   * Yields pages in order, by default all.
   *
   * @throws {AppError} `not_found`; `conflict` if its text isn't extracted yet; `unprocessable` if it can't be read;
   *   `internal`
   */
  async *readPages(id: string, ranges: readonly PageRange[] = ALL_PAGES): AsyncGenerator<DocumentPage> {
    const { db, sealer } = this.#deps;
    const document = this.get(id);
    const { name, state, error } = document;
    if (state === "failed") throw new AppError("unprocessable", `"${name}" has no text: ${error?.message ?? ""}`);
    if (state !== "ready") {
      throw new AppError("conflict", `The text of "${name}" isn't ready yet. Try again when its task is done`);
    }
    for (const { first, last } of ranges) {
      // A few rows at a time: the text of a document can have many megabytes.
      for (let from = first; from <= last;) {
        const row = findTextRow(db, document, from, last);
        if (row === undefined) break;
        for (const page of await openText(sealer, row)) if (page.n >= from && page.n <= last) yield page;
        from = row.last_page + 1;
      }
    }
  }

  /**
   * Returns a page of a PDF, such as a scan, as a JPEG of its images and text. Nothing is stored.
   *
   * @param page From 1.
   * @throws {AppError} `not_found`; `unprocessable` if it isn't a PDF, can't be read, or if the page has no images.
   * @throws The reason of `signal`.
   */
  async readPageImage(id: string, page: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const { sealer, folder, limits } = this.#deps;
    const { name, contentType, sizeBytes, url } = this.get(id);
    if (contentType !== PDF || sizeBytes === 0) {
      throw new AppError("unprocessable", `Can't show pages of "${name}" as images: it isn't a PDF`);
    }
    const content = readSealedFile(sealer, getOriginalFile(folder, id));
    const source = { content, sizeBytes, name, contentType, url, signal } satisfies ExtractionSource;
    // Each may take as much memory as an extraction.
    const release = await this.#pageImages.acquire(signal);
    try {
      return await extractPageImage(this.#deps.sandbox, source, page, { ...READER_LIMITS, ...limits });
    } catch (error) {
      if (!(error instanceof ExtractionFault)) throw error;
      throw new AppError("unprocessable", `Can't read page ${page} of "${name}" as an image: ${error.message}`);
    } finally {
      release();
    }
  }

  /** Waits until the text is extracted or the extraction fails. @throws The reason of `signal`. */
  async waitUntilRead(id: string, signal: AbortSignal): Promise<StoredDocument | undefined> {
    const document = this.find(id);
    const job = document?.state === "extracting" ? this.#findJob(id) : undefined;
    if (job === undefined) return document;
    const left = Promise.withResolvers<never>();
    const onAbort = () => left.reject(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort);
    try {
      await Promise.race([this.#deps.jobs.ended(job.id), left.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    return this.find(id);
  }

  /** Moves a document to the trash. @throws {AppError} `not_found` */
  async remove(id: string): Promise<void> {
    const { db, trash, events, now } = this.#deps;
    const { name } = this.get(id);
    await db.write([
      {
        sql: "UPDATE document_file SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL",
        params: [now(), id],
        expectChanges: 1,
      },
      trash.put("document", name, { id } satisfies TrashRecord),
    ]);
    events.publish({ kind: "document", id });
    trash.publishChange();
  }

  /** Restores a document from the trash. @throws {AppError} `conflict` */
  async restore(record: unknown, removal: Statement): Promise<void> {
    const { db, events } = this.#deps;
    const { id } = record as TrashRecord;
    await db.write([removal, {
      sql: "UPDATE document_file SET deleted_at = NULL WHERE id = ?",
      params: [id],
      expectChanges: 1,
    }]);
    events.publish({ kind: "document", id });
  }

  /** Permanently deletes a document. */
  async purge(record: unknown, removal: Statement): Promise<void> {
    const { db } = this.#deps;
    const { id } = record as TrashRecord;
    const job = this.#findJob(id);
    if (job !== undefined) await this.#deps.jobs.cancel(job.id).catch(ignoreConflict);
    await db.write([
      removal,
      { sql: "DELETE FROM document_file WHERE id = ? AND deleted_at IS NOT NULL", params: [id] },
      removeText(id),
    ]);
    await this.#removeOriginal(id);
  }

  /** Deletes files left by a crash, and reads documents that were stored without their job. */
  async sweep(): Promise<void> {
    const { db, folder, jobs } = this.#deps;
    const listFiles = () => db.all<{ id: string }>("SELECT id FROM document_file").map(({ id }) => id);
    await removeLeftovers(folder, listFiles, (name) => this.#removeOriginal(name));
    for (const { id, name, state, createdAtMs } of this.list()) {
      // The same key: if its job is only just being started, this is that job.
      if (state !== "extracting" || this.#findJob(id) !== undefined) continue;
      await jobs.start(EXTRACTION, { title: name, params: { id, createdAtMs }, key: id });
    }
  }

  /** Adds a document under an ID that no other one has or gets. @throws {AppError} `conflict` */
  async #claim<T>(id: string, add: () => Promise<T>): Promise<T> {
    if (this.#adding.has(id) || this.#findRow(id) !== undefined) {
      throw new AppError("conflict", `The document ID "${id}" is already taken`);
    }
    this.#adding.add(id);
    try {
      return await add();
    } finally {
      this.#adding.delete(id);
    }
  }

  async #insert(document: StoredDocument): Promise<{ document: StoredDocument; jobId: string }> {
    const { db, sealer, jobs, events } = this.#deps;
    const { id, name, createdAtMs } = document;
    try {
      await db.write([insertDocument(sealer, document)]);
    } catch (error) {
      await this.#removeOriginal(id);
      throw error;
    }
    events.publish({ kind: "document", id });
    const params = { id, createdAtMs };
    const job = await jobs.start(EXTRACTION, { title: name, params, key: id }).catch(async (error) => {
      await this.#fail(id, { code: "internal", message: "The server is shutting down" });
      throw error;
    });
    return { document, jobId: job.id };
  }

  async #writeOriginal(id: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    const { sealer, folder, maxBytes } = this.#deps;
    return await writeSealedFile(sealer, getOriginalFile(folder, id), limitBytes(content, maxBytes));
  }

  async #runJob(context: JobContext): Promise<void> {
    const id = toDocumentId(context.params);
    try {
      const document = this.#load(id);
      if (document === undefined || document.state !== "extracting") return; // Deleted, or completed before the restart.
      const fetched = document.url !== undefined && document.sizeBytes === 0
        ? await this.#fetch(document, context.signal)
        : document;
      await this.#extract(fetched, context);
    } catch (error) {
      if (context.signal.aborted) throw error; // Cancelled, or continued at the next start.
      const failure = toDocumentError(error);
      await this.#fail(id, failure, error instanceof ExtractionFault ? error.pages : 0);
      if (failure.code === "internal") throw error;
      throw new AppError("unprocessable", failure.message);
    }
  }

  /** Fetches a link and stores it as the original. */
  async #fetch(document: StoredDocument, signal: AbortSignal): Promise<StoredDocument> {
    const { openGuard, maxBytes } = this.#deps;
    const { id, url, name } = document;
    const guard = await openGuard();
    const response = await guard.fetch(url!, { signal, maxBytes, headers: { accept: "text/html, */*;q=0.8" } });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw new AppError("upstream_error", `Can't read "${name}": the server answered with status ${response.status}`);
    }
    const { head, content } = await readHead(response.body);
    const path = new URL(response.url || url!).pathname;
    const declared = response.headers.get("content-type") ?? "";
    const contentType = sniffDocument(head, path, declared);
    const charset = /;\s*charset\s*=\s*["']?([\w.:-]{2,40})/i.exec(declared)?.[1];
    if (contentType === undefined) {
      await response.body.cancel().catch(() => {});
      throw new ExtractionFault("unsupported", createUnsupportedError(name).message);
    }
    const sizeBytes = await this.#writeOriginal(id, content);
    return await this.#change(id, (before) => ({
      ...before,
      contentType,
      sizeBytes,
      ...(charset !== undefined && { charset }),
    }));
  }

  async #extract(document: StoredDocument, { signal, progress }: JobContext): Promise<void> {
    const { db, sealer, folder, limits } = this.#deps;
    const { id, sizeBytes, contentType, url, charset, chosenEncoding, languages } = document;
    const firstPart = document.reading?.firstPart ?? 0;
    // An earlier process may have stored a part.
    await db.write([removeText(id, { from: firstPart })]);
    let about: Pick<StoredDocument, "unit"> & { total: number; title?: string } = { unit: "section", total: 0 };
    let [part, pages, tokens] = [firstPart, 0, 0];
    const { ledger, encoding } = await extractDocument(this.#deps.sandbox, {
      content: readSealedFile(sealer, getOriginalFile(folder, id)),
      sizeBytes,
      name: document.name,
      contentType: contentType as DocumentType,
      url,
      charset,
      encoding: chosenEncoding,
      languages,
      signal,
      begin: (found) => about = found,
      store: async (batch) => {
        await db.write([await sealText(sealer, id, part++, batch)]);
        pages += batch.length;
        for (const { text } of batch) {
          tokens += estimateTokens(text);
          await yieldIfTickUsedUp();
        }
        progress({ done: pages, total: about.total || null, unit: `${about.unit}s` });
      },
    }, { ...READER_LIMITS, ...limits });
    await this.#change(id, ({ reading: _, error: __, encoding: ___, ...before }) => ({
      ...before,
      name: url !== undefined && about.title && !before.hasOwnName ? toName(about.title) : before.name,
      unit: about.unit,
      pages,
      tokens: Math.ceil(tokens),
      state: "ready",
      ledger,
      ...(encoding !== undefined && { encoding }),
      ...(firstPart > 0 && { firstPart }),
    }), [removeText(id, { to: firstPart })]);
    this.#deps.onTextChange?.(id);
  }

  /** Stores why a document has no text. If an earlier reading succeeded, its text stays. */
  async #fail(id: string, error: DocumentError, pages = 0): Promise<void> {
    const document = this.#load(id);
    if (document === undefined) return;
    const { reading } = document;
    const unit = pages > 0 ? "page" : "section";
    await this.#change(
      id,
      ({ reading: _, ...before }) =>
        reading?.before.state === "ready"
          ? { ...before, ...reading.before }
          : { ...before, unit, pages, tokens: 0, state: "failed", error },
      [
        removeText(id, { from: reading?.firstPart ?? 0 }),
      ],
    );
  }

  /** Changes a document, even if it's in the trash. */
  #change(
    id: string,
    change: (before: StoredDocument) => StoredDocument,
    further: readonly Statement[] = [],
  ): Promise<StoredDocument> {
    return this.#changes.run(id, async () => {
      const { db, sealer, events, now } = this.#deps;
      const before = this.#load(id);
      if (before === undefined) throw new AppError("not_found", `Document "${id}" not found`);
      const updatedAtMs = Math.max(now(), before.updatedAtMs + 1);
      const after = { ...change(before), updatedAtMs } satisfies StoredDocument;
      await db.write([updateDocument(sealer, after), ...further]);
      events.publish({ kind: "document", id });
      return after;
    });
  }

  #load(id: string): StoredDocument | undefined {
    const row = this.#findRow(id);
    return row && openDocument(this.#deps.sealer, row);
  }

  #open(row: DocumentRow): StoredDocument {
    const { sealer, log } = this.#deps;
    try {
      return openDocument(sealer, row);
    } catch (error) {
      log("error", "Can't decrypt a document", { id: row.id, error: getErrorMessage(error) });
      const { id, bytes, created_at, updated_at } = row;
      const facts = { sizeBytes: bytes, createdAtMs: created_at, updatedAtMs: updated_at };
      return {
        ...createDocument({ id, name: toName(undefined), contentType: "application/octet-stream", ...facts }),
        state: "failed",
        error: { code: "damaged", message: "The stored data of this document can't be decrypted" },
        isUnreadable: true,
      };
    }
  }

  #findRow(id: string): DocumentRow | undefined {
    return this.#deps.db.get<DocumentRow>(`SELECT ${DOCUMENT_COLUMNS} FROM document_file WHERE id = ?`, id);
  }

  #findJob(id: string) {
    return this.#deps.jobs.list().find(({ kind, key, state }) =>
      kind === EXTRACTION && key === id && (state === "queued" || state === "running" || state === "verifying")
    );
  }

  async #removeOriginal(id: string): Promise<void> {
    const { folder, log } = this.#deps;
    await Deno.remove(getOriginalFile(folder, id).path).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return;
      log("warn", "Can't delete the file of a document", { error: getErrorMessage(error) });
    });
  }
}

const ALL_PAGES: readonly PageRange[] = [{ first: 1, last: Number.MAX_SAFE_INTEGER }];

/** Record of a document in the trash; its rows and its file stay in place. */
interface TrashRecord {
  id: string;
}

function createDocument(
  facts: Pick<StoredDocument, "id" | "name" | "contentType" | "sizeBytes" | "createdAtMs" | "updatedAtMs">,
): StoredDocument {
  return { ...facts, pages: 0, unit: "section", tokens: 0, state: "extracting" };
}

function toDocumentId(params: unknown): string {
  return (params as { id: string }).id;
}

function toDocumentError(error: unknown): DocumentError {
  if (error instanceof ExtractionFault) return { code: error.code, message: error.message };
  if (!(error instanceof AppError)) return { code: "internal", message: "Internal error. See the server's log" };
  const { code, message } = error;
  if (code === "upstream_timeout") return { code: "timeout", message };
  if (code === "too_large" || code === "upstream_error") return { code, message };
  return { code: "internal", message };
}

/** @throws {AppError} `invalid_request` */
function parseLink(address: string): URL {
  const text = address.trim();
  const url = text.length <= MAX_URL && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    const message = `the address must be an http or https URL of at most ${MAX_URL} characters`;
    throw new AppError("invalid_request", message, { issues: [{ path: "url", message }] });
  }
  url.hash = "";
  return url;
}

/** Returns a name for display, without folders and control characters. */
function toName(fileName: string | undefined): string {
  return cleanName((fileName ?? "").replace(/^.*\\/s, "")) || "Document";
}

function cleanName(text: string): string {
  const name = text.replace(/[\p{Cc}\p{Cf}]+/gu, " ").replace(/\s+/g, " ").trim();
  return name.toWellFormed().slice(0, MAX_DOCUMENT_NAME).trim();
}

/** @throws {AppError} `invalid_request` */
function parseListCursor(text: string): { createdAtMs: number; id: string } {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "Invalid cursor: it isn't from a list of documents");
  return { createdAtMs: Number(match[1]), id: match[2]! };
}

function createUnsupportedError(name: string): AppError {
  return new AppError(
    "unsupported_media_type",
    `Can't read "${name}": only PDF, DOCX, XLSX, PPTX, ODT, ODS, ODP, RTF, EPUB, HTML, mail (EML, MSG), saved pages, ` +
      "notebooks, subtitles and plain text are supported",
  );
}

async function readHead(
  source: AsyncIterable<Uint8Array>,
): Promise<{ head: Uint8Array; content: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let length = 0;
  while (length < DOCUMENT_HEAD_BYTES) {
    const { done, value } = await iterator.next();
    if (done) break;
    read.push(value);
    length += value.length;
  }
  const head = new Uint8Array(Math.min(length, DOCUMENT_HEAD_BYTES));
  let at = 0;
  for (const piece of read) {
    if (at >= head.length) break;
    const part = piece.subarray(0, head.length - at);
    head.set(part, at);
    at += part.length;
  }
  async function* content() {
    yield* read.splice(0);
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return { head, content: content() };
}

async function* limitBytes(content: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const piece of content) {
    sizeBytes += piece.length;
    if (sizeBytes > maxBytes) {
      throw new AppError("too_large", `Can't store the document: it's larger than ${maxBytes} bytes`);
    }
    yield piece;
  }
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof AppError && error.code === "conflict")) throw error;
}
