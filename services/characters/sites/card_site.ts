/**
 * Searches the card site and downloads cards from it and other sites, through the SSRF guard. card_file.ts parses the
 * cards.
 */
import { LRUCache } from "lru-cache";
import { type ImageType, sniffImage } from "../../attachments/images/image_header.ts";
import { AppError } from "../../errors.ts";
import type { Guard } from "../../http/guard/guarded_fetch.ts";
import {
  type FetchedCard,
  findOtherSite,
  findSiteCard,
  formatSitePath,
  type FoundCard,
  getSiteHosts,
  isForAdults,
  OTHER_SITES,
  parseSiteAnswer,
  parseSiteCard,
  readSiteAnswer,
  type SiteAnswer,
  type SiteAnswerKind,
  type SiteCard,
  type SiteHosts,
  toFoundCard,
} from "./card_site_responses.ts";
import { MAX_PARSED_BYTES } from "../../json/json_body.ts";
import type { Sandbox, SandboxKind } from "../../platform/sandbox/sandbox.ts";

/** A search. */
export interface CardSearch {
  query: string;
  /** All of them must match. */
  tags: string[];
  sort: CardSort;
  /** From 1. */
  page: number;
  /** Whether to include results that the site marks as adult content. */
  isForAdults: boolean;
}

/** Sort orders, with the site's names for them. */
const SORTS = {
  relevance: "default",
  trending: "trending",
  downloads: "download_count",
  stars: "star_count",
  rating: "rating",
  newest: "created_at",
  updated: "last_activity_at",
  name: "name",
} as const;

/** A sort order. */
export type CardSort = keyof typeof SORTS;

/** All sort orders. */
export const CARD_SORTS = Object.keys(SORTS) as [CardSort, ...CardSort[]];

/** One page of results. */
export interface CardSearchPage {
  items: FoundCard[];
  /** Number of the next page. */
  next_cursor: string | null;
}

/** Dependencies of `CardSite`. */
export interface CardSiteDeps {
  guard: Pick<Guard, "fetch">;
  /** Reads long answers. */
  sandbox: Sandbox;
  /** `card_site_url` */
  siteUrl: string;
  /** Maximum size of a card file. */
  maxCardBytes: number;
  now(): number;
}

/** Results per page; the site itself shows 24 to 48. */
const PAGE_SIZE = 30;
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const MAX_IMAGE_BYTES = 8 * 1024 * 1024;
/** Results are cached while someone pages through them. */
const CACHED_MS = 5 * 60 * 1000;
const MAX_CACHED = 50;
/** Some paths reject requests with a generic user agent. */
const HEADERS = { "User-Agent": "Parlor (self-hosted chat; imports of single cards)", Accept: "*/*" };

const MIB = 1024 * 1024;
const KIND: SandboxKind = {
  url: new URL("./card_site_child.ts", import.meta.url),
  maxChildren: 1,
  maxCpuMs: 20_000,
  maxResidentBytes: 512 * MIB,
  maxMessageBytes: 32 * MIB,
};

/** Client of the card site. */
export class CardSite {
  readonly #options: CardSiteDeps;
  readonly #hosts: SiteHosts;
  readonly #cached = new LRUCache<string, { page: CardSearchPage; untilMs: number }>({ max: MAX_CACHED });

  constructor(options: CardSiteDeps) {
    this.#options = options;
    this.#hosts = getSiteHosts(options.siteUrl);
  }

