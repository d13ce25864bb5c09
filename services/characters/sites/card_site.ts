/** The card site and card files elsewhere, all through the guard: searched, looked at, fetched. What a card means is card_file.ts's. */
import { sniffImage } from "../../attachments/images/image_type.ts";
import type { ImageType } from "../../attachments/images/image_type.ts";
import { AppError } from "../../errors.ts";
import type { Guard } from "../../http/guard/guarded_fetch.ts";
import { hostsOf, pathOf, type SiteCard, siteCardAt, siteCardOf, type SiteHosts } from "./card_site_address.ts";
import { type FetchedCard, OTHER_SITES, otherSiteCard } from "./other_card_sites.ts";
import { cardOfDefinition, type FoundCard, foundCardOf, isForAdults, nodesOf } from "./card_site_responses.ts";
import { isJsonObject } from "../../json/type_guards.ts";

/** What is looked for. */
export interface CardSearch {
  query: string;
  /** All of them have to be there. */
  tags: string[];
  sort: CardSort;
  /** From 1. */
  page: number;
  /** Show what the site marks as not for everybody. */
  isForAdults: boolean;
}

/** The site's orders, by our names. */
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

/** An order of the results. */
export type CardSort = keyof typeof SORTS;

/** All orders. */
export const CARD_SORTS = Object.keys(SORTS) as [CardSort, ...CardSort[]];

/** One page of results. */
export interface CardSearchPage {
  items: FoundCard[];
  /** Number of the next page, as text. */
  next_cursor: string | null;
}

/** How to ask. */
export interface CardSiteOptions {
  guard: Pick<Guard, "fetch">;
  /** `card_site_url` */
  siteUrl: string;
  /** Largest card file. */
  maxCardBytes: number;
  now(): number;
}

/** Results of a page; the site's own pages have 24 to 48. */
const PAGE_SIZE = 30;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_PICTURE_BYTES = 8 * 1024 * 1024;
/** The site is asked once for what somebody leafs through. */
const CACHED_MS = 5 * 60 * 1000;
const MAX_CACHED = 50;
/** A bare tool's name is refused by some of its paths. */
const HEADERS = { "User-Agent": "Parlor (self-hosted chat; imports of single cards)", Accept: "*/*" };

const encoder = new TextEncoder();

/** Asks the card site. */
export class CardSite {
  readonly #options: CardSiteOptions;
  readonly #hosts: SiteHosts;
  readonly #cached = new Map<string, { page: CardSearchPage; untilMs: number }>();

  constructor(options: CardSiteOptions) {
    this.#options = options;
    this.#hosts = hostsOf(options.siteUrl);
  }

