/** What a run of the tests ends with: each test that was red, so that the end of any log tells what it was. */

/** Of one error so many lines are shown; the rest stands where vitest printed it. */
const ERROR_LINES = 8;
/** A line that compares whole documents says enough by its beginning. */
const MAX_LINE_CHARS = 240;

/** What vitest's JSON report says of one run. */
export interface RunReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  /** False also where a file could not be loaded. */
  success: boolean;
  testResults: {
    /** Path of the file. */
    name: string;
    status: string;
    /** Why the file as a whole failed, such as a `beforeAll` that threw; else empty. */
    message: string;
    assertionResults: {
      ancestorTitles: string[];
      title: string;
      status: string;
      /** Errors of all tries: a test that passed has some when only a further try passed. */
      failureMessages: string[];
    }[];
  }[];
}

/**
 * Gives the lines on what was red, none where all passed at once: tests and files that failed, then tests of which
 * only a further try passed, each with its file, its full name, and the first lines of its first error.
 *
 * @param root Folder that paths are shown from, ending with a slash.
 */
export function redTests(reports: readonly RunReport[], root: string): string[] {
  const failed: string[] = [];
  const retried: string[] = [];
  for (const { name, status, message, assertionResults } of reports.flatMap(({ testResults }) => testResults)) {
    const file = name.startsWith(root) ? name.slice(root.length) : name;
    const isRed = (test: { status: string }) => test.status === "failed";
    if (status === "failed" && (message !== "" || !assertionResults.some(isRed))) {
      failed.push(
        `FAILED ${file} as a whole`,
        ...errorLines(message || "Why stands where it ran: a hook of a group, most likely"),
      );
    }
    for (const test of assertionResults) {
      const title = `${file} > ${[...test.ancestorTitles, test.title].filter((part) => part !== "").join(" > ")}`;
      const [error] = test.failureMessages;
      if (isRed(test)) failed.push(`FAILED ${title}`, ...errorLines(error));
      else if (error !== undefined) retried.push(`PASSED ONLY WHEN TRIED AGAIN ${title}`, ...errorLines(error));
    }
  }
  return [...failed, ...retried];
}

function errorLines(error = ""): string[] {
  // deno-lint-ignore no-control-regex
  const lines = error.replace(/\x1b\[[0-9;]*m/g, "").split("\n").filter((line) => line.trim() !== "");
  return lines.slice(0, ERROR_LINES).map((line) => `    ${line.slice(0, MAX_LINE_CHARS)}`);
}
