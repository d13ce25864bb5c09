/** Lets a few calls at once through to a server and queues the rest: most speech and image servers have one model behind one lock. */

/** A queue per server. */
export class Turnstile {
  readonly #limit: number;
  readonly #lanes = new Map<string, { running: number; waiting: (() => void)[] }>();

  /** @param limit Calls that one server gets at once. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Waits for a place, first come, first served.
   *
   * @returns Gives the place back; to be called once.
   * @throws The reason of `signal` when the caller leaves the queue.
   */
  async enter(key: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const lane = this.#lanes.get(key) ?? { running: 0, waiting: [] };
    this.#lanes.set(key, lane);
    if (lane.running < this.#limit) lane.running++;
    else await this.#wait(lane.waiting, signal);
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      const next = lane.waiting.shift();
      // The place passes on as it is; otherwise a newcomer could slip in between.
      if (next) next();
      else if (--lane.running === 0) this.#lanes.delete(key);
    };
  }

  #wait(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        waiting.splice(waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      waiting.push(go);
    });
  }
}
