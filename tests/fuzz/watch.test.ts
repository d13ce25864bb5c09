import { expect, test } from "vitest";
import { fuzz, reportOf } from "./fuzz.ts";
import { Random } from "./random.ts";

/** Processor time of a few seconds takes minutes on a busy machine. */
const FUZZ_MS = 5 * 60_000;
const BROKEN = new URL("./broken_targets.ts", import.meta.url).pathname;

test.each([
  ["throws", "input 3", /^TypeError: broken here/],
  ["stretches", "input 0", /A stretch of \d+ ms of CPU time, more than 200/],
  ["pollutes", "input 0", /Object\.prototype was given "polluted"/],
  ["grows", "all", /Memory grew by \d+/],
  ["hangs", "input 2", /It was not done after/],
  ["dies", 'case "exit"', /The process ended with code 7/],
])("a reader that %s is found", async (name, input, error) => {
  const request = { target: name, seed: 1, cpuMs: 900, wallMs: FUZZ_MS, targetsPath: BROKEN, hangCpuSeconds: 2 };
  const result = await fuzz(request);
  expect(result.findings[0]).toMatchObject({ input, error: expect.stringMatching(error) });
  expect(reportOf(request, result)).toContain(`deno task fuzz --target ${name} --seed 1`);
}, FUZZ_MS);

test("a reader without a fault has no finding", async () => {
  const result = await fuzz({ target: "works", seed: 1, cpuMs: 300, wallMs: FUZZ_MS, targetsPath: BROKEN });
  expect(result.findings).toEqual([]);
  expect(result.inputs).toBeGreaterThan(10);
}, FUZZ_MS);

test("the same name gives the same randomness", () => {
  const values = (name: string) => {
    const random = new Random(name);
    return Array.from({ length: 5 }, () => random.next());
  };
  expect(values("1 a 2")).toEqual(values("1 a 2"));
  expect(values("1 a 2")).not.toEqual(values("1 a 3"));
  expect(values("1 a 2").every((value) => value >= 0 && value < 1)).toBe(true);
});
