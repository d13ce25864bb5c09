/** A clock that stands still until a test moves it: on a busy machine no time limit passes before what it limits has begun. */
import { vi } from "vitest";

const reallyLater = globalThis.setTimeout;

/** The clock of this process. Disposing of it sets the real one going again. */
export interface StandingClock extends Disposable {
  /** Lets time pass: timers fire that are due by then, also those that were set meanwhile. */
  advance(ms: number): void;
}

/** Stops timers and the monotonic clock, but neither input and output nor `Date`. */
export function standingClock(): StandingClock {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] });
  return {
    advance: (ms) => void vi.advanceTimersByTime(ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}

/** Waits in real time until a condition holds, which may be while the clock stands; the test's own limit ends it. */
export async function happened(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => reallyLater(resolve, 2));
}
