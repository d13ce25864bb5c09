import { defineConfig } from "vitest/config";

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
    testTimeout: 60_000,
    hookTimeout: 60_000,
    retry: 1,
  },
});
