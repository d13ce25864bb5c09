import { defineConfig } from "vitest/config";
import { PATIENCE_MS, TEST_MS } from "./helpers/patience.ts";

/**
 * Test files of one run go one after another in their own processes: several start servers and real browsers, and the
 * machine is small. What fails is tried once more, and told on: a browser or a process that hung is no finding, a
 * second failure is.
 */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
    retry: 1,
  },
});
