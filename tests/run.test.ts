import { expect, test } from "vitest";
import { fileURLToPath } from "node:url";
import { redTests, type RunReport } from "./run_summary.ts";

const ROOT = new URL("../", import.meta.url);

/** A repository with three small test files, run like this one. */
const FILES: Record<string, string> = {
  "tests/static/page.test.ts": `
    import { expect, test } from "vitest";
    test("the page is red", () => expect("one\\ntwo").toBe("three"));
    test("the page is green", () => {});`,
  "tests/services/late.test.ts": `
    import { describe, expect, test } from "vitest";
    let tries = 0;
    describe("a group", () => {
      test("it would pass a second time", () => expect(++tries).toBe(2));
    });`,
  "tests/services/hook.test.ts": `
    import { beforeAll, test } from "vitest";
    beforeAll(() => { throw new Error("the hook threw"); });
    test("never run", () => {});`,
};

test("ends with what failed in any lane, and retries nothing", async () => {
  const folder = await Deno.makeTempDir({ prefix: "parlor-run-" });
  try {
    await Deno.symlink(fileURLToPath(new URL("node_modules", ROOT)), `${folder}/node_modules`);
    const { imports: { vitest } } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
    const config = { nodeModulesDir: "manual", imports: { vitest } };
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config));
    const files = { ...FILES };
    for (const path of ["tests/vitest.config.ts", "tests/security_cases.ts", "tests/helpers/app/patience.ts"]) {
      files[path] = await Deno.readTextFile(new URL(path, ROOT));
    }
    for (const [path, text] of Object.entries(files)) {
      await Deno.mkdir(`${folder}/${path.slice(0, path.lastIndexOf("/"))}`, { recursive: true });
      await Deno.writeTextFile(`${folder}/${path}`, text);
    }
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", fileURLToPath(new URL("tests/run.ts", ROOT))],
      cwd: folder,
      env: ownEnvironment(),
      clearEnv: true,
    }).output();
    const lines = new TextDecoder().decode(stdout).trimEnd().split("\n");
    const first = lines.findIndex((line) => line.startsWith("FAILED "));
    const shown = lines.slice(first).filter((line) => !line.startsWith("    "));
    expect(shown.map((line) => line.replace(/: \d+ s$/, ": N s")), new TextDecoder().decode(stderr)).toEqual([
      "FAILED tests/static/page.test.ts > the page is red",
      "FAILED tests/services/hook.test.ts as a whole",
      "FAILED tests/services/late.test.ts > a group > it would pass a second time",
      "page: N s",
      "all others: N s",
      "1 passed, 2 failed, 1 skipped",
    ]);
    expect(lines.slice(first)).toEqual(expect.arrayContaining([
      expect.stringMatching(/^ {4}.*expected 'one\\ntwo' to be 'three'/),
      expect.stringMatching(/^ {4}.*the hook threw/),
      expect.stringMatching(/^ {4}.*expected 1 to be 2/),
    ]));
    expect(code).toBe(1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

test("of a long error the first lines are shown, and without colours", () => {
  const error = ["\x1b[31mone\x1b[39m", "", ...Array.from({ length: 50 }, (_, i) => `${i} ${"x".repeat(1_000)}`)];
  const assertionResults = [{ ancestorTitles: [], title: "t", status: "failed", failureMessages: [error.join("\n")] }];
  const report: RunReport = {
    numPassedTests: 0,
    numFailedTests: 1,
    numPendingTests: 0,
    success: false,
    testResults: [{ name: "/a/tests/x.test.ts", status: "failed", message: "", assertionResults }],
  };
  const lines = redTests([report], "/a/");
  expect(lines.slice(0, 3)).toEqual(["FAILED tests/x.test.ts > t", "    one", expect.stringMatching(/^ {4}0 x+$/)]);
  expect(lines.length).toBe(9);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(250);
  expect(redTests([{ ...report, testResults: [] }], "/a/")).toEqual([]);
});

/** Without the variables of this vitest process. */
function ownEnvironment(): Record<string, string> {
  const isOurs = (name: string) => /^(VITEST|TEST|NODE_ENV|DEV|PROD|MODE|SSR|BASE_URL)/.test(name);
  return Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => !isOurs(name)));
}

const TOOLS = new URL("real/tools/", import.meta.url);

/** Runs lines of bash after `retry.sh`, with no pauses, and returns what they print. */
async function runRetrying(lines: string): Promise<string> {
  const script = `. "${fileURLToPath(new URL("retry.sh", TOOLS))}"\n${lines}`;
  const env = { RETRY_PAUSE_S: "0" };
  const { stdout } = await new Deno.Command("bash", { args: ["-euc", script], env, stderr: "null" }).output();
  return new TextDecoder().decode(stdout);
}

test("an installation step that fails is tried three more times, and its last failure counts", async () => {
  const flaky = 'n=0; flaky() { n=$((n + 1)); echo "try $n"; [ "$n" -ge "$1" ]; }; ';
  expect(await runRetrying(`${flaky} retry flaky 1; echo done`)).toBe("try 1\ndone\n");
  expect(await runRetrying(`${flaky} retry flaky 4; echo done`)).toBe("try 1\ntry 2\ntry 3\ntry 4\ndone\n");
  expect(await runRetrying(`${flaky} retry flaky 5; echo done`)).toBe("try 1\ntry 2\ntry 3\ntry 4\n");
});

test("everything that installs a part tries its downloads again", async () => {
  const command =
    /^\s*[^#]*?\b(pip (install|download)|npm install|apt_download|apt-get .*(update|install|download)|go build -ldflags) /;
  const lines: string[] = [];
  for await (const { name } of Deno.readDir(TOOLS)) {
    if (!name.endsWith(".sh") || name === "retry.sh") continue;
    const text = (await Deno.readTextFile(new URL(name, TOOLS))).replaceAll("\\\n", "");
    lines.push(...text.split("\n").filter((line) => command.test(line) && !/\b(fail|note) "/.test(line)));
  }
  expect(lines.length).toBeGreaterThan(15);
  expect(lines.filter((line) => !line.includes("retry "))).toEqual([]);
});
