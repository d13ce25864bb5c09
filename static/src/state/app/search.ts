/** A search over all conversations that runs while its words are typed. */
import { signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { SearchHit } from "../../api/types.ts";

/** How long the typing has to rest before the server is asked. */
const PAUSE_MS = 150;

/** The server takes no longer ones. */
const MAX_QUERY_LENGTH = 500;

/** One search; each change of its words ends the one before. */
export class Search {
  readonly query = signal("");
  readonly hits = signal<readonly SearchHit[]>([]);
  /** The words whose hits are shown. */
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

  /** Takes what is typed; the hits of before stay until the new ones are here. */
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

  /** Asks again after a failure. */
  retry(): void {
    this.state.value = "searching";
    void this.#run();
  }

  /** Reads the next hits, when there are more. */
  async more(): Promise<void> {
    if (this.state.value !== "more" || this.#cursor === null) return;
    this.state.value = "searching";
    await this.#read(this.shownQuery.value, this.#cursor);
  }

  /** Ends what runs. */
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
      const page = await this.#api.search(query, cursor, signal);
      if (signal.aborted) return;
      this.hits.value = cursor === undefined ? page.items : [...this.hits.value, ...page.items];
      this.shownQuery.value = query;
      this.#cursor = page.next_cursor;
      this.error.value = undefined;
      this.state.value = page.next_cursor === null ? "done" : "more";
      // A page may be short, even empty, and have a next one all the same.
      if (page.items.length === 0) await this.more();
    } catch (thrown) {
      if (signal.aborted) return;
      this.error.value = asApiError(thrown);
      this.state.value = "failed";
    }
  }
}

/** A piece of the text. */
interface TextPart {
  text: string;
  isHit: boolean;
}

/** Cuts a text where the words of a query begin and end; "quoted phrases" count as a whole. Letter case does not matter. */
export function splitByWords(text: string, query: string): TextPart[] {
  const words = [...query.matchAll(/"([^"]+)"|([^\s"]+)/g)].map(([, phrase, word]) => phrase ?? word ?? "").filter(
    Boolean,
  );
  if (words.length === 0) return [{ text, isHit: false }];
  // Longer words first, so that one that begins another does not cut it short.
  const sorted = words.sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`(${sorted.join("|")})`, "giu"));
  return parts.map((part, index) => ({ text: part, isHit: index % 2 === 1 })).filter((piece) => piece.text !== "");
}
