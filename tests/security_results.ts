/** How the tests that docs/security-cases.md names went: out of vitest's JSON reports, and out of the page as it stands. */
import type { NamedTest } from "./security_cases_page.ts";

/** What is said of a test: that it passed, with the number of its rows or its group's tests; or failed; or was never run. */
export type Result = "passed" | `passed (${number})` | "failed" | "not run";

/** One test as vitest reports it. */
export interface ReportedTest {
  /** Path from the root of the repository. */
  file: string;
  /** Its own title, and those of the groups around it. */
  titles: string[];
  /** `"passed"`, `"failed"`, or a word for one that was left out. */
  status: string;
}

/** What stands in a title for a value: `%s` of rows, `${…}` of a template, `$name` of rows that are objects. */
const PLACEHOLDER = /%[sdifjoOc#%]|\$\{[^}]*\}|\$[A-Za-z_][\w.]*/;

/** Reads the reports that `vitest --reporter=json` wrote. */
export async function readReports(paths: readonly string[]): Promise<ReportedTest[]> {
  const tests: ReportedTest[] = [];
  for (const path of paths) {
    const { testResults }: VitestReport = JSON.parse(await Deno.readTextFile(path));
    for (const { name, assertionResults } of testResults) {
      const file = name.slice(name.lastIndexOf("/tests/") + 1);
      for (const { title, ancestorTitles, status } of assertionResults) {
        tests.push({ file, titles: [title, ...ancestorTitles], status });
      }
    }
  }
  return tests;
}

interface VitestReport {
  testResults: { name: string; assertionResults: { title: string; ancestorTitles: string[]; status: string }[] }[];
}

/** Tells how a test went in a run; `undefined` when it was not part of it, or left out. */
export function resultIn(reported: readonly ReportedTest[], named: NamedTest): Result | undefined {
  const wanted = `${named.ids} ${named.title}`.split(PLACEHOLDER).map(escaped).join("[^]*");
  const here = reported.filter(({ file }) => file === named.file);
  const whole = here.filter(({ titles }) => titles.some((title) => new RegExp(`^${wanted}$`).test(title)));
  // What names the case may be a value in the title of another test.
  const runs = whole.length > 0
    ? whole
    : here.filter(({ titles }) => titles.some((title) => new RegExp(wanted).test(title)));
  if (runs.some(({ status }) => status === "failed")) return "failed";
  const passed = runs.filter(({ status }) => status === "passed").length;
  if (passed === 0) return undefined;
  return passed === 1 ? "passed" : `passed (${passed})`;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
