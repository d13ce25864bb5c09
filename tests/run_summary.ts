/** The end of a test run: lists each test that failed, so that the last lines of any log name them. */

/** Lines shown of one error; vitest's own output has the rest. */
const ERROR_LINES = 8;
/** Longest line of an error; those that compare whole documents are cut. */
const MAX_LINE_CHARS = 240;

/** What vitest's JSON report says of one run. */
export interface RunReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  /** False also if a file couldn't be loaded. */
  success: boolean;
  testResults: {
    /** Path of the file. */
    name: string;
    status: string;
    /** Why the file as a whole failed, such as a `beforeAll` that threw; otherwise empty. */
    message: string;
    assertionResults: {
      ancestorTitles: string[];
      title: string;
      status: string;
      failureMessages: string[];
    }[];
  }[];
}

/**
 * Lists the tests and files that failed, each with its file, its full name and the first lines of its error.
 *
 * @param root Folder that paths are shown from, ending with a slash.
 * @returns No lines if everything passed.
 */
export function redTests(reports: readonly RunReport[], root: string): string[] {
  const lines: string[] = [];
  for (const { name, status, message, assertionResults } of reports.flatMap(({ testResults }) => testResults)) {
    const file = name.startsWith(root) ? name.slice(root.length) : name;
    const failed = assertionResults.filter((test) => test.status === "failed");
    if (status === "failed" && (message !== "" || failed.length === 0)) {
      lines.push(
        `FAILED ${file} as a whole`,
        ...errorLines(message || "See the output of the run above: most likely a hook of a group failed"),
      );
    }
    for (const { ancestorTitles, title, failureMessages } of failed) {
      const fullName = [...ancestorTitles, title].filter((part) => part !== "").join(" > ");
      lines.push(`FAILED ${file} > ${fullName}`, ...errorLines(failureMessages[0]));
    }
  }
  return lines;
}

function errorLines(error = ""): string[] {
  // deno-lint-ignore no-control-regex
  const lines = error.replace(/\x1b\[[0-9;]*m/g, "").split("\n").filter((line) => line.trim() !== "");
  return lines.slice(0, ERROR_LINES).map((line) => `    ${line.slice(0, MAX_LINE_CHARS)}`);
}
