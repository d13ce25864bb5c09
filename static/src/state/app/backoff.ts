/** Waiting between attempts to reach a server that does not answer. */

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** Gives the pause before attempt `attempt` (from 0): doubling, with up to a quarter less so that tabs do not come together. */
export function getRetryDelayMs(attempt: number, random: () => number = Math.random): number {
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 10));
  return Math.round(pauseMs * (1 - random() / 4));
}

/** Resolves after the pause, or sooner when the browser says the network is back or the signal fires. */
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
