/** A clock that stands still until a test moves it: on a busy machine no time limit passes before what it limits has begun. */
import { vi } from "vitest";

const reallyLater = globalThis.setTimeout;

/** The clock of this process. Disposing of it sets the real one going again. */
export interface StandingClock extends Disposable {
  /** Lets time pass: timers fire that are due by then, also those that were set meanwhile. */
  advance(ms: number): void;
  /** Lets time pass in steps, between which input and output go on, until something has come. */
  until<T>(outcome: Promise<T>, stepMs: number): Promise<T>;
}

/** Stops timers and the monotonic clock, but neither input and output nor `Date`. */
export function standingClock(): StandingClock {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] });
  return {
    advance: (ms) => void vi.advanceTimersByTime(ms),
    async until(outcome, stepMs) {
      let isSettled = false;
      const settle = () => void (isSettled = true);
      outcome.then(settle, settle);
      while (!isSettled) {
        await new Promise((resolve) => reallyLater(resolve, 2));
        if (!isSettled) vi.advanceTimersByTime(stepMs);
      }
      return await outcome;
    },
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}

/** Waits in real time until a condition holds, which may be while the clock stands; the test's own limit ends it. */
export async function happened(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => reallyLater(resolve, 2));
}
