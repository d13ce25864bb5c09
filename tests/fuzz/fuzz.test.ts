/** @slow Each reader gets two seconds of processor time. */
import { expect, test } from "vitest";
import { sample } from "../helpers/files/sample.ts";
import { fuzz, reportOf } from "./fuzz.ts";
import { TARGETS } from "./targets.ts";

/** The same inputs in each run, so that a failure belongs to the change. `deno task fuzz` tries other inputs. */
const SEED = 19;
/** Processor time for each reader. */
const CPU_MS = sample(2_000, 15_000).count;

/** Time limit for a machine under load. */
const TEST_TIMEOUT_MS = 300_000;

test.each(TARGETS.map(({ name }) => name))(
  "random input crashes, blocks and grows nothing: %s",
  { tags: ["F09"], timeout: TEST_TIMEOUT_MS },
  async (target) => {
    const request = { target, seed: SEED, cpuMs: CPU_MS };
    const result = await fuzz(request);
    const report = reportOf(request, result);
    console.log(report);
    expect(result.findings, report).toEqual([]);
  },
);
