/**
 * Runs the tests.
 *
 * - `deno task test` runs everything except `tests/real`, in two lanes at once.
 * - `deno task test PATH…` runs what vitest finds under these paths, with any other arguments of vitest.
 * - `deno run -A tests/run.ts real` runs `tests/real`, which needs real parts (a language model server, the compiled
 *   executable); a skipped test counts as a failure.
 * - `deno run -A tests/run.ts prepare` only installs the browser and builds the page.
 *
 * Ends with the tests that failed, the duration of each lane and one line of counts. `--reports FOLDER` at the very end keeps
 * vitest's reports; a run of `real` then also checks every security case against all reports in the folder.
 */
import { setTimeout as delay } from "node:timers/promises";
import { builtUi } from "./helpers/browser/built_ui.ts";
import { redTests, type RunReport } from "./run_summary.ts";
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
const VITEST = "npm:vitest@5.1.1";

/** Tests that drive a browser. They take as long as all others together and run at the same time; both lanes only read the built page. */
const PAGE_TESTS = ["tests/static", "tests/e2e/browser"];

/** The report of a run that ended before it wrote one: it failed, and nothing passed. */
const NO_REPORT =
  '{ "numPassedTests": 0, "numFailedTests": 0, "numPendingTests": 0, "success": true, "testResults": [] }';

type Counted = "numPassedTests" | "numFailedTests" | "numPendingTests";

/** How one lane ended. */
interface LaneResult {
  name: string;
  isGreen: boolean;
  seconds: number;
  report: RunReport;
}

const reportsAt = Deno.args.at(-2) === "--reports" ? Deno.args.at(-1) : undefined;
const args = reportsAt === undefined ? Deno.args : Deno.args.slice(0, -2);
const [first, ...others] = args;
// Tests that run vitest themselves write its report there, too.
if (reportsAt !== undefined) Deno.env.set("TEST_REPORTS_FOLDER", await Deno.realPath(await makeFolder(reportsAt)));
const isReal = first === "real";

await installBrowser();
await builtUi();
if (first === "prepare") Deno.exit(0);
const lanes = isReal
  ? [await runLane("real parts", ["tests/real", ...others])]
  : args.length > 0
  ? [await runLane("tests", ["--exclude", "tests/real/**", ...args])]
  : await Promise.all([
    runLane("page", PAGE_TESTS),
    runLane("all others", ["tests/real", ...PAGE_TESTS].flatMap((folder) => ["--exclude", `${folder}/**`])),
  ]);
const reports = lanes.map(({ report }) => report);
const sum = (key: Counted) => reports.reduce((total, report) => total + report[key], 0);
const [passed, failed, skipped] = [sum("numPassedTests"), sum("numFailedTests"), sum("numPendingTests")];
for (const line of redTests(reports, `${Deno.cwd()}/`)) console.log(line);
// No report mentions what is thrown outside of every test.
if (lanes.some(({ isGreen, report }) => !isGreen && report.success)) {
  console.log('FAILED outside of every test: see "Unhandled Errors" above');
}
const cases = isReal && reportsAt !== undefined
  ? await securityCaseLines(reportsAt, excludedFiles(others))
  : { lines: [], isGreen: true };
for (const line of cases.lines) console.log(line);
for (const { name, seconds } of lanes) console.log(`${name}: ${seconds} s`);
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
// A run of the tests with real parts has the parts, so a skipped test is one that did not run.
const isWhole = reports.every(({ numPassedTests }) => numPassedTests > 0) && (!isReal || skipped === 0);
Deno.exit(lanes.every(({ isGreen }) => isGreen) && isWhole && cases.isGreen ? 0 : 1);

/** Runs vitest with further arguments; its output is shown as it is made. */
async function runLane(name: string, args: string[]): Promise<LaneResult> {
  const path = await Deno.makeTempFile({ suffix: ".json" });
  const startedAtMs = performance.now();
  try {
    const isGreen = await succeeds(Deno.execPath(), [
      ...["run", "-A", VITEST, "run", "--config", "tests/vitest.config.ts"],
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${path}`],
      ...args,
    ]);
    const seconds = Math.round((performance.now() - startedAtMs) / 1000);
    if (reportsAt !== undefined) await keepReport(path, reportsAt);
    return { name, isGreen, seconds, report: JSON.parse(await Deno.readTextFile(path) || NO_REPORT) };
  } finally {
    await Deno.remove(path);
  }
}

/** Finds the files that the arguments of vitest leave out: `--exclude FILE`. */
function excludedFiles(args: readonly string[]): string[] {
  return args.filter((_, i) => args[i - 1] === "--exclude");
}

async function makeFolder(path: string): Promise<string> {
  await Deno.mkdir(path, { recursive: true });
  return path;
}

async function keepReport(report: string, folder: string): Promise<void> {
  await Deno.copyFile(report, `${folder}/${crypto.randomUUID()}.json`);
}

/**
 * Finds a browser for the tests of the page, which `CHROMIUM` can name, or installs Debian's Chromium where the system
 * allows that.
 */
async function installBrowser(): Promise<void> {
  const named = Deno.env.get("CHROMIUM");
  for (const path of named === undefined ? [CHROMIUM, ...OTHER_BROWSERS] : [named]) {
    if (!await exists(path)) continue;
    Deno.env.set("CHROMIUM", path);
    return;
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
      const install = [...apt.slice(1), "install", ...options, "--no-install-recommends", "chromium"];
      await succeeds(apt[0]!, install).catch(() => false);
      if (await exists(CHROMIUM)) return;
    }
  }
  console.error(
    "The tests of the page need a browser: install Google Chrome (macOS, Ubuntu) or the package chromium (Debian), or set CHROMIUM to the path of one",
  );
  Deno.exit(1);
}

async function succeeds(command: string, args: string[]): Promise<boolean> {
  return (await new Deno.Command(command, { args, stdout: "inherit", stderr: "inherit" }).spawn().status).success;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
