/**
 * Runs the tests: `deno task test [room …]`, or with `real` first the tests that need real parts (a language model server,
 * the compiled executable). Sees to a browser first and ends with what was red and one line that counts. `--reports FOLDER` at
 * the very end keeps vitest's reports, which `deno task docs` takes.
 */
import { builtUi } from "./helpers/built_ui.ts";
import { redTests, type RunReport } from "./run_summary.ts";

const CHROMIUM = "/usr/bin/chromium";
const VITEST = "npm:vitest@5.1.1";

/** The tests of the page take as long as all others together, and run beside them; nobody writes the built page meanwhile. */
const OF_PAGE = "tests/static";

/** Of a run that ended before its report: it is red, and nothing passed. */
const NO_REPORT =
  '{ "numPassedTests": 0, "numFailedTests": 0, "numPendingTests": 0, "success": true, "testResults": [] }';

type Counted = "numPassedTests" | "numFailedTests" | "numPendingTests";

const reportsAt = Deno.args.at(-2) === "--reports" ? Deno.args.at(-1) : undefined;
const args = reportsAt === undefined ? Deno.args : Deno.args.slice(0, -2);
const [first, ...others] = args;
// Tests that run vitest themselves leave its report there, too.
if (reportsAt !== undefined) Deno.env.set("TEST_REPORTS_FOLDER", await Deno.realPath(await makeFolder(reportsAt)));
const isReal = first === "real";

await installBrowser();
await builtUi();
const runs = isReal
  ? [await runTests(["tests/real", ...others])]
  : args.length > 0
  ? [await runTests(["--exclude", "tests/real/**", ...args])]
  : await Promise.all([
    runTests([OF_PAGE]),
    runTests(["tests/real", OF_PAGE].flatMap((room) => ["--exclude", `${room}/**`])),
  ]);
const reports = runs.map(({ report }) => report);
const sum = (key: Counted) => reports.reduce((total, report) => total + report[key], 0);
const [passed, failed, skipped] = [sum("numPassedTests"), sum("numFailedTests"), sum("numPendingTests")];
for (const line of redTests(reports, `${Deno.cwd()}/`)) console.log(line);
// What is thrown outside of every test stands in no report.
if (runs.some(({ isGreen, report }) => !isGreen && report.success)) {
  console.log('FAILED outside of every test: see "Unhandled Errors" above');
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
// Whoever asks for the tests with real parts has the parts: one that was skipped is one that did not run.
const isWhole = reports.every(({ numPassedTests }) => numPassedTests > 0) && (!isReal || skipped === 0);
Deno.exit(runs.every(({ isGreen }) => isGreen) && isWhole ? 0 : 1);

/** Runs vitest with further arguments; its output comes as it is made. */
async function runTests(args: string[]): Promise<{ isGreen: boolean; report: RunReport }> {
  const path = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const isGreen = await succeeds(Deno.execPath(), [
      ...["run", "-A", VITEST, "run", "--config", "tests/vitest.config.ts"],
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${path}`],
      ...args,
    ]);
    if (reportsAt !== undefined) await keepReport(path, reportsAt);
    return { isGreen, report: JSON.parse(await Deno.readTextFile(path) || NO_REPORT) };
  } finally {
    await Deno.remove(path);
  }
}

async function makeFolder(path: string): Promise<string> {
  await Deno.mkdir(path, { recursive: true });
  return path;
}

async function keepReport(report: string, folder: string): Promise<void> {
  await Deno.copyFile(report, `${folder}/${crypto.randomUUID()}.json`);
}

/** Tests of the page drive a real browser; Debian's package is had where the system lets us install it. */
async function installBrowser(): Promise<void> {
  if (await exists(CHROMIUM)) return;
  const sudo = Deno.uid() === 0 ? [] : ["sudo", "-n"];
  const apt = [...sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
  console.log("Installing Chromium for the tests of the page …");
  await succeeds(apt[0]!, [...apt.slice(1), "update", "-qq"]).catch(() => false);
  await succeeds(apt[0]!, [...apt.slice(1), "install", "-y", "-qq", "--no-install-recommends", "chromium"]).catch(() =>
    false
  );
  if (await exists(CHROMIUM)) return;
  console.error(`The tests of the page need a browser at ${CHROMIUM}; install the package chromium and run this again`);
  Deno.exit(1);
}

async function succeeds(command: string, args: string[]): Promise<boolean> {
  return (await new Deno.Command(command, { args, stdout: "inherit", stderr: "inherit" }).spawn().status).success;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
