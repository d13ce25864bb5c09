/** Lets other work in between: what goes through thousands of entries must not hold up every request until it is done. */

/** Longest time at a stretch. */
const STRETCH_MS = 5;

/** The pace of one piece of work on the serving thread. */
export class Pace {
  #since = performance.now();

  /** Says whether it is time to rest. */
  get isLong(): boolean {
    return performance.now() - this.#since > STRETCH_MS;
  }

  /** Lets whatever waits be done first. */
  async rest(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve));
    this.#since = performance.now();
  }
}
