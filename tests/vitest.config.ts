import { defineConfig } from "vitest/config";

/** Test files run one after another in their own processes: several start servers and real browsers, and the machine is small. */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
