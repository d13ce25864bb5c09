/** Cuts long work on the serving thread into turns, between which requests and streams get theirs. */

/** A turn of the event loop that takes longer shows as a late token somewhere. */
const TURN_MS = 8;

/** The pace of one piece of work. */
export class Pace {
  #beganAt = performance.now();

  /** Lets others have a turn if the work has had its own; to be called between steps of a millisecond or so. */
  async rest(): Promise<void> {
    if (performance.now() - this.#beganAt >= TURN_MS) await this.stop();
  }

  /** Lets others have a turn in any case. */
  async stop(): Promise<void> {
    // By a timer: between two immediates the runtime looks at no socket (seen on Deno 2.9.6).
    await new Promise<void>((resolve) => setTimeout(resolve));
    this.#beganAt = performance.now();
  }
}
