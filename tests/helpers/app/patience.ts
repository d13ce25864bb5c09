/** Time limits of tests. They don't measure speed: even on a busy machine, only tests that hang exceed them. */

/** Default limit of a test or hook. Most take less than a second. */
export const TEST_MS = 180_000;

/** Limit of a single wait. Below the limit of a test, so that the error names the wait. */
export const PATIENCE_MS = 45_000;
