/** How long tests wait. Nothing here is a measure of speed: a busy machine takes its time, and only what hangs is given up. */

/** A test or hook without a limit of its own; most take less than a second. */
export const TEST_MS = 180_000;

/** What a test waits for; less than a test may take, so that what was waited for in vain is named. */
export const PATIENCE_MS = 45_000;
