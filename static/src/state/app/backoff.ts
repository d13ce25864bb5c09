/** Delays between attempts to reach a server. */

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Returns the delay before attempt `attempt` (from 0): doubling, minus up to a quarter so that tabs don't retry
 * together.
 */
export function getRetryDelayMs(attempt: number, random: () => number = Math.random): number {
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 10));
  return Math.round(pauseMs * (1 - random() / 4));
}

/** Resolves after the delay, or earlier if the network returns or the signal fires. */
export function pause(pauseMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      globalThis.removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, pauseMs);
    globalThis.addEventListener("online", end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
