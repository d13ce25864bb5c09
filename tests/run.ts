/**
 * Runs the tests: `deno task test [room …]`, or with `real` first the tests that need real parts (a language model server,
 * the compiled executable). Sees to a browser first and ends with one line that counts. `--reports FOLDER` at the very end keeps
 * vitest's reports, which `deno task docs` takes.
 */
const CHROMIUM = "/usr/bin/chromium";
const VITEST = "npm:vitest@5.1.1";

/** Rooms whose tests drive browsers and whole servers; they run beside the others, which leave the built page alone. */
const WITH_BROWSER = ["tests/static", "tests/e2e"];

/** What vitest counted. */
interface Counts {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
}

const reportsAt = Deno.args.at(-2) === "--reports" ? Deno.args.at(-1) : undefined;
const args = reportsAt === undefined ? Deno.args : Deno.args.slice(0, -2);
const [first, ...others] = args;
// Tests that run vitest themselves leave its report there, too.
if (reportsAt !== undefined) Deno.env.set("TEST_REPORTS_FOLDER", await Deno.realPath(await makeFolder(reportsAt)));
const isReal = first === "real";

await installBrowser();
if (!await succeeds(Deno.execPath(), ["task", "--quiet", "ui"])) Deno.exit(1);
const runs = isReal
  ? [await runTests(["tests/real", ...others])]
  : args.length > 0
  ? [await runTests(["--exclude", "tests/real/**", ...args])]
  : await Promise.all([
    runTests(WITH_BROWSER),
    runTests(["tests/real", ...WITH_BROWSER].flatMap((room) => ["--exclude", `${room}/**`])),
  ]);
const sum = (key: keyof Counts) => runs.reduce((total, { counts }) => total + counts[key], 0);
const [passed, failed, skipped] = [sum("numPassedTests"), sum("numFailedTests"), sum("numPendingTests")];
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
// Whoever asks for the tests with real parts has the parts: one that was skipped is one that did not run.
const isWhole = runs.every(({ counts }) => counts.numPassedTests > 0) && (!isReal || skipped === 0);
Deno.exit(runs.every(({ isGreen }) => isGreen) && isWhole ? 0 : 1);

/** Runs vitest with further arguments; its output comes as it is made. */
async function runTests(args: string[]): Promise<{ isGreen: boolean; counts: Counts }> {
  const report = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const isGreen = await succeeds(Deno.execPath(), [
      ...["run", "-A", VITEST, "run", "--config", "tests/vitest.config.ts"],
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
      ...args,
    ]);
    if (reportsAt !== undefined) await keepReport(report, reportsAt);
    return { isGreen, counts: JSON.parse(await Deno.readTextFile(report)) };
  } finally {
    await Deno.remove(report);
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
