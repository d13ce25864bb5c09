/** Reads the main text of web pages for models, from public addresses only and in parts. */
import { Semaphore } from "../../async/locks.ts";
import { DOCUMENT_HEAD_BYTES, ExtractionFault, sniffDocument } from "../../documents/extraction/extraction.ts";
import { extractDocument, READER_LIMITS, type ReaderLimits } from "../../documents/extraction/extractor.ts";
import { AppError } from "../../errors.ts";
import type { Sandbox } from "../../platform/sandbox/sandbox.ts";
import type { Guard } from "../../http/guard/guarded_fetch.ts";

/** The text of a page. */
export interface PageText {
  /** Empty if there is none. */
  title: string;
  /** Address after redirects. */
  url: string;
  text: string;
}

/** Limits of reading. */
export interface PageLimits {
  /** Maximum size of a page after decompression. */
  maxBytes: number;
  /** Time limit until the last byte, including redirects. */
  fetchMs: number;
  reader: ReaderLimits;
}

const MIB = 1024 * 1024;

/** The limits of every page. A page of text has at most 1 MiB; a PDF may have more. */
export const PAGE_LIMITS: PageLimits = {
  maxBytes: 16 * MIB,
  fetchMs: 30_000,
  reader: { ...READER_LIMITS, chars: 4 * MIB, pages: 2_000, timeMs: 30_000, memoryBytes: 256 * MIB },
};

/** Number of pages read at the same time. Each may take its size and the memory of a reader. */
const PARALLEL = 2;
/** Number of cached pages. A model reads long pages in parts, so recent ones aren't fetched again. */
const MAX_CACHED = 4;
const CACHE_MS = 10 * 60_000;
const MAX_CACHED_CHARS = MIB;

/** Dependencies of `PageReader`. */
export interface PageReaderDeps {
  /** Reads the pages. */
  sandbox: Sandbox;
  /** Opens the guard, which fetches pages. */
  openGuard(): Promise<Guard>;
  now(): number;
  limits?: Partial<PageLimits>;
}

/** Reads pages and caches the most recent ones. */
export class PageReader {
  readonly #deps: PageReaderDeps;
  readonly #limits: PageLimits;
  readonly #semaphore = new Semaphore(PARALLEL);
  readonly #cache = new Map<string, { page: PageText; readAtMs: number }>();

  constructor(deps: PageReaderDeps) {
    this.#deps = deps;
    this.#limits = { ...PAGE_LIMITS, ...deps.limits };
  }

  /**
   * Fetches a page and reads its text: the main text of a web page; all text of a PDF, DOCX, EPUB or text file.
   *
   * @throws {AppError} `invalid_request` if it isn't a web address; `address_not_allowed`; `upstream_error`,
   *   `upstream_timeout`, `too_large`; `unprocessable` if it has no readable text
   * @throws The abort reason of `signal`.
   */
  async read(address: string, signal: AbortSignal): Promise<PageText> {
    const url = parseAddress(address);
    const guard = await this.#deps.openGuard();
    guard.check(url);
    const cached = this.#findCached(url.href);
    if (cached !== undefined) return cached;
    const release = await this.#semaphore.acquire(signal);
    try {
      const page = await this.#fetch(guard, url, signal);
      if (page.text.length <= MAX_CACHED_CHARS) this.#remember(url.href, page);
      return page;
    } finally {
      release();
    }
  }

  async #fetch(guard: Guard, url: URL, signal: AbortSignal): Promise<PageText> {
    const { maxBytes, fetchMs, reader } = this.#limits;
    const headers = { accept: "text/html, application/pdf;q=0.9, */*;q=0.8" };
    const response = await guard.fetch(url, { signal, maxBytes, timeoutMs: fetchMs, headers });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw new AppError(
        "upstream_error",
        `Can't read "${url.host}": it responded with status ${response.status}`,
      );
    }
    const pieces = await Array.fromAsync(response.body);
    const sizeBytes = pieces.reduce((sum, { length }) => sum + length, 0);
    const finalUrl = new URL(response.url || url.href);
    const contentType = sniffDocument(
      joinHead(pieces),
      finalUrl.pathname,
      response.headers.get("content-type") ?? "",
    );
    if (contentType === undefined) {
      throw new AppError("unprocessable", `Can't read "${url.host}": it isn't a web page, a document or text`);
    }
    let title = "";
    const texts: string[] = [];
    try {
      await extractDocument(this.#deps.sandbox, {
        content: streamPieces(pieces),
        sizeBytes,
        name: finalUrl.pathname,
        contentType,
        url: finalUrl.href,
        signal,
        begin: (about) => title = about.title ?? "",
        store: (pages) => (texts.push(...pages.map(({ text }) => text)), Promise.resolve()),
      }, reader);
    } catch (error) {
      if (!(error instanceof ExtractionFault)) throw error;
      throw new AppError("unprocessable", `Can't read "${url.host}": ${error.message}`);
    }
    return { title: title.slice(0, 300), url: finalUrl.href, text: texts.join("\n\n").trim() };
  }

  #findCached(href: string): PageText | undefined {
    for (const [key, { readAtMs }] of this.#cache) {
      if (this.#deps.now() - readAtMs > CACHE_MS) this.#cache.delete(key);
    }
    return this.#cache.get(href)?.page;
  }

  #remember(href: string, page: PageText): void {
    this.#cache.delete(href);
    this.#cache.set(href, { page, readAtMs: this.#deps.now() });
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > MAX_CACHED) this.#cache.delete(oldest!);
  }
}

const MAX_ADDRESS = 2_048;

function parseAddress(address: string): URL {
  const text = address.trim();
  const url = text.length <= MAX_ADDRESS && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new AppError(
      "invalid_request",
      `Can't read the page: the address must be an http or https URL of at most ${MAX_ADDRESS} characters`,
    );
  }
  url.hash = "";
  return url;
}

function joinHead(pieces: readonly Uint8Array[]): Uint8Array {
  const head = new Uint8Array(DOCUMENT_HEAD_BYTES);
  let length = 0;
  for (const piece of pieces) {
    if (length === head.length) break;
    const part = piece.subarray(0, head.length - length);
    head.set(part, length);
    length += part.length;
  }
  return head.subarray(0, length);
}

/** Yields chunks and releases each. */
async function* streamPieces(pieces: Uint8Array<ArrayBuffer>[]): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) yield piece;
}
