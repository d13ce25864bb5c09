/** Measures how long a reply runs, without the time in which it only waits for the owner. */
export class RunClock {
  readonly #now: () => number;
  #elapsedMs: number;
  #running = 0;
  #sinceMs = 0;

  /** @param elapsedMs What ran before a restart. */
  constructor(now: () => number, elapsedMs = 0) {
    this.#now = now;
    this.#elapsedMs = elapsedMs;
  }

  /** Milliseconds so far. */
  get elapsedMs(): number {
    return this.#elapsedMs + (this.#running > 0 ? this.#now() - this.#sinceMs : 0);
  }

  /** Runs work on the clock. Work at the same time counts once. */
  async measure<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running++ === 0) this.#sinceMs = this.#now();
    try {
      return await work();
    } finally {
      if (--this.#running === 0) this.#elapsedMs += this.#now() - this.#sinceMs;
    }
  }
}
