/** Prefetches the conversation that will probably be opened next. */
import type { RecentConversation } from "../../api/types.ts";
import type { Api } from "../../api/api.ts";
import { PAGE } from "./message_pages.ts";

/** Age at which a prefetched conversation is stale, in milliseconds. */
const FRESH_MS = 5000;

/** Holds one prefetched conversation. */
export class ChatPrefetch {
  #api: Pick<Api, "getRecent">;
  #now: () => number;
  #begun: { id: string; atMs: number; reading: Promise<RecentConversation> } | undefined;

  constructor(api: Pick<Api, "getRecent">, now: () => number = () => performance.now()) {
    this.#api = api;
    this.#now = now;
  }

  /** Prefetches a conversation, unless that was done just now. */
  begin(id: string): void {
    if (this.#fresh(id)) return;
    const reading = this.#api.getRecent(id, PAGE);
    this.#begun = { id, atMs: this.#now(), reading };
    // Opening it asks again, and shows the error.
    reading.catch(() => this.forget(id));
  }

  /** Returns a prefetched conversation once; undefined if there is none or it is stale. */
  take(id: string): Promise<RecentConversation> | undefined {
    const begun = this.#fresh(id);
    if (begun) this.#begun = undefined;
    return begun?.reading;
  }

  /** Drops a prefetched conversation that has changed. */
  forget(id: string): void {
    if (this.#begun?.id === id) this.#begun = undefined;
  }

  #fresh(id: string) {
    const begun = this.#begun;
    return begun?.id === id && this.#now() - begun.atMs < FRESH_MS ? begun : undefined;
  }
}
