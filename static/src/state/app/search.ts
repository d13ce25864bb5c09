/** Search over all conversations while the user types. */
import { findTerms, parseSearchTerms } from "../../../../services/json/search_fold.ts";
import { signal } from "@preact/signals";
import type { Api, SearchFilters } from "../../api/api.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { DocumentHit, SearchHit } from "../../api/types.ts";

/** Pause in typing before the server is asked, in milliseconds. */
const PAUSE_MS = 150;

/** Longest query that the server accepts. */
const MAX_QUERY_LENGTH = 500;

/** One search. Each change of its query cancels the one before. */
export class Search {
  readonly query = signal("");
  readonly filters = signal<SearchFilters>({});
  readonly hits = signal<readonly (SearchHit | DocumentHit)[]>([]);
  /** The query whose hits are shown. */
  readonly shownQuery = signal("");
  readonly state = signal<"idle" | "searching" | "more" | "done" | "failed">("idle");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly #api: Pick<Api, "search">;
  #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #cursor: string | null = null;

  constructor(api: Pick<Api, "search">) {
    this.#api = api;
  }

  /** Sets the query. Previous hits stay until the new ones arrive. */
  type(text: string): void {
    this.query.value = text.slice(0, MAX_QUERY_LENGTH);
    this.close();
    if (this.query.value.trim() === "") {
      this.hits.value = [];
      this.shownQuery.value = "";
      this.state.value = "idle";
      return;
    }
    this.state.value = "searching";
    this.#timer = setTimeout(() => void this.#run(), PAUSE_MS);
  }

  /** Sets the filters. */
  narrow(filters: SearchFilters): void {
    this.filters.value = filters;
    this.type(this.query.peek());
  }

  /** Retries after a failure. */
  retry(): void {
    this.state.value = "searching";
    void this.#run();
  }

  /** Loads the next hits, if there are more. */
  async more(): Promise<void> {
    if (this.state.value !== "more" || this.#cursor === null) return;
    this.state.value = "searching";
    await this.#read(this.shownQuery.value, this.#cursor);
  }

  /** Cancels the running request. */
  close(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  async #run(): Promise<void> {
    await this.#read(this.query.value.trim(), undefined);
  }

  async #read(query: string, cursor: string | undefined): Promise<void> {
    const { signal } = this.#abort;
    try {
      const page = await this.#api.search(query, cursor, signal, this.filters.peek());
      if (signal.aborted) return;
      this.hits.value = cursor === undefined ? page.items : [...this.hits.value, ...page.items];
      this.shownQuery.value = query;
      this.#cursor = page.next_cursor;
      this.error.value = undefined;
      this.state.value = page.next_cursor === null ? "done" : "more";
      // A page can be short, even empty, and still have a next one.
      if (page.items.length === 0) await this.more();
    } catch (thrown) {
      if (signal.aborted) return;
      this.error.value = asApiError(thrown);
      this.state.value = "failed";
    }
  }
}

/** A part of the text. */
interface TextPart {
  text: string;
  isHit: boolean;
}

/** Splits a text at the words of a query, found as the server finds them. */
export function splitByWords(text: string, query: string): TextPart[] {
  const parts: TextPart[] = [];
  let at = 0;
  for (const [start, end] of findTerms(text, parseSearchTerms(query))) {
    parts.push({ text: text.slice(at, start), isHit: false }, { text: text.slice(start, end), isHit: true });
    at = end;
  }
  return [...parts, { text: text.slice(at), isHit: false }].filter((part) => part.text !== "");
}
