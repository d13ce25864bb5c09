/** The model hub's API as we use it: search, a repository's commit and files, addresses of files. Downloads are elsewhere. */
import { AppError, messageOf } from "../../errors.ts";
import type { Guard } from "../../http/guard/guarded_fetch.ts";
import { hubError } from "./hub_errors.ts";
import type { ModelFormat } from "../local/model_paths.ts";
import { asArray, asObject } from "../../json/type_guards.ts";

/** What the hub client needs. */
export interface HubOptions {
  guard: Pick<Guard, "fetch">;
  /** `https://huggingface.co`, or a mirror, perhaps with a path. */
  url: string;
  /** File with the access token; read anew for each call, so that it can be replaced. */
  tokenFile: string | null;
}

/** One repository that a search found. */
export interface FoundRepo {
  repo: string;
  downloads: number;
  likes: number;
  /** ISO 8601; `null` where the hub does not say. */
  updatedAt: string | null;
  isGated: boolean;
  license: string | null;
  tags: string[];
}

/** One file of a repository at one commit. */
export interface HubFile {
  path: string;
  sizeBytes: number;
  /** Of files in large-file storage. */
  sha256?: string;
  /** Git's SHA-1 of the blob; says something about the bytes only where there is no `sha256`. */
  gitSha1?: string;
}

/** A repository at the commit its main branch had. */
export interface HubRepo {
  repo: string;
  /** The commit. */
  revision: string;
  isGated: boolean;
  license: string | null;
  files: HubFile[];
}

const PAGE_SIZE = 30;
/** Of the file tree; each has about a thousand files. */
const MAX_TREE_PAGES = 20;
const MAX_TAGS = 50;
const MAX_TOKEN_BYTES = 4096;
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

