/** Client of the model hub: search, the files of a repository, URLs of files, error responses (docs/protocols/models.md). */
import { AppError, getErrorMessage } from "../errors.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { readBytes } from "../http/read_body.ts";
import { parseJsonIncrementally } from "../json/incremental_parse.ts";
import { asArray, asObject } from "../json/type_guards.ts";
import type { ModelFormat } from "./local/models_folder.ts";

/** Options of the hub client. */
export interface HubOptions {
  guard: Pick<Guard, "fetch">;
  /** `https://huggingface.co`, or a mirror, which may have a path. */
  url: string;
  /** File with the access token. Read for each request, so that it can be replaced. */
  tokenFile: string | null;
}

/** A repository in the search results. */
export interface FoundRepo {
  repo: string;
  downloads: number;
  likes: number;
  /** ISO 8601; null if unknown. */
  updatedAt: string | null;
  isGated: boolean;
  license: string | null;
  tags: string[];
}

/** One file of a repository at one commit. */
export interface HubFile {
  path: string;
  sizeBytes: number;
  /** Only for files in large file storage. */
  sha256?: string;
  /** Git's SHA-1 of the blob. Only meaningful without `sha256`. */
  gitSha1?: string;
}

/** A repository at one commit. */
export interface HubRepo {
  repo: string;
  /** Commit hash. */
  revision: string;
  isGated: boolean;
  license: string | null;
  files: HubFile[];
}