  /** @throws {AppError} `upstream_error`, `upstream_timeout`, `too_large`; the reason of `signal` */
  async search(search: CardSearch, signal: AbortSignal): Promise<CardSearchPage> {
    const url = this.#searchUrl(search);
    const cached = this.#cached.get(url);
    if (cached !== undefined && cached.untilMs > this.#options.now()) return cached.page;
    const nodes = nodesOf(await this.#json(url, signal));
    if (nodes === undefined) throw misunderstood(this.#hosts.api);
    const wanted = search.tags.map((tag) => tag.toLowerCase());
    // What the site makes of these parameters is not written down anywhere.
    const items = nodes.filter((node) => search.isForAdults || !isForAdults(node))
      .map((node) => foundCardOf(node, this.#hosts.pages)).filter((found) => found !== undefined)
      .filter(({ tags }) => wanted.every((tag) => tags.some((own) => own.toLowerCase() === tag)));
    const page = { items, next_cursor: nodes.length < PAGE_SIZE ? null : String(search.page + 1) };
    this.#cached.delete(url);
    this.#cached.set(url, { page, untilMs: this.#options.now() + CACHED_MS });
    if (this.#cached.size > MAX_CACHED) this.#cached.delete(this.#cached.keys().next().value!);
    return page;
  }

  /**
   * Gives the picture of a found character. Where it lies follows from creator and slug alone: no address in any page
   * or answer can lead anywhere else.
   *
   * @throws {AppError} `not_found`, and as `search`
   */
  async picture(
    creator: string,
    slug: string,
    signal: AbortSignal,
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; type: ImageType }> {
    const card = siteCardOf(`${creator}/${slug}`);
    if (card === undefined) throw new AppError("not_found", "There is no such character at the card site");
    const url = `${this.#hosts.pictures}/avatars/${pathOf(card)}/avatar.webp`;
    const response = await this.#ask(url, signal, MAX_PICTURE_BYTES);
    if (response.status === 404) {
      await response.body?.cancel();
      throw new AppError("not_found", "The card site has no picture of this character");
    }
    const bytes = await wholeOf(response, url);
    const facts = sniffImage(bytes);
    if (facts === undefined) {
      throw new AppError("upstream_error", `Cannot show what "${hostIn(url)}" sent: it is no picture`);
    }
    return { bytes, type: facts.type };
  }

  /**
   * Fetches the card file that an address leads to: a character's page at the card site, at a few others, or the file itself.
   *
   * @throws {AppError} `invalid_request` for what is no address of a card; `unprocessable` for a page that is not known;
   *   `address_not_allowed`, and as `search`
   */
  async fetchCard(address: string, signal: AbortSignal): Promise<FetchedCard> {
    if (!URL.canParse(address)) throw new AppError("invalid_request", "Cannot import the address: it is not a URL");
    const url = new URL(address);
    const card = siteCardAt(url, this.#hosts);
    if (card !== undefined) return await this.#siteCard(card, signal);
    const fetchOther = otherSiteCard(url);
    if (fetchOther !== undefined) {
      return await fetchOther({
        json: (from, init) => this.#json(from, signal, init),
        file: (from) => this.#file(from, signal),
        picture: (from) => this.#pictureAt(from, signal),
      });
    }
    const file = await this.#file(url.href, signal);
    if (!isPage(file.bytes)) return file;
    throw new AppError(
      "unprocessable",
      `Cannot import from "${url.host}": it sent a page and no card. Pages of characters are known at ` +
        `"${hostIn(this.#hosts.pages)}" and at ${OTHER_SITES}; elsewhere it takes a link to the card file itself`,
    );
  }

  /** Prefers the file, which has the picture; after an edit it may not be there yet. */
  async #siteCard(card: SiteCard, signal: AbortSignal): Promise<FetchedCard> {
    const answer = await this.#json(`${this.#hosts.api}/api/characters/${pathOf(card)}?full=true`, signal);
    const node = isJsonObject(answer) && isJsonObject(answer.node) ? answer.node : undefined;
    if (node === undefined) throw misunderstood(this.#hosts.api);
    const given = typeof node.max_res_url === "string" && URL.canParse(node.max_res_url) ? node.max_res_url : undefined;
    const files = [given, `${this.#hosts.pictures}/avatars/${pathOf(card)}/chara_card_v2.png`];
    for (const file of files) {
      if (file === undefined) continue;
      try {
        const fetched = await this.#file(file, signal);
        if (sniffImage(fetched.bytes)?.type === "image/png") return fetched;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof AppError)) throw error;
      }
    }
    const made = cardOfDefinition(node);
    if (made === undefined) throw misunderstood(this.#hosts.api);
    return { bytes: encoder.encode(JSON.stringify(made)), contentType: "application/json" };
  }

  /** A card without its picture is better than none. */
  async #pictureAt(url: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const bytes = await wholeOf(await this.#ask(url, signal, MAX_PICTURE_BYTES), url);
      return sniffImage(bytes) === undefined ? undefined : bytes;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError)) throw error;
    }
  }

  async #file(url: string, signal: AbortSignal): Promise<FetchedCard> {
    const response = await this.#ask(url, signal, this.#options.maxCardBytes);
    const contentType = response.headers.get("content-type") ?? "";
    return { bytes: await wholeOf(response, url), contentType };
  }

  async #json(url: string, signal: AbortSignal, init?: { method: "POST"; body: string }): Promise<unknown> {
    const bytes = await wholeOf(await this.#ask(url, signal, MAX_ANSWER_BYTES, init), url);
    try {
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch (cause) {
      throw misunderstood(url, cause);
    }
  }

  #ask(
    url: string,
    signal: AbortSignal,
    maxBytes: number,
    init?: { method: "POST"; body: string },
  ): Promise<Response> {
    const headers = init === undefined ? HEADERS : { ...HEADERS, "Content-Type": "application/json" };
    return this.#options.guard.fetch(url, { ...init, headers, signal, maxBytes });
  }

  #searchUrl({ query, tags, sort, page, isForAdults }: CardSearch): string {
    const url = new URL(`${this.#hosts.api}/search`);
    const list = tags.join(",");
    // The site's document says `tags`, its own page sends `topics`.
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

function misunderstood(url: string, cause?: unknown): AppError {
  return new AppError(
    "upstream_error",
    `Cannot understand the card site at "${hostIn(url)}": its answer is not of the known form`,
    { cause },
  );
}

/** Says whether bytes are those of a page: the first thing in it is a tag. */
function isPage(bytes: Uint8Array): boolean {
  return /^\uFEFF?\s*</.test(new TextDecoder().decode(bytes.subarray(0, 1000)));
}

async function wholeOf(response: Response, url: string): Promise<Uint8Array<ArrayBuffer>> {
  if (response.ok) return await response.bytes();
  await response.body?.cancel();
  const retryAfter = Number(response.headers.get("retry-after"));
  throw new AppError("upstream_error", `Cannot fetch from "${hostIn(url)}": it answered with ${response.status}`, {
    retryAfterSeconds: retryAfter > 0 && retryAfter < 86_400 ? Math.ceil(retryAfter) : undefined,
  });
}

function hostIn(url: string): string {
  return new URL(url).host;
}
