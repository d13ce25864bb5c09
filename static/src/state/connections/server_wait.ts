/** Waits until a server responds again. */

/** Delay before the first attempt and the longest one, in milliseconds. Each attempt waits half as long again. */
const FIRST_MS = 2_000;
const LONGEST_MS = 15_000;
const FACTOR = 1.5;

/**
 * Asks again and again, only while the page is visible, and at once when it becomes visible or the network returns.
 *
 * @param probe Resolves to true when the server works. Never rejects.
 * @param firstMs Delay before the first attempt.
 * @returns A function that stops waiting.
 */
export function waitForServer(probe: () => Promise<boolean>, onReady: () => void, firstMs = FIRST_MS): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delayMs = firstMs;
  let isOver = false;
  let isAsking = false;
  const stop = () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", askSoon);
    removeEventListener("online", askSoon);
  };
  const plan = () => {
    clearTimeout(timer);
    if (document.visibilityState === "visible") timer = setTimeout(ask, delayMs);
  };
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    const works = await probe();
    isAsking = false;
    if (isOver) return;
    if (works) {
      stop();
      return onReady();
    }
    delayMs = Math.max(delayMs, Math.min(LONGEST_MS, delayMs * FACTOR));
    plan();
  };
  function askSoon(): void {
    if (document.visibilityState === "visible") void ask();
    else clearTimeout(timer);
  }
  document.addEventListener("visibilitychange", askSoon);
  addEventListener("online", askSoon);
  plan();
  return stop;
}
