/**
 * Writes the pages of docs/ that are made from code: `deno task docs [--results REPORT…]`. The reports are vitest's, of whole or
 * partial runs; what they do not tell of keeps the result it had. Ends with 1 when a security case has no test or a failed one,
 * and where results were asked for also when one has a test of which no run is known.
 */
import { configurationPage } from "../services/config_text.ts";
import { problemsOf, resultKey, resultsOn, securityCasesPage, testsByCase, withResult } from "./security_cases_page.ts";
import { readReports, resultIn } from "./security_results.ts";

const DOCS = new URL("../docs/", import.meta.url);
const CASES = new URL("security-cases.md", DOCS);

const [option, ...paths] = Deno.args;
if (option !== undefined && (option !== "--results" || paths.length === 0)) {
  console.error("Usage: deno task docs [--results REPORT…]");
  Deno.exit(2);
}
await Deno.writeTextFile(new URL("configuration.md", DOCS), configurationPage());
const tests = await testsByCase();
const results = resultsOn(await Deno.readTextFile(CASES));
const reported = await readReports(paths);
for (const test of [...tests.values()].flat()) {
  const result = resultIn(reported, test);
  if (result !== undefined) results.set(resultKey(test), result);
}
await Deno.writeTextFile(CASES, securityCasesPage(tests, results));
const notRun = withResult(tests, results, "not run");
const problems = [
  ...problemsOf(tests),
  ...withResult(tests, results, "failed"),
  ...(option === undefined ? [] : notRun),
];
for (const problem of problems) console.error(problem);
if (option === undefined && notRun.length > 0) {
  console.error(`${notRun.length} tests have no result yet; --results takes reports of vitest`);
}
Deno.exit(problems.length === 0 ? 0 : 1);
