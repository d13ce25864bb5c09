import { defineConfig } from "vitest/config";
import { PATIENCE_MS, TEST_MS } from "./helpers/app/patience.ts";

/**
 * Test files of one run go one after another in their own processes: several start servers and real browsers, and the
 * machine is small. Nothing is retried: a test that fails now and then is a bug.
 */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
