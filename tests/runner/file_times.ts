/** A reporter of vitest that writes how long each file took and what for, one JSON object per line. */
import { appendFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** Times of one test file in seconds. */
export interface FileTimes {
  /** Absolute path. */
  file: string;
  /** From the start of the imports to the end of the last hook. */
  seconds: number;
  importSeconds: number;
  testSeconds: number;
  /** Hooks and the check for leaks. */
  hookSeconds: number;
  /** Of the file's process and all that it started; 0 on systems other than Linux. */
  processorSeconds: number;
}

/** The reporter. The variable `TEST_TIMES_FILE` names its file. */
export default class FileTimesReporter implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    const path = Deno.env.get("TEST_TIMES_FILE");
    if (path === undefined) return;
    const { collectDuration, setupDuration, duration } = module.diagnostic();
    const tests = [...module.children.allTests()].reduce((sum, test) => sum + (test.diagnostic()?.duration ?? 0), 0);
    const { processorSeconds = 0 } = module.meta() as { processorSeconds?: number };
    const times: FileTimes = {
      file: module.moduleId,
      seconds: (collectDuration + setupDuration + duration) / 1000,
      importSeconds: (collectDuration + setupDuration) / 1000,
      testSeconds: tests / 1000,
      // Tests of a group can run at the same time.
      hookSeconds: Math.max(0, duration - tests) / 1000,
      processorSeconds,
    };
    appendFileSync(path, `${JSON.stringify(times)}\n`);
  }
}
