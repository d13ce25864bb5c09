import type { IsExpired } from "../../../services/storage/retention_clock.ts";
import type { TestApp } from "./test_app.ts";

const STEP_MS = 2 * 24 * 60 * 60 * 1000;

/**
 * Lets time pass as a running server sees it: in steps with maintenance after each. A clock that goes ahead by more
 * than three days at once is taken for a wrong one.
 *
 * @param advance Moves the server's clock.
 */
export async function passTime(app: TestApp, durationMs: number, advance: (stepMs: number) => void): Promise<void> {
  let leftMs = durationMs;
  do {
    advance(Math.min(STEP_MS, leftMs));
    leftMs -= STEP_MS;
    await app.services.runMaintenance();
  } while (leftMs > 0);
}

/** Expires by the wall clock alone, for tests of what expires. */
export function expireByClock(now: () => number): IsExpired {
  return (createdAtMs, retentionMs) => createdAtMs < now() - retentionMs;
}
