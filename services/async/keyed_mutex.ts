/** Locks that run work one after another, so that two changes of one document never interleave. */

/** A lock. Work runs in the order in which it was queued. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` once everything queued before it has settled, whether it succeeded or failed. */
  run<T>(work: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves once everything queued so far has settled. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** One lock per key. A key without work takes no memory. */
export class KeyedMutex {
  readonly #locks = new Map<string, { mutex: Mutex; queued: number }>();

  /** Runs `work` once everything queued before it under the same key has settled, whether it succeeded or failed. */
  run<T>(key: string, work: () => Promise<T> | T): Promise<T> {
    const lock = this.#locks.get(key) ?? { mutex: new Mutex(), queued: 0 };
    this.#locks.set(key, lock);
    lock.queued++;
    return lock.mutex.run(async () => {
      try {
        return await work();
      } finally {
        if (--lock.queued === 0) this.#locks.delete(key);
      }
    });
  }
}
