/** Search in all messages of the open chat, loaded or not. */
import { parseSearchTerms } from "../../../../services/json/search_fold.ts";
import type { SearchHit } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { ConversationApi } from "../../api/conversations.ts";
import type { OpenChat } from "./open_chat.ts";

/** Pause in typing before the search starts, in milliseconds. */
const SEARCH_AFTER_MS = 150;

/** A search in one chat: its hits from newest to oldest, and the current one. */
export class ChatSearch {
  readonly isOpen = signal(false);
  readonly query = signal("");
  readonly hits = signal<SearchHit[]>([]);
  /** Index of the current hit; -1 without one. */
  readonly at = signal(-1);
  readonly state = signal<"idle" | "searching" | "done">("idle");
  readonly error = signal<ApiError | undefined>(undefined);
  /** True while older messages have not been searched. */
  readonly hasMore = computed(() => this.#cursor.value !== null);
  #cursor = signal<string | null>(null);
  #chat: OpenChat;
  #api: ConversationApi;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort = new AbortController();

  constructor(chat: OpenChat, api: ConversationApi) {
    this.#chat = chat;
    this.#api = api;
  }

  /** Sets the query; the newest hit is shown once found. */
  type(query: string): void {
    this.query.value = query;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#begin(), SEARCH_AFTER_MS);
  }

  /** Shows the next hit: an older one for 1, a newer one for -1. */
  async step(step: 1 | -1): Promise<void> {
    const target = this.at.peek() + step;
    if (target < 0) return;
    while (target >= this.hits.peek().length && this.hasMore.peek()) {
      if (!await this.#more()) return;
    }
    const hit = this.hits.peek()[target];
    if (!hit?.message_id) return;
    this.at.value = target;
    await this.#chat.show(hit.message_id, parseSearchTerms(this.query.peek()));
  }

  /** Ends the search and its requests. */
  close(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
    this.isOpen.value = false;
    this.#clear();
    this.query.value = "";
  }

  async #begin(): Promise<void> {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#clear();
    if (this.query.peek().trim() === "") return;
    if (await this.#more()) await this.step(1);
  }

  #clear(): void {
    this.hits.value = [];
    this.at.value = -1;
    this.#cursor.value = null;
    this.state.value = "idle";
    this.error.value = undefined;
  }

  /** Loads one more page of hits. Returns false if that failed or the search has ended. */
  async #more(): Promise<boolean> {
    const { signal } = this.#abort;
    this.state.value = "searching";
    try {
      const cursor = this.#cursor.peek() ?? undefined;
      const page = await this.#api.searchMessages(this.#chat.id, this.query.peek(), cursor, signal);
      if (signal.aborted) return false;
      this.hits.value = [...this.hits.peek(), ...page.items.filter((hit) => hit.message_id !== null)];
      this.#cursor.value = page.next_cursor;
      this.state.value = "done";
      return true;
    } catch (thrown) {
      if (signal.aborted) return false;
      this.error.value = asApiError(thrown);
      this.state.value = "done";
      return false;
    }
  }
}
