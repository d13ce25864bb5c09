/** Lets things happen one after another by key: what reads a document to change it must not meet another such change. */

/** Queues of work, one a key; a key without work costs nothing. */
export class Turns {
  #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after everything that was queued before under the same key, however that ended. */
  take<T>(key: string, work: () => Promise<T> | T): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {}).then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    this.#last.set(key, settled);
    return mine;
  }

  /** Resolves once nothing is queued any more. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
