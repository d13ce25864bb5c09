/** Cuts long work on the serving thread into turns, between which requests and streams get theirs. */

/** A turn of the event loop that takes longer shows as a late token somewhere. */
const TURN_MS = 8;

/** When the present turn of the event loop began, as far as some work has looked; it is the same for all that run in it. */
let turnBeganAt: number | undefined;

function turnBegin(): number {
  if (turnBeganAt === undefined) {
    turnBeganAt = performance.now();
    setImmediate(() => turnBeganAt = undefined);
  }
  return turnBeganAt;
}

/** The pace of one piece of work; pieces that follow one another without a pause have one turn together. */
export class Pace {
  constructor() {
    turnBegin();
  }

  /** Whether the current turn is used up. Checking it first saves a loop of very short steps one `await` per step. */
  get isUsedUp(): boolean {
    return performance.now() - turnBegin() >= TURN_MS;
  }

  /** Lets others have a turn if the current one is used up. Call it between steps of a millisecond or so. */
  async rest(): Promise<void> {
    if (this.isUsedUp) await this.stop();
  }

  /** Lets others have a turn in any case. */
  async stop(): Promise<void> {
    // By a timer: between two immediates the runtime looks at no socket (seen on Deno 2.9.6).
    await new Promise<void>((resolve) => setTimeout(resolve));
    turnBeganAt = undefined;
    turnBegin();
  }
}