  /** @throws {AppError} `upstream_error`, `upstream_timeout`, `too_large`; the reason of `signal` */
  async search(search: CardSearch, signal: AbortSignal): Promise<CardSearchPage> {
    const url = this.#toSearchUrl(search);
    const cached = this.#cached.get(url);
    if (cached !== undefined && cached.untilMs > this.#options.now()) return cached.page;
    const { nodes } = await this.#fetchAnswer("search", url, signal);
    if (nodes === undefined) throw createUnexpectedError(this.#hosts.api);
    const requestedTags = search.tags.map((tag) => tag.toLowerCase());
    // The site doesn't document how it treats these parameters.
    const items = nodes.filter((node) => search.isForAdults || !isForAdults(node))
      .map((node) => toFoundCard(node, this.#hosts.pages)).filter((found) => found !== undefined)
      .filter(({ tags }) => requestedTags.every((tag) => tags.some((own) => own.toLowerCase() === tag)));
    const page = { items, next_cursor: nodes.length < PAGE_SIZE ? null : String(search.page + 1) };
    this.#cached.set(url, { page, untilMs: this.#options.now() + CACHED_MS });
    return page;
  }

  /**
   * Fetches the image of a search result. Its URL is built from creator and slug only, so no response can redirect the
   * request elsewhere.
   *
   * @throws {AppError} `not_found`, and like `search`
   */
  async fetchAvatar(
    creator: string,
    slug: string,
    signal: AbortSignal,
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; type: ImageType }> {
    const card = parseSiteCard(`${creator}/${slug}`);
    if (card === undefined) throw new AppError("not_found", "The card site has no such character");
    const url = `${this.#hosts.images}/avatars/${formatSitePath(card)}/avatar.webp`;
    const response = await this.#fetch(url, signal, MAX_IMAGE_BYTES);
    if (response.status === 404) {
      await response.body?.cancel();
      throw new AppError("not_found", "The card site has no image of this character");
    }
    const bytes = await readBody(response, url);
    const facts = sniffImage(bytes);
    if (facts === undefined) {
      throw new AppError(
        "upstream_error",
        `Can't show the image from "${getHost(url)}": it isn't a PNG, JPEG, WebP or GIF`,
      );
    }
    return { bytes, type: facts.type };
  }

  /**
   * Fetches the card behind a URL: a character page of the card site or a few others, or a card file.
   *
   * @throws {AppError} `invalid_request` for an invalid URL; `unprocessable` for an unknown page;
   *   `address_not_allowed`, and like `search`
   */
  async fetchCard(address: string, signal: AbortSignal): Promise<FetchedCard> {
    if (!URL.canParse(address)) throw new AppError("invalid_request", "Can't import from this address: it isn't a URL");
    const url = new URL(address);
    const card = findSiteCard(url, this.#hosts);
    if (card !== undefined) return await this.#fetchSiteCard(card, signal);
    const fetchOther = findOtherSite(url);
    if (fetchOther !== undefined) {
      return await fetchOther({
        fetchAnswer: (kind, from, init) => this.#fetchAnswer(kind, from, signal, init),
        fetchFile: (from) => this.#fetchFile(from, signal),
        fetchImage: (from) => this.#tryFetchImage(from, signal),
      });
    }
    const file = await this.#fetchFile(url.href, signal);
    if (!isHtml(file.bytes)) return file;
    throw new AppError(
      "unprocessable",
      `Can't import from "${url.host}": it sent a web page instead of a card. Enter a character page of ` +
        `"${getHost(this.#hosts.pages)}" or ${OTHER_SITES}, or the address of a card file`,
    );
  }

  /** Prefers the file, which includes the image. After an edit it may not exist yet. */
  async #fetchSiteCard(card: SiteCard, signal: AbortSignal): Promise<FetchedCard> {
    const page = `${this.#hosts.api}/api/characters/${formatSitePath(card)}?full=true`;
    const { isFound, url, card: v2Card } = await this.#fetchAnswer("character", page, signal);
    if (!isFound) throw createUnexpectedError(this.#hosts.api);
    const linked = url !== undefined && URL.canParse(url) ? url : undefined;
    const files = [linked, `${this.#hosts.images}/avatars/${formatSitePath(card)}/chara_card_v2.png`];
    for (const file of files) {
      if (file === undefined) continue;
      try {
        const fetched = await this.#fetchFile(file, signal);
        if (sniffImage(fetched.bytes)?.type === "image/png") return fetched;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof AppError)) throw error;
      }
    }
    if (v2Card === undefined) throw createUnexpectedError(this.#hosts.api);
    return { bytes: v2Card, contentType: "application/json" };
  }

  /** Fetches an image; `undefined` if that fails: a card without image is better than none. */
  async #tryFetchImage(url: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const bytes = await readBody(await this.#fetch(url, signal, MAX_IMAGE_BYTES), url);
      return sniffImage(bytes) === undefined ? undefined : bytes;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError)) throw error;
    }
  }

  async #fetchFile(url: string, signal: AbortSignal): Promise<FetchedCard> {
    const response = await this.#fetch(url, signal, this.#options.maxCardBytes);
    const contentType = response.headers.get("content-type") ?? "";
    return { bytes: await readBody(response, url), contentType };
  }

  async #fetchAnswer(
    kind: SiteAnswerKind,
    url: string,
    signal: AbortSignal,
    init?: { method: "POST"; body: string },
  ): Promise<SiteAnswer> {
    const bytes = await readBody(await this.#fetch(url, signal, MAX_RESPONSE_BYTES, init), url);
    try {
      if (bytes.length <= MAX_PARSED_BYTES) return readSiteAnswer(kind, bytes);
      const { value, bytes: [card] } = await this.#options.sandbox.run(KIND, { value: kind, bytes: [bytes], signal });
      return parseSiteAnswer(value, card);
    } catch (cause) {
      signal.throwIfAborted();
      throw createUnexpectedError(url, cause);
    }
  }

  #fetch(
    url: string,
    signal: AbortSignal,
    maxBytes: number,
    init?: { method: "POST"; body: string },
  ): Promise<Response> {
    const headers = init === undefined ? HEADERS : { ...HEADERS, "Content-Type": "application/json" };
    return this.#options.guard.fetch(url, { ...init, headers, signal, maxBytes });
  }

  #toSearchUrl({ query, tags, sort, page, isForAdults }: CardSearch): string {
    const url = new URL(`${this.#hosts.api}/search`);
    const list = tags.join(",");
    // The site's documentation says `tags`, its own page sends `topics`.
    const parameters: Record<string, string> = {
      search: query,
      first: String(PAGE_SIZE),
      page: String(page),
      sort: SORTS[sort],
      asc: String(sort === "name"),
      namespace: "characters",
      nsfw: String(isForAdults),
      nsfl: String(isForAdults),
      ...(list === "" ? {} : { tags: list, topics: list }),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }
}

function createUnexpectedError(url: string, cause?: unknown): AppError {
  return new AppError(
    "upstream_error",
    `Can't read the response of the card site at "${getHost(url)}": it has an unknown format`,
    { cause },
  );
}

/** Reports whether bytes are HTML: they start with a tag. */
function isHtml(bytes: Uint8Array): boolean {
  return /^\uFEFF?\s*</.test(new TextDecoder().decode(bytes.subarray(0, 1000)));
}

async function readBody(response: Response, url: string): Promise<Uint8Array<ArrayBuffer>> {
  if (response.ok) return await response.bytes();
  await response.body?.cancel();
  const retryAfter = Number(response.headers.get("retry-after"));
  throw new AppError("upstream_error", `Can't download from "${getHost(url)}": status ${response.status}`, {
    retryAfterSeconds: retryAfter > 0 && retryAfter < 86_400 ? Math.ceil(retryAfter) : undefined,
  });
}

function getHost(url: string): string {
  return new URL(url).host;
}
