import { defineConfig } from "vitest/config";
import { SECURITY_CASES } from "./security_cases.ts";
import { PATIENCE_MS, TEST_MS } from "./helpers/app/patience.ts";

/**
 * Test files of one run go one after another in their own processes: several start servers and real browsers, and the
 * machine is small. Nothing is retried: a test that fails now and then is a bug.
 */
export default defineConfig({
  test: {
    // `--tags-filter=L06` runs the tests of one security case.
    tags: SECURITY_CASES.flatMap(([, cases]) => cases.map(([name, description]) => ({ name, description }))),
    include: ["tests/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
