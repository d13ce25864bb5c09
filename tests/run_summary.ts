/** The end of a test run: the slowest files, and each test that failed, so that the last lines of any log name them. */
import type { FileTimes } from "./runner/file_times.ts";

/** Lines shown of one error; vitest's own output has the rest. */
const ERROR_LINES = 8;
/** Longest line of an error; those that compare whole documents are cut. */
const MAX_LINE_CHARS = 240;

/** Files that are listed as the slowest. */
const SLOWEST = 20;
/** A file that takes longer says why: `/** @slow … *\/`. */
const REASON_AFTER_SECONDS = 30;

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

/**
 * Lists the slowest files: how long each took, how much of it was processor time, and what it was for.
 *
 * @param root Folder that paths are shown from, ending with a slash.
 * @param findReason Why a file takes long, if it says so.
 * @returns No lines for a run of few files.
 */
export function slowestFiles(
  times: readonly FileTimes[],
  root: string,
  findReason: (file: string) => string | undefined,
): string[] {
  const slowest = times.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  const isShown = (file: FileTimes) => times.length > SLOWEST || file.seconds > REASON_AFTER_SECONDS;
  const rounded = (seconds: number) => seconds.toFixed(1).padStart(6);
  const lines = slowest.filter(isShown).map((file) => {
    const reason = findReason(file.file) ?? "NO REASON given for more than 30 s";
    return [
      `${rounded(file.seconds)} s, ${rounded(file.processorSeconds)} s of processor time`,
      `(imports ${file.importSeconds.toFixed(1)}, hooks ${file.hookSeconds.toFixed(1)}, tests ${
        file.testSeconds.toFixed(1)
      })`,
      file.file.startsWith(root) ? file.file.slice(root.length) : file.file,
    ].join(" ") + (file.seconds > REASON_AFTER_SECONDS ? `: ${reason}` : "");
  });
  return lines.length === 0 ? [] : ["Slowest files:", ...lines];
}

function errorLines(error = ""): string[] {
  // deno-lint-ignore no-control-regex
  const lines = error.replace(/\x1b\[[0-9;]*m/g, "").split("\n").filter((line) => line.trim() !== "");
  return lines.slice(0, ERROR_LINES).map((line) => `    ${line.slice(0, MAX_LINE_CHARS)}`);
}