const PAGE_SIZE = 30;
/** Maximum number of pages of the file tree. Each has about 1,000 files. */
const MAX_TREE_PAGES = 20;
const MAX_TAGS = 50;
const MAX_TOKEN_BYTES = 4096;
/** Maximum size of an answer. A page of a file tree has about 300 KB, the details of a repository its list of files. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_DEPTH = 100;
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

/** Client of the hub. Validates every response, because a mirror may return anything. */
export class Hub {
  readonly #options: HubOptions;
  readonly #base: string;
  readonly #origin: string;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#base = options.url.replace(/\/+$/, "");
    this.#origin = new URL(this.#base).origin;
  }

  /**
   * Searches repositories of a format, most downloaded first.
   *
   * @param cursor `nextCursor` of the previous page.
   * @throws {AppError} `invalid_request` for an invalid cursor; `upstream_error`, `upstream_timeout`, `not_available`
   */
  async search(
    { query, format, cursor }: { query: string; format: ModelFormat; cursor?: string },
    signal: AbortSignal,
  ): Promise<{ items: FoundRepo[]; nextCursor: string | null }> {
    const parameters = new URLSearchParams({ filter: format, sort: "downloads", direction: "-1" });
    parameters.set("limit", String(PAGE_SIZE));
    if (query !== "") parameters.set("search", query);
    for (const field of ["downloads", "likes", "lastModified", "gated", "tags"]) parameters.append("expand", field);
    const url = cursor === undefined ? `${this.#base}/api/models?${parameters}` : this.#toSearchUrl(cursor);
    const { body, next } = await this.#get(url, `the search for "${query}"`, this.#base, signal);
    return {
      items: asArray(body).flatMap((item) => toFoundRepo(asObject(item))),
      nextCursor: next?.search.slice(1) ?? null,
    };
  }

  /**
   * Returns the files of a repository at the current commit of its main branch.
   *
   * @param revision Another commit.
   * @throws {AppError} `not_found`; `upstream_error` from `createHubError`; `upstream_timeout`, `not_available`
   */
  async getRepo(repo: string, signal: AbortSignal, revision?: string): Promise<HubRepo> {
    const what = `the files of "${repo}"`;
    const api = `${this.#base}/api/models/${repo}`;
    const url = revision === undefined ? api : `${api}/revision/${revision}`;
    const detail = asObject((await this.#get(url, what, this.getPageUrl(repo), signal)).body);
    const commit = detail.sha;
    if (typeof commit !== "string" || !COMMIT.test(commit)) throw createError(what, "the response has no commit");
    const files: HubFile[] = [];
    let page: URL | undefined = new URL(`${api}/tree/${commit}?recursive=true`);
    for (let pages = 0; page !== undefined; pages++) {
      if (pages === MAX_TREE_PAGES) throw createError(what, "it has too many files");
      const answer = await this.#get(page, what, this.getPageUrl(repo), signal);
      files.push(...asArray(answer.body).flatMap((entry) => toHubFile(asObject(entry))));
      page = answer.next;
    }
    return { repo, revision: commit, isGated: isGated(detail.gated), license: toLicense(detail), files };
  }

  /** Returns the URL of a repository's page. */
  getPageUrl(repo: string): string {
    return `${this.#base}/${repo}`;
  }

  /** Returns the URL of a file at a commit. It redirects to the storage. */
  getFileUrl(repo: string, revision: string, path: string): URL {
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    return new URL(`${this.#base}/${repo}/resolve/${encodeURIComponent(revision)}/${encoded}`);
  }

  /** Returns the `Authorization` header for a URL: only the hub's own origin gets the token. */
  async getAuthorization(url: URL): Promise<Record<string, string>> {
    const token = url.origin === this.#origin ? await this.#readToken() : undefined;
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /** Reports whether a URL is on the hub itself. */
  isOwnUrl(url: URL): boolean {
    return url.origin === this.#origin;
  }

  async #readToken(): Promise<string | undefined> {
    const { tokenFile } = this.#options;
    if (tokenFile === null) return undefined;
    try {
      const text = await Deno.readTextFile(tokenFile);
      const token = text.trim();
      if (token === "") return undefined;
      if (token.length > MAX_TOKEN_BYTES || !/^[\x21-\x7e]+$/.test(token)) {
        throw new Error("it doesn't contain a token");
      }
      return token;
    } catch (cause) {
      throw new AppError("not_available", `Can't read hub_token_file "${tokenFile}": ${getErrorMessage(cause)}`, {
        cause,
      });
    }
  }

  async #get(
    url: URL | string,
    what: string,
    page: string,
    signal: AbortSignal,
  ): Promise<{ body: unknown; next?: URL }> {
    const pageUrl = new URL(url);
    const authorization = await this.getAuthorization(pageUrl);
    const response = await this.#options.guard.fetch(pageUrl, {
      headers: { accept: "application/json", "user-agent": "Parlor", ...authorization },
      signal,
    });
    if (!response.ok) {
      await response.body?.cancel();
      const getHeader = (name: string) => response.headers.get(name) ?? undefined;
      throw createHubError({ status: response.status, getHeader }, what, page, "authorization" in authorization);
    }
    const bytes = await readBytes(response, MAX_ANSWER_BYTES);
    if (bytes === undefined) throw createError(what, `the response is larger than ${MAX_ANSWER_BYTES} bytes`);
    let body: unknown;
    try {
      body = await parseJsonIncrementally(bytes, MAX_DEPTH);
    } catch (cause) {
      throw createError(what, "the response isn't JSON", cause);
    }
    return { body, next: this.#findNextPage(response.headers.get("link"), pageUrl, what) };
  }

  /** Returns the next page. A mirror may return the original hub's URL, so only the query is used. */
  #findNextPage(link: string | null, pageUrl: URL, what: string): URL | undefined {
    const [, address] = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(link ?? "") ?? [];
    if (address === undefined) return undefined;
    if (!URL.canParse(address, pageUrl)) throw createError(what, "its next page isn't a URL");
    const next = new URL(address, pageUrl);
    const known = [this.#origin, "https://huggingface.co"];
    if (!known.includes(next.origin)) throw createError(what, "its next page is on another server");
    const page = new URL(pageUrl);
    page.search = next.search;
    return page;
  }

  #toSearchUrl(cursor: string): URL {
    const parameters = new URLSearchParams(cursor);
    if (cursor.length > 4000 || !parameters.get("cursor")) {
      throw new AppError("invalid_request", "Invalid cursor");
    }
    return new URL(`${this.#base}/api/models?${parameters}`);
  }
}

function createError(what: string, found: string, cause?: unknown): AppError {
  return new AppError("upstream_error", `Can't get ${what} from the model hub: ${found}`, { cause });
}

function toFoundRepo(item: Record<string, unknown>): FoundRepo[] {
  const repo = item.id;
  if (typeof repo !== "string" || repo.length > 200) return [];
  return [{
    repo,
    downloads: toCount(item.downloads),
    likes: toCount(item.likes),
    updatedAt: toTime(item.lastModified),
    isGated: isGated(item.gated),
    license: toLicense(item),
    tags: toTags(item),
  }];
}

