/**
 * Fuzzes the readers of foreign content: `deno task fuzz`.
 *
 * `--target NAME` runs one of them (all by turns unless given), `--minutes M` for how long in all (5), `--seed N` repeats a
 * run, and `--input N` with a seed and a target runs that input alone. Ends with code 1 when there was a finding.
 */
import { parseArgs } from "node:util";
import { fuzz, reportOf } from "./fuzz.ts";
import { TARGETS } from "./targets.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    target: { type: "string" },
    minutes: { type: "string", default: "5" },
    seed: { type: "string" },
    input: { type: "string" },
  },
});
const names = TARGETS.map(({ name }) => name);
const seed = values.seed === undefined ? crypto.getRandomValues(new Uint32Array(1))[0]! : numberIn("seed");
const targets = values.target === undefined ? names : names.filter((name) => name === values.target);
if (targets.length === 0) fail(`There is no target "${values.target}". Targets: ${names.join(", ")}`);
if (values.input !== undefined && values.target === undefined) fail("--input needs --target and --seed");

console.log(`Seed ${seed}`);
const cpuMs = numberIn("minutes") * 60_000 / targets.length;
const only = values.input === undefined ? {} : { first: numberIn("input"), count: 1 };
let hasFindings = false;
for (const target of targets) {
  const request = { target, seed, cpuMs, ...only };
  const result = await fuzz(request);
  console.log(reportOf(request, result));
  hasFindings ||= result.findings.length > 0;
}
Deno.exit(hasFindings ? 1 : 0);

function numberIn(name: "minutes" | "seed" | "input"): number {
  const number = Number(values[name]);
  if (!(number >= 0)) fail(`--${name} is not a number: ${values[name]}`);
  return number;
}

function fail(message: string): never {
  console.error(message);
  Deno.exit(2);
}
