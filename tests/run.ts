/**
 * Runs the tests: `deno task test [room …]`, or with `real` first the tests that need real parts (a language model server,
 * the compiled executable). Sees to a browser first and ends with one line that counts.
 */
const CHROMIUM = "/usr/bin/chromium";
const VITEST = "npm:vitest@5.1.1";

const [first, ...others] = Deno.args;
const isReal = first === "real";
const filters = isReal ? ["tests/real", ...others] : Deno.args;

await installBrowser();
if (!await succeeds(Deno.execPath(), ["task", "--quiet", "ui"])) Deno.exit(1);
const report = await Deno.makeTempFile({ suffix: ".json" });
const isGreen = await succeeds(Deno.execPath(), [
  ...["run", "-A", VITEST, "run", "--config", "tests/vitest.config.ts"],
  ...["--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
  ...(isReal ? [] : ["--exclude", "tests/real/**"]),
  ...filters,
]);
const counts = JSON.parse(await Deno.readTextFile(report));
await Deno.remove(report);
console.log(`${counts.numPassedTests} passed, ${counts.numFailedTests} failed, ${counts.numPendingTests} skipped`);
// Whoever asks for the tests with real parts has the parts: one that was skipped is one that did not run.
const isWhole = counts.numPassedTests > 0 && (!isReal || counts.numPendingTests === 0);
Deno.exit(isGreen && isWhole ? 0 : 1);

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
