/** How the tests of the security cases went in a run, from vitest's JSON reports. */
import { isLong } from "./helpers/files/sample.ts";
import { AWAITED_FEATURES } from "./security_cases.ts";
import { type NamedTest, problemsOf, productSources, testsByCase, titlePattern } from "./security_cases_page.ts";

/** How a test went in a run. */
export type Result = "passed" | "failed" | "not run";

/** One test as vitest reports it. */
export interface ReportedTest {
  /** Path from the root of the repository. */
  file: string;
  /** Its title and those of its groups. */
  titles: string[];
  /** `"passed"`, `"failed"`, or another word for one that didn't run. */
  status: string;
}

interface VitestReport {
  testResults: { name: string; assertionResults: { title: string; ancestorTitles: string[]; status: string }[] }[];
}

/**
 * Checks every security case against the reports in a folder.
 *
 * @param excluded Files of tests that this run left out on purpose.
 * @returns Lines to print, and whether every test of every case ran and passed.
 */
export async function securityCaseLines(
  folder: string,
  excluded: readonly string[] = [],
): Promise<{ lines: string[]; isGreen: boolean }> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  const reported = await readReports(names.filter((name) => name.endsWith(".json")).map((name) => `${folder}/${name}`));
  const tests = await testsByCase({ isLong: isLong() });
  const problems = [...problemsOf(tests, await productSources()), ...unprovenCases(tests, reported, excluded)];
  const waiting = Object.entries(AWAITED_FEATURES).map(([id, { feature }]) => `${id} waits for ${feature}`);
  const leftOut = [...tests].filter(([, named]) => named.some(({ file }) => excluded.includes(file))).map(([id]) => id);
  return {
    lines: [
      ...problems.map((problem) => `FAILED security case ${problem}`),
      ...(leftOut.length === 0 ? [] : [`Security cases with tests that this run left out: ${leftOut.join(", ")}`]),
      `Security cases: ${tests.size} have tests, ${[`${problems.length} problems`, ...waiting].join("; ")}`,
    ],
    isGreen: problems.length === 0,
  };
}

/** Lists the tests of cases that failed or didn't run, a sentence each. */
export function unprovenCases(
  tests: ReadonlyMap<string, NamedTest[]>,
  reported: readonly ReportedTest[],
  excluded: readonly string[] = [],
): string[] {
  return [...tests].flatMap(([id, named]) =>
    named.filter(({ file }) => !excluded.includes(file)).flatMap((test) => {
      const result = resultIn(reported, test);
      return result === "passed" ? [] : [`${id}: "${test.title}" in ${test.file}: ${result}`];
    })
  );
}

/** Reads the reports that `vitest --reporter=json` wrote. A run that ended before its report left an empty file. */
export async function readReports(paths: readonly string[]): Promise<ReportedTest[]> {
  const tests: ReportedTest[] = [];
  for (const path of paths) {
    const { testResults }: VitestReport = JSON.parse(await Deno.readTextFile(path) || '{ "testResults": [] }');
    for (const { name, assertionResults } of testResults) {
      const file = name.slice(name.lastIndexOf("/tests/") + 1);
      for (const { title, ancestorTitles, status } of assertionResults) {
        tests.push({ file, titles: [title, ...ancestorTitles], status });
      }
    }
  }
  return tests;
}

/** Finds how a test went: failed if any of its rows did, passed if at least one ran. */
export function resultIn(reported: readonly ReportedTest[], named: NamedTest): Result {
  const pattern = titlePattern(named);
  const runs = reported.filter(({ file, titles }) =>
    file === named.file && titles.some((title) => pattern.test(title))
  );
  if (runs.some(({ status }) => status === "failed")) return "failed";
  return runs.some(({ status }) => status === "passed") ? "passed" : "not run";
}