/** Talks to the hub. Everything it answers is checked before use: a mirror or a stranger in between may answer anything. */
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
   * Searches repositories of a format, those downloaded most first.
   *
   * @param cursor `nextCursor` of the page before.
   * @throws {AppError} `invalid_request` for a cursor that is none; `upstream_error`, `upstream_timeout`, `not_available`
   */
  async search(
    { query, format, cursor }: { query: string; format: ModelFormat; cursor?: string },
    signal: AbortSignal,
  ): Promise<{ items: FoundRepo[]; nextCursor: string | null }> {
    const parameters = new URLSearchParams({ filter: format, sort: "downloads", direction: "-1" });
    parameters.set("limit", String(PAGE_SIZE));
    if (query !== "") parameters.set("search", query);
    for (const field of ["downloads", "likes", "lastModified", "gated", "tags"]) parameters.append("expand", field);
    const url = cursor === undefined ? `${this.#base}/api/models?${parameters}` : this.#pageUrl(cursor);
    const { body, next } = await this.#get(url, `the search for "${query}"`, this.#base, signal);
    return {
      items: asArray(body).flatMap((item) => foundRepo(asObject(item))),
      nextCursor: next?.search.slice(1) ?? null,
    };
  }

  /**
   * Gives a repository's files at the commit its main branch has now.
   *
   * @param revision A commit, to get the files of that instead.
   * @throws {AppError} `not_found`; `upstream_error` as `hubError` says; `upstream_timeout`, `not_available`
   */
  async repo(repo: string, signal: AbortSignal, revision?: string): Promise<HubRepo> {
    const what = `the files of "${repo}"`;
    const api = `${this.#base}/api/models/${repo}`;
    const url = revision === undefined ? api : `${api}/revision/${revision}`;
    const detail = asObject((await this.#get(url, what, this.page(repo), signal)).body);
    const commit = detail.sha;
    if (typeof commit !== "string" || !COMMIT.test(commit)) throw odd(what, "its answer names no commit");
    const files: HubFile[] = [];
    let page: URL | undefined = new URL(`${api}/tree/${commit}?recursive=true`);
    for (let pages = 0; page !== undefined; pages++) {
      if (pages === MAX_TREE_PAGES) throw odd(what, "it has too many files");
      const answer = await this.#get(page, what, this.page(repo), signal);
      files.push(...asArray(answer.body).flatMap((entry) => hubFile(asObject(entry))));
      page = answer.next;
    }
    return { repo, revision: commit, isGated: isGated(detail.gated), license: licenseOf(detail), files };
  }

  /** Gives the page of a repository, for people. */
  page(repo: string): string {
    return `${this.#base}/${repo}`;
  }

  /** Gives the address of a file at a commit; it redirects to wherever the bytes lie. */
  fileUrl(repo: string, revision: string, path: string): URL {
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    return new URL(`${this.#base}/${repo}/resolve/${encodeURIComponent(revision)}/${encoded}`);
  }

  /** Gives the token where it may be sent: to the hub's own origin and nowhere else. */
  async authorization(url: URL): Promise<Record<string, string>> {
    const token = url.origin === this.#origin ? await this.#token() : undefined;
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /** Says whether an address is the hub's own. */
  isOwn(url: URL): boolean {
    return url.origin === this.#origin;
  }

  async #token(): Promise<string | undefined> {
    const { tokenFile } = this.#options;
    if (tokenFile === null) return undefined;
    try {
      const text = await Deno.readTextFile(tokenFile);
      const token = text.trim();
      if (token === "") return undefined;
      if (token.length > MAX_TOKEN_BYTES || !/^[\x21-\x7e]+$/.test(token)) throw new Error("it holds no token");
      return token;
    } catch (cause) {
      throw new AppError("not_available", `Cannot read hub_token_file "${tokenFile}": ${messageOf(cause)}`, { cause });
    }
  }

  async #get(
    url: URL | string,
    what: string,
    page: string,
    signal: AbortSignal,
  ): Promise<{ body: unknown; next?: URL }> {
    const asked = new URL(url);
    const authorization = await this.authorization(asked);
    const response = await this.#options.guard.fetch(asked, {
      headers: { accept: "application/json", "user-agent": "Parlor", ...authorization },
      signal,
    });
    if (!response.ok) {
      await response.body?.cancel();
      const header = (name: string) => response.headers.get(name) ?? undefined;
      throw hubError({ status: response.status, header }, what, page, "authorization" in authorization);
    }
    let body: unknown;
    try {
      body = JSON.parse(await response.text());
    } catch (cause) {
      if (cause instanceof SyntaxError) throw odd(what, "its answer is no JSON", cause);
      throw cause;
    }
    return { body, next: this.#nextPage(response.headers.get("link"), asked, what) };
  }

  /** A mirror may pass on the original's address: the origin is put back to ours, and nothing but the query is taken over. */
  #nextPage(link: string | null, asked: URL, what: string): URL | undefined {
    const [, address] = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(link ?? "") ?? [];
    if (address === undefined) return undefined;
    if (!URL.canParse(address, asked)) throw odd(what, "its next page is no address");
    const next = new URL(address, asked);
    const known = [this.#origin, "https://huggingface.co"];
    if (!known.includes(next.origin)) throw odd(what, "its next page lies elsewhere");
    const page = new URL(asked);
    page.search = next.search;
    return page;
  }

  #pageUrl(cursor: string): URL {
    const parameters = new URLSearchParams(cursor);
    if (cursor.length > 4000 || !parameters.get("cursor")) {
      throw new AppError("invalid_request", "This cursor did not come from a search");
    }
    return new URL(`${this.#base}/api/models?${parameters}`);
  }
}

function odd(what: string, found: string, cause?: unknown): AppError {
  return new AppError("upstream_error", `Cannot get ${what} from the model hub: ${found}`, { cause });
}

function foundRepo(item: Record<string, unknown>): FoundRepo[] {
  const repo = item.id;
  if (typeof repo !== "string" || repo.length > 200) return [];
  return [{
    repo,
    downloads: countOf(item.downloads),
    likes: countOf(item.likes),
    updatedAt: timeOf(item.lastModified),
    isGated: isGated(item.gated),
    license: licenseOf(item),
    tags: tagsOf(item),
  }];
}

function hubFile(entry: Record<string, unknown>): HubFile[] {
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

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : 0;
}

function timeOf(value: unknown): string | null {
  const ms = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

function isGated(value: unknown): boolean {
  return value === true || value === "auto" || value === "manual";
}

function tagsOf(item: Record<string, unknown>): string[] {
  const tags = Array.isArray(item.tags) ? item.tags.filter((tag) => typeof tag === "string") : [];
  return tags.filter((tag) => tag.length <= 200).slice(0, MAX_TAGS);
}

function licenseOf(item: Record<string, unknown>): string | null {
  const tag = tagsOf(item).find((text) => text.startsWith("license:"));
  const { license } = asObject(item.cardData);
  return tag?.slice("license:".length) ?? (typeof license === "string" ? license.slice(0, 200) : null);
}
