/** The conversation that will probably be opened next, read before it is. */
import type { RecentConversation } from "../../api/types.ts";
import type { Api } from "../../api/api.ts";
import { PAGE } from "./message_pages.ts";

/** What was read longer ago is read anew. */
const FRESH_MS = 5000;

/** Holds one reading, for whoever opens that conversation within a few seconds. */
export class ChatPrefetch {
  #api: Pick<Api, "getRecent">;
  #now: () => number;
  #begun: { id: string; atMs: number; reading: Promise<RecentConversation> } | undefined;

  constructor(api: Pick<Api, "getRecent">, now: () => number = () => performance.now()) {
    this.#api = api;
    this.#now = now;
  }

  /** Reads a conversation that somebody is about to open, unless that was done just now. */
  begin(id: string): void {
    if (this.#fresh(id)) return;
    const reading = this.#api.getRecent(id, PAGE);
    this.#begun = { id, atMs: this.#now(), reading };
    // Whoever opens it asks again, and tells why it cannot be read.
    reading.catch(() => this.forget(id));
  }

  /** Gives what was begun, once; undefined where nothing was, or too long ago. */
  take(id: string): Promise<RecentConversation> | undefined {
    const begun = this.#fresh(id);
    if (begun) this.#begun = undefined;
    return begun?.reading;
  }

  /** Drops what was read of a conversation: it has changed. */
  forget(id: string): void {
    if (this.#begun?.id === id) this.#begun = undefined;
  }

  #fresh(id: string) {
    const begun = this.#begun;
    return begun?.id === id && this.#now() - begun.atMs < FRESH_MS ? begun : undefined;
  }
}
