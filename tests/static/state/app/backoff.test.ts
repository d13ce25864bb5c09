import { expect, test } from "vitest";
import { getRetryDelayMs, pause } from "../../../../static/src/state/app/backoff.ts";

test("doubles delays up to a limit, and jitter only shortens them", () => {
  const longest = Array.from({ length: 8 }, (_, attempt) => getRetryDelayMs(attempt, () => 0));
  expect(longest).toEqual([500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
  expect(getRetryDelayMs(3, () => 1)).toBe(3000);
  expect(getRetryDelayMs(5000, () => 0)).toBe(15000);
});

test("ends a delay at once when its signal fires, before or during it", async () => {
  await pause(60_000, AbortSignal.abort());
  const abort = new AbortController();
  const waiting = pause(60_000, abort.signal);
  abort.abort();
  await waiting;
  expect(abort.signal.aborted).toBe(true);
});
