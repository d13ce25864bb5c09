/**
 * Runs the tests.
 *
 * - `deno task test` runs everything except `tests/real`, in a few lanes at once.
 * - `deno task test PATH…` runs what vitest finds under these paths, with any other arguments of vitest.
 * - `deno task test --related FILE…` runs the tests of these files, and `--changed` those of what differs from main, as
 *   `runner/related.ts` finds them.
 * - `deno run -A tests/run.ts real` runs `tests/real`, which needs real parts (a language model server, the compiled
 *   executable); a skipped test counts as a failure.
 * - `deno run -A tests/run.ts cases` checks every security case against the reports of other runs.
 * - `deno run -A tests/run.ts prepare` only installs the browser and builds the page.
 *
 * Files run in random order; `--seed N` repeats that of another run. Ends with the slowest files, the tests that failed and one
 * line of counts. `--reports FOLDER` at the very end keeps vitest's reports.
 */
import { relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { builtUi } from "./helpers/browser/built_ui.ts";
import { redTests, type RunReport, slowestFiles } from "./run_summary.ts";
import { findSlowReason } from "./runner/file_queue.ts";
import type { FileTimes } from "./runner/file_times.ts";
import { findRelatedTests, readTree } from "./runner/related.ts";
import { findVariable, killProcess, listProcesses, readCommand } from "./runner/running_processes.ts";
import { securityCaseLines } from "./security_results.ts";

/** Where Debian puts it, and where apt-get installs it to. */
const CHROMIUM = "/usr/bin/chromium";
/** Where other systems have a browser that the tests can drive: Ubuntu and its CI images, macOS. */
const OTHER_BROWSERS = [
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable",
  "/usr/bin/chromium-browser",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
/** Needs less processor time for each page of a test; Debian has it as a package of its own. */
const HEADLESS_SHELL = "/usr/bin/chromium-headless-shell";
const VITEST = "npm:vitest@5.1.1";

/** After its report, vitest may take this long to end its lanes on a busy machine; then what is left of them is ended. */
const ENDING_MS = 60_000;
/** A test has less patience with what holds vitest. */
const HELD_MS = Number(Deno.env.get("TEST_ENDING_MS") ?? ENDING_MS);

/** The report of a run that ended before it wrote one: it failed, and nothing passed. */
const NO_REPORT =
  '{ "numPassedTests": 0, "numFailedTests": 0, "numPendingTests": 0, "success": true, "testResults": [] }';

/** How vitest ended. */
interface RunResult {
  isGreen: boolean;
  seconds: number;
  report: RunReport;
  times: FileTimes[];
  /** What is left of the run. */
  leaks: string[];
}

const reportsAt = Deno.args.at(-2) === "--reports" ? Deno.args.at(-1) : undefined;
const { seed, args } = takeSeed(reportsAt === undefined ? Deno.args : Deno.args.slice(0, -2));
const [first, ...others] = args;
if (first === "cases") Deno.exit(await checkCases());
// Tests that run vitest themselves write its report there, too.
if (reportsAt !== undefined) Deno.env.set("TEST_REPORTS_FOLDER", await Deno.realPath(await makeFolder(reportsAt)));
const isReal = first === "real";
const isRelated = first === "--related" || first === "--changed";
const related = isRelated ? await findRelated(others) : [];
if (isRelated && related.length === 0) {
  console.log("0 passed, 0 failed, 0 skipped");
  Deno.exit(0);
}

await installBrowser();
await builtUi();
if (first === "prepare") Deno.exit(0);
// Tests of real parts share these parts, and each file starts with a process of its own.
if (isReal) Deno.env.set("TEST_LANES", "1");
const isChosen = others.some((arg, i) => arg.startsWith("tests/real/") && others[i - 1] !== "--exclude");
const run = await runVitest(
  isReal
    ? ["--isolate", ...(isChosen ? [] : ["tests/real"]), ...others]
    : ["--exclude", "tests/real/**", ...(isRelated ? related : args)],
);
const { report, leaks } = run;
for (const line of slowestFiles(run.times, `${Deno.cwd()}/`, slowReason)) console.log(line);
for (const line of redTests([report], `${Deno.cwd()}/`)) console.log(line);
for (const leak of leaks) console.log(`FAILED left by the run: ${leak}`);
// No report mentions what is thrown outside of every test.
if (!run.isGreen && report.success) console.log('FAILED outside of every test: see "Unhandled Errors" above');
console.log(`${run.seconds} s; the same order again: --seed ${seed}`);
const { numPassedTests: passed, numFailedTests: failed, numPendingTests: skipped } = report;
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
// A run of the tests with real parts has the parts, so a skipped test is one that did not run.
const isWhole = passed > 0 && (!isReal || skipped === 0);
Deno.exit(run.isGreen && isWhole && leaks.length === 0 ? 0 : 1);

/** Runs vitest with further arguments; its output is shown as it is made. */
async function runVitest(args: string[]): Promise<RunResult> {
  const startedAtMs = performance.now();
  const folder = await Deno.makeTempDir({ prefix: "t" });
  await Deno.chmod(folder, 0o711); // Some tests run programs as another user.
  const [path, times, temporary] = [`${folder}/report.json`, `${folder}/times.jsonl`, `${folder}/t`];
  await Deno.mkdir(temporary);
  Deno.env.set("TEST_RUN_FOLDER", temporary);
  Deno.env.set("TEST_TIMES_FILE", times);
  try {
    const vitest = start(Deno.execPath(), [
      ...["run", "-A", VITEST, "run", "--config", "tests/vitest.config.ts", `--sequence.seed=${seed}`],
      ...["--reporter=default", "--reporter=tests/runner/file_times.ts"],
      ...["--reporter=json", `--outputFile.json=${path}`],
      ...args,
    ]);
    const ended = vitest.status.then(({ success }) => success);
    const held = await endHeldRun(path, temporary, vitest, ended);
    const isGreen = await ended;
    const seconds = Math.round((performance.now() - startedAtMs) / 1000);
    const text = await Deno.readTextFile(path).catch(() => NO_REPORT);
    if (reportsAt !== undefined) await Deno.writeTextFile(`${reportsAt}/${crypto.randomUUID()}.json`, text);
    const lines = (await Deno.readTextFile(times).catch(() => "")).split("\n").filter((line) => line !== "");
    const leaks = [...held, ...await findLeftProcesses(temporary)];
    return { isGreen, seconds, report: JSON.parse(text), times: lines.map((line) => JSON.parse(line)), leaks };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/**
 * Ends what keeps vitest from ending once it has written its report: it waits without limit until the output of each lane
 * is closed, and a process that a lane has left may hold it. @returns What was ended.
 */
async function endHeldRun(
  report: string,
  folder: string,
  vitest: Deno.ChildProcess,
  ended: Promise<boolean>,
): Promise<string[]> {
  const endsWithin = (ms: number) => Promise.race([ended.then(() => true), delay(ms, false, { ref: false })]);
  while (!await exists(report)) if (await endsWithin(1000)) return [];
  if (await endsWithin(HELD_MS)) return [];
  // Its own children are the lanes and a watchdog.
  const left = listRunProcesses(folder).filter(({ pid, parent }) => pid !== vitest.pid && parent !== vitest.pid);
  const lines = left.map(({ pid }) => describeProcess(pid));
  for (const { pid } of left) killProcess(pid);
  if (await endsWithin(ENDING_MS)) return lines;
  killProcess(vitest.pid);
  return [...lines, `process ${vitest.pid}, vitest itself`];
}

/** Lists the processes that were started in this run and are still there, with the test file that started them. */
async function findLeftProcesses(folder: string): Promise<string[]> {
  for (let tries = 0; listRunProcesses(folder).length > 0 && tries < 50; tries++) await delay(200);
  return listRunProcesses(folder).map(({ pid }) => describeProcess(pid));
}

function listRunProcesses(folder: string) {
  return listProcesses().filter(({ pid }) => findVariable(pid, "TEST_RUN_FOLDER") === folder && pid !== Deno.pid);
}

function describeProcess(pid: number): string {
  return `process ${pid} (${readCommand(pid)}) of ${findVariable(pid, "TEST_FILE") ?? "a lane"}`;
}

/** Takes `--seed N` from the arguments; without it the order is a new one. */
function takeSeed(args: readonly string[]): { seed: number; args: string[] } {
  const at = args.indexOf("--seed");
  if (at < 0) return { seed: crypto.getRandomValues(new Uint16Array(1))[0]!, args: [...args] };
  return { seed: Number(args[at + 1]), args: args.toSpliced(at, 2) };
}

/** Finds the tests of the named files, or of all that differ from main, committed or not. */
async function findRelated(named: readonly string[]): Promise<string[]> {
  const changed = first === "--changed" ? await listChanged() : named.map((path) => relative(".", path));
  const { tests, untested } = findRelatedTests(await readTree("."), changed);
  console.log(`${changed.length} files have ${tests.length} test files`);
  for (const path of untested) console.log(`No test file belongs to ${path}; the whole suite may test it`);
  return tests;
}

async function listChanged(): Promise<string[]> {
  const git = async (...args: string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("git", { args }).output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "");
  };
  const main = await git("rev-parse", "--verify", "--quiet", "origin/main").catch(() => ["main"]);
  const [base = "HEAD"] = await git("merge-base", main[0]!, "HEAD");
  return [...await git("diff", "--name-only", base), ...await git("ls-files", "--others", "--exclude-standard")];
}

function slowReason(file: string): string | undefined {
  return findSlowReason(Deno.readTextFileSync(file));
}

/** Checks every security case; `--exclude FILE` names files of tests that the runs left out. @returns The exit code. */
async function checkCases(): Promise<number> {
  const { lines, isGreen } = await securityCaseLines(
    reportsAt!,
    others.filter((_, i) => others[i - 1] === "--exclude"),
  );
  for (const line of lines) console.log(line);
  return isGreen ? 0 : 1;
}

async function makeFolder(path: string): Promise<string> {
  await Deno.mkdir(path, { recursive: true });
  return path;
}

/**
 * Finds a browser for the tests of the page, which `CHROMIUM` can name, or installs Debian's Chromium where the system
 * allows that. `prepare` also installs its headless shell where that is missing.
 */
async function installBrowser(): Promise<void> {
  const named = Deno.env.get("CHROMIUM");
  for (const path of named === undefined ? [CHROMIUM, ...OTHER_BROWSERS] : [named]) {
    if (!await exists(path)) continue;
    Deno.env.set("CHROMIUM", path);
    const hasShell = named === undefined && await exists(HEADLESS_SHELL);
    if (hasShell) Deno.env.set("CHROMIUM_HEADLESS_SHELL", HEADLESS_SHELL);
    if (hasShell || path !== CHROMIUM || first !== "prepare") return;
  }
  if (Deno.build.os === "linux" && named === undefined) {
    const sudo = Deno.uid() === 0 ? [] : ["sudo", "-n"];
    const apt = [...sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    console.log("Installing Chromium for the tests of the page …");
    // Another apt-get is waited for; the lists have a lock that it doesn't wait for, and a download can fail.
    const options = ["-y", "-qq", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"];
    for (const pauseS of [0, 5, 15, 45]) {
      await delay(pauseS * 1000);
      await succeeds(apt[0]!, [...apt.slice(1), "update", ...options]).catch(() => false);
      const install = [...apt.slice(1), "install", ...options, "--no-install-recommends"];
      for (const name of ["chromium", "chromium-headless-shell"]) {
        await succeeds(apt[0]!, [...install, name]).catch(() => false);
      }
      if (!await exists(CHROMIUM)) continue;
      if (await exists(HEADLESS_SHELL)) Deno.env.set("CHROMIUM_HEADLESS_SHELL", HEADLESS_SHELL);
      return;
    }
  }
  console.error(
    "The tests of the page need a browser: install Google Chrome (macOS, Ubuntu) or the package chromium (Debian), or set CHROMIUM to the path of one",
  );
  Deno.exit(1);
}

async function succeeds(command: string, args: string[]): Promise<boolean> {
  return (await start(command, args).status).success;
}

function start(command: string, args: string[]): Deno.ChildProcess {
  return new Deno.Command(command, { args, stdout: "inherit", stderr: "inherit" }).spawn();
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
