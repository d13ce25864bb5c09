/** A search on the card site, page by page. */
import type { FoundCard } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { CardSiteQuery } from "../../api/characters.ts";
import type { Api } from "../../api/api.ts";

/** Sort orders of the site. */
export const CARD_SITE_SORTS = ["relevance", "downloads", "rating", "newest", "updated"] as const;

/** One search on the card site. */
export class CardSite {
  readonly query = signal<CardSiteQuery>({ q: "", tags: "", sort: "downloads", nsfw: false });
  readonly found = signal<FoundCard[]>([]);
  readonly state = signal<"idle" | "searching" | "ready" | "failed">("idle");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly hasMore = signal(false);
  readonly #api: Api;
  #next = "1";
  #asked: CardSiteQuery | undefined;
  #search = new AbortController();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Searches with the current query. */
  async find(): Promise<void> {
    this.#asked = this.query.peek();
    this.#next = "1";
    this.found.value = [];
    await this.#read();
  }

  /** Loads the next page. */
  async more(): Promise<void> {
    if (this.hasMore.peek() && this.state.peek() !== "searching") await this.#read();
  }

  /** Cancels the running request. */
  close(): void {
    this.#search.abort();
  }

  async #read(): Promise<void> {
    this.#search.abort();
    const { signal } = this.#search = new AbortController();
    this.state.value = "searching";
    this.error.value = undefined;
    try {
      const page = await this.#api.searchCardSite(this.#asked!, this.#next, signal);
      const known = new Set(this.found.peek().map(({ id }) => id));
      this.found.value = [...this.found.peek(), ...page.items.filter(({ id }) => !known.has(id))];
      this.hasMore.value = page.next_cursor !== null;
      this.#next = page.next_cursor ?? "1";
      this.state.value = "ready";
    } catch (thrown) {
      if (signal.aborted) return;
      this.error.value = asApiError(thrown);
      this.state.value = "failed";
    }
  }
}
