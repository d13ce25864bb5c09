/** The tokens that entries may take: of one book, and of all. */
import type { ScanEntry } from "./scan_entries.ts";

/**
 * Takes entries as they come, the most important first. From the first that does not fit on nothing more is taken: the
 * less important do not slip past it (V3: the lowest are dropped until the rest fits).
 */
export class TokenBudget {
  #left: number;
  readonly #leftOfBook = new Map<string, number>();

  constructor(tokens: number | undefined) {
    this.#left = tokens ?? Infinity;
  }

  /** Says whether an entry still fits, and counts it then. */
  take({ owner, ignoreBudget }: ScanEntry, tokens: number): boolean {
    if (ignoreBudget) return true;
    const own = owner.book.token_budget;
    // 0 is what editors write where nothing was entered.
    const limit = typeof own === "number" && own > 0 ? own : Infinity;
    const left = this.#leftOfBook.get(owner.id) ?? limit;
    const isFitting = tokens <= left && tokens <= this.#left;
    if (tokens > this.#left) this.#left = 0;
    this.#leftOfBook.set(owner.id, isFitting ? left - tokens : tokens > left ? 0 : left);
    if (isFitting) this.#left -= tokens;
    return isFitting;
  }
}
