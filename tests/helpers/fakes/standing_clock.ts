/** A clock that only tests advance, so that no time limit expires early on a busy machine. */
import { vi } from "vitest";

const reallyLater = globalThis.setTimeout;

/** The clock of this process. Disposing of it restores the real one. */
export interface StandingClock extends Disposable {
  /** Advances the time and fires all due timers, including newly set ones. */
  advance(ms: number): void;
  /** Advances the time in steps, with I/O in between, until a promise resolves. */
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

/** Waits in real time until a condition holds, up to the limit of the test. */
export async function happened(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => reallyLater(resolve, 2));
}