function toHubFile(entry: Record<string, unknown>): HubFile[] {
  const lfs = asObject(entry.lfs);
  const sizeBytes = typeof lfs.size === "number" ? lfs.size : entry.size;
  if (entry.type !== "file" || typeof entry.path !== "string") return [];
  if (typeof sizeBytes !== "number" || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0) return [];
  const isLarge = typeof lfs.oid === "string" && /^[0-9a-f]{64}$/.test(lfs.oid);
  const isBlob = typeof entry.oid === "string" && /^[0-9a-f]{40}$/.test(entry.oid);
  return [{
    path: entry.path,
    sizeBytes,
    ...(isLarge ? { sha256: lfs.oid as string } : isBlob ? { gitSha1: entry.oid as string } : {}),
  }];
}

function toCount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : 0;
}

function toTime(value: unknown): string | null {
  const ms = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

function isGated(value: unknown): boolean {
  return value === true || value === "auto" || value === "manual";
}

function toTags(item: Record<string, unknown>): string[] {
  const tags = Array.isArray(item.tags) ? item.tags.filter((tag) => typeof tag === "string") : [];
  return tags.filter((tag) => tag.length <= 200).slice(0, MAX_TAGS);
}

function toLicense(item: Record<string, unknown>): string | null {
  const tag = toTags(item).find((text) => text.startsWith("license:"));
  const { license } = asObject(item.cardData);
  return tag?.slice("license:".length) ?? (typeof license === "string" ? license.slice(0, 200) : null);
}

/** An error response of the hub. */
export interface HubErrorResponse {
  status: number;
  getHeader(name: string): string | undefined;
}

/** Statuses after which the same request may succeed later. */
const TEMPORARY = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Reports whether a retry may succeed. */
export function isTemporary(status: number): boolean {
  return TEMPORARY.has(status);
}

/**
 * Returns the number of seconds after which to retry, if the hub reports it.
 *
 * Every response has a `RateLimit` header with the end of the window. It only matters if the limit is reached.
 */
export function parseHubRetryAfter({ status, getHeader }: HubErrorResponse): number | undefined {
  const reset = status === 429 ? /(?:^|;)\s*t=(\d{1,6})/.exec(getHeader("ratelimit") ?? "")?.[1] : undefined;
  const retry = /^\s*(\d{1,6})\s*$/.exec(getHeader("retry-after") ?? "")?.[1];
  const seconds = reset ?? retry;
  return seconds === undefined ? undefined : Number(seconds);
}

/**
 * Creates the error for an error response.
 *
 * @param what What was requested: `the files of "owner/name"`.
 * @param page Page of the repository, where access is requested.
 * @param hasToken True if a token was sent.
 */
export function createHubError(response: HubErrorResponse, what: string, page: string, hasToken: boolean): AppError {
  const { status, getHeader } = response;
  const code = getHeader("x-error-code");
  const message = getHeader("x-error-message") ?? "";
  const tried = `Can't get ${what} from the model hub`;
  const setToken = "save a token of your account to a file and set hub_token_file";
  if (code === "GatedRepo") {
    return new AppError(
      "upstream_error",
      hasToken
        ? `${tried}: your account has no access. Request it at ${page}, and allow the token to read gated repositories.`
        : `${tried}: accept its terms at ${page}, then ${setToken}`,
    );
  }
  if (status === 401 && hasToken && code === undefined) {
    return new AppError("upstream_error", `${tried}: the token in hub_token_file is invalid. Replace it.`);
  }
  if (status === 401) {
    const hint = hasToken ? "your account has no access to it" : `it is private. To use it, ${setToken}`;
    return new AppError("not_found", `${tried}: it doesn't exist, or ${hint}`);
  }
  if (status === 403 && /disabled/i.test(message)) {
    return new AppError("upstream_error", `${tried}: the hub has disabled it`);
  }
  if (status === 403) return new AppError("upstream_error", `${tried}: access denied. See ${page}`);
  if (status === 404 || status === 410) return new AppError("not_found", `${tried}: it doesn't exist`);
  const retry = parseHubRetryAfter(response);
  if (status === 429) {
    const wait = retry === undefined ? "later" : `in ${retry} s`;
    return new AppError("upstream_error", `${tried}: too many requests. Try again ${wait}.`, {
      retryAfterSeconds: retry,
    });
  }
  return new AppError("upstream_error", `${tried}: it returned status ${status}`, { retryAfterSeconds: retry });
}
