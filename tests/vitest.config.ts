import { defineConfig } from "vitest/config";
import { SECURITY_CASES } from "./security_cases.ts";
import { PATIENCE_MS, TEST_MS } from "./helpers/app/patience.ts";
import { FileQueue } from "./runner/file_queue.ts";

/**
 * Each lane is one process that runs one test file after another. It loads our code once, and starts one browser for all files:
 * importing a file does nothing, so files share no state. Most files wait more than they work, so there is a lane more than the
 * machine has cores. Nothing is retried: a test that fails now and then is a bug.
 */
const LANES = Number(Deno.env.get("TEST_LANES") ?? navigator.hardwareConcurrency + 1);

export default defineConfig({
  test: {
    // `--tags-filter=L06` runs the tests of one security case.
    tags: SECURITY_CASES.flatMap(([, cases]) => cases.map(([name, description]) => ({ name, description }))),
    include: ["tests/**/*.test.ts"],
    pool: "forks",
    isolate: false,
    maxWorkers: LANES,
    sequence: { sequencer: FileQueue },
    setupFiles: ["tests/runner/file_setup.ts"],
    // The system's resolver reads it once per process; names that don't exist shouldn't be waited for.
    env: { RES_OPTIONS: "timeout:1 attempts:1" },
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
