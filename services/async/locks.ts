/**
 * Locks and semaphores: one piece of work at a time, for example so that two changes of a document never interleave, or
 * a limited number.
 */

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
  async waitUntilSettled(): Promise<void> {
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

/** Returns a permit. Later calls have no effect. */
type Release = () => void;

/**
 * A fixed number of permits, granted first come, first served. Limits concurrent calls, for example to a speech server
 * that has only one model.
 */
export class Semaphore {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #used = 0;

  /** @param limit Number of permits. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether no permit is in use. */
  get isIdle(): boolean {
    return this.#used === 0;
  }

  /** Whether the next call of `acquire` has to wait. */
  get isFull(): boolean {
    return this.#used >= this.#limit;
  }

  /**
   * Waits for a permit.
   *
   * @param signal Ends the wait.
   * @throws The reason of `signal`.
   */
  async acquire(signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    if (this.#used < this.#limit) this.#used++;
    else await this.#wait(signal);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const next = this.#waiting.shift();
      // The permit goes straight to the next in line. Otherwise a later caller could take it first.
      if (next) next();
      else this.#used--;
    };
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(start), 1);
        reject(signal!.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(start);
    });
  }
}

/** One semaphore per key, such as the origin of a server. */
export class KeyedSemaphore {
  readonly #limit: number;
  readonly #semaphores = new Map<string, Semaphore>();

  /** @param limit Permits of each key. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Waits for a permit of a key.
   *
   * @throws The reason of `signal`.
   */
  async acquire(key: string, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const semaphore = this.#semaphores.get(key) ?? new Semaphore(this.#limit);
    this.#semaphores.set(key, semaphore);
    const release = await semaphore.acquire(signal);
    return () => {
      release();
      if (semaphore.isIdle && this.#semaphores.get(key) === semaphore) this.#semaphores.delete(key);
    };
  }
}
