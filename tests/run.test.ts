import { expect, test } from "vitest";
import { fileURLToPath } from "node:url";
import { redTests, type RunReport, slowestFiles } from "./run_summary.ts";
import { findSlowReason, orderFiles } from "./runner/file_queue.ts";
import type { FileTimes } from "./runner/file_times.ts";
import { findRelatedTests } from "./runner/related.ts";
import { isGone } from "./helpers/processes/processes.ts";

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
  "tests/services/leaks.test.ts": `
    import process from "node:process";
    import { test } from "vitest";
    test("it leaves a program, a port and a file, and changes a variable", () => {
      const child = new Deno.Command("sleep", { args: ["1000"], stdin: "null", stdout: "null", stderr: "null" }).spawn();
      child.unref();
      Deno.listen({ port: 0 });
      Deno.makeTempFileSync({ prefix: "forgotten-" });
      Deno.env.set("LEFT_BY_A_TEST", "yes");
      // As the browser's driver does; and something that is waited for.
      process.on("SIGTERM", () => {});
      setInterval(() => {}, 1_000);
    });`,
  "tests/services/orphan.test.ts": `
    import { test } from "vitest";
    test("it leaves a program without a parent, which holds the output of the lane", async () => {
      const options = { args: ["-c", "sleep 2000 &"], stdout: "inherit", stderr: "inherit" };
      await new Deno.Command("sh", options).spawn().status;
    });`,
  "tests/services/variables.test.ts": `
    import { expect, test } from "vitest";
    test("no other file's variables are seen", () => expect(Deno.env.has("LEFT_BY_A_TEST")).toBe(false));`,
};
/** Files of this repository that a run needs. */
const RUNNER = [
  "tests/vitest.config.ts",
  "tests/security_cases.ts",
  "tests/helpers/app/patience.ts",
  "tests/helpers/network/slow_answers.ts",
  ...["file_queue", "file_setup", "file_times", "running_processes"].map((name) => `tests/runner/${name}.ts`),
];

test("ends with what failed in any lane and what a file left, and retries nothing", async () => {
  const folder = await Deno.makeTempDir({ prefix: "parlor-run-" });
  try {
    await Deno.symlink(fileURLToPath(new URL("node_modules", ROOT)), `${folder}/node_modules`);
    const { imports: { vitest } } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
    const config = { nodeModulesDir: "manual", imports: { vitest } };
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config));
    const files = { ...FILES };
    for (const path of RUNNER) {
      files[path] = await Deno.readTextFile(new URL(path, ROOT));
    }
    for (const [path, text] of Object.entries(files)) {
      await Deno.mkdir(`${folder}/${path.slice(0, path.lastIndexOf("/"))}`, { recursive: true });
      await Deno.writeTextFile(`${folder}/${path}`, text);
    }
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", fileURLToPath(new URL("tests/run.ts", ROOT))],
      cwd: folder,
      env: { ...ownEnvironment(), TEST_ENDING_MS: "2000" },
      clearEnv: true,
    }).output();
    const lines = new TextDecoder().decode(stdout).trimEnd().split("\n");
    const first = lines.findIndex((line) => line.startsWith("FAILED "));
    const shown = lines.slice(first).filter((line) => !line.startsWith("    "));
    // Vitest alone would wait for it without limit.
    const [orphan] = shown.splice(shown.findIndex((line) => line.startsWith("FAILED left by the run")), 1);
    expect(orphan).toMatch(/process \d+ \(sleep 2000\) of \S+\/tests\/services\/orphan\.test\.ts$/);
    expect(shown.slice(0, -2).sort(), new TextDecoder().decode(stderr)).toEqual([
      "FAILED tests/services/hook.test.ts as a whole",
      "FAILED tests/services/late.test.ts > a group > it would pass a second time",
      "FAILED tests/services/leaks.test.ts as a whole",
      "FAILED tests/static/page.test.ts > the page is red",
    ]);
    expect(shown.at(-2)).toMatch(/^\d+ s; the same order again: --seed \d+$/);
    expect(shown.at(-1)).toBe("4 passed, 2 failed, 1 skipped");
    const [, pid] = /Left by this file: process (\d+) \(sleep 1000\); listening port \d+; temporary file forgotten-\w+/
      .exec(lines.join("\n")) ?? [];
    expect(await isGone(Number(pid))).toBe(true);
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

test("files run in an order that the seed repeats, and those that say why they take long come first", () => {
  const files = Array.from({ length: 100 }, (_, i) => i);
  const isSlow = (file: number) => file % 10 === 0;
  const order = orderFiles(files, 7, isSlow);
  expect(order).toEqual(orderFiles(files, 7, isSlow));
  expect(order).not.toEqual(orderFiles(files, 8, isSlow));
  expect(order.toSorted((a, b) => a - b)).toEqual(files);
  expect(order.slice(0, 10).every(isSlow)).toBe(true);
  expect(order.slice(10)).not.toEqual(order.slice(10).toSorted((a, b) => a - b));
});

test("lists the slowest files, and which of those above 30 s don't say why", () => {
  const times = (file: string, seconds: number): FileTimes => ({
    file: `/a/${file}`,
    seconds,
    importSeconds: 1,
    testSeconds: seconds - 2,
    hookSeconds: 1,
    processorSeconds: 4,
  });
  const all = [times("a.test.ts", 31), times("b.test.ts", 30), times("c.test.ts", 90)];
  const source = "/** @slow Kills 40 servers. */\nimport {} from 'vitest';";
  const reason = (file: string) => file === "/a/c.test.ts" ? findSlowReason(source) : findSlowReason("// quick");
  expect(slowestFiles(all, "/a/", reason)).toEqual([
    "Slowest files:",
    "  90.0 s,    4.0 s of processor time (imports 1.0, hooks 1.0, tests 88.0) c.test.ts: Kills 40 servers.",
    "  31.0 s,    4.0 s of processor time (imports 1.0, hooks 1.0, tests 29.0) a.test.ts: NO REASON given for more than 30 s",
  ]);
  expect(slowestFiles([times("b.test.ts", 30)], "/a/", reason)).toEqual([]);
  expect(slowestFiles(Array.from({ length: 50 }, (_, i) => times(`${i}`, i / 10)), "/a/", reason).length).toBe(21);
});

test("finds the tests of a file: importers, child programs, mirrors of what needs the whole server or page", () => {
  const tree = new Map(Object.entries({
    "main.ts": 'import "./services/services.ts";',
    "services/services.ts": 'import "./auth/auth.ts"; import "./chat/reply.ts";',
    "services/errors.ts": "",
    "services/auth/auth.ts": 'import { AppError } from "../errors.ts";',
    "services/chat/reply.ts": 'import type { Auth } from "../auth/auth.ts"; new Worker(new URL("./worker.ts", base));',
    "services/chat/worker.ts": "",
    "services/chat/unseen.ts": "",
    "routes/chat.ts": 'import type { Reply } from "../services/chat/reply.ts";',
    "routes/app.ts": 'import "../main.ts"; import "./chat.ts";',
    "static/src/main.tsx": 'import "./views/chat/Chat.tsx";',
    "static/src/views/chat/Chat.tsx": 'import "../../state/drafts.ts"; import "./Send.tsx";',
    "static/src/views/chat/Send.tsx": "",
    "static/src/views/tools/Tools.tsx": "",
    "static/src/state/drafts.ts": 'import "./store.ts";',
    "static/src/state/store.ts": "",
    "tests/helpers/app.ts": 'import "../../routes/app.ts";',
    "tests/helpers/page.ts": 'import "../../static/src/main.tsx";',
    "tests/helpers/kill_child.ts": 'import "../../services/auth/auth.ts";',
    "tests/routes/chat.test.ts": 'import "../helpers/app.ts";',
    "tests/services/auth/auth.test.ts": 'import "../../../services/auth/auth.ts";',
    "tests/services/chat/kill.test.ts": 'start("kill_child.ts");',
    "tests/static/views/chat/send.test.ts": 'import "../../../helpers/page.ts";',
    "tests/static/views/chat/other.test.ts": 'import "../../../helpers/page.ts";',
    "tests/static/views/tools/tools.test.ts": 'import "../../../helpers/page.ts";',
    "tests/static/state/drafts.test.ts": 'import "../../../static/src/state/drafts.ts";',
  }));
  const related = (...paths: string[]) =>
    findRelatedTests(tree, paths).tests.map((path) => path.slice("tests/".length));
  expect(related("services/auth/auth.ts")).toEqual(
    expect.arrayContaining(["services/auth/auth.test.ts", "services/chat/kill.test.ts"]),
  );
  expect(related("services/chat/worker.ts")).toEqual(["routes/chat.test.ts"]);
  expect(related("services/errors.ts")).toEqual(["services/auth/auth.test.ts", "services/chat/kill.test.ts"]);
  expect(related("static/src/views/chat/Send.tsx")).toEqual([
    "static/views/chat/other.test.ts",
    "static/views/chat/send.test.ts",
  ]);
  expect(related("static/src/views/tools/Tools.tsx")).toEqual(["static/views/tools/tools.test.ts"]);
  expect(related("static/src/state/drafts.ts")).toEqual([
    "static/state/drafts.test.ts",
    "static/views/chat/other.test.ts",
  ]);
  expect(related("static/src/state/store.ts")).toEqual(["static/state/drafts.test.ts"]);
  expect(related("tests/routes/chat.test.ts")).toEqual(["routes/chat.test.ts"]);
  expect(findRelatedTests(tree, ["docs/api.md"])).toEqual({ tests: [], untested: ["docs/api.md"] });
});

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

/** Runs `.ci/run` in a tree whose tools only say what they do. @param failing Commands that fail. */
async function runCi(...failing: string[]): Promise<{ code: number; lines: string[] }> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-ci-" });
  const write = (path: string, text: string) => Deno.writeTextFile(`${folder}/${path}`, text, { mode: 0o755 });
  try {
    for (const path of [".ci", "bin", "tests/real/tools"]) await Deno.mkdir(`${folder}/${path}`, { recursive: true });
    await write(".ci/run", await Deno.readTextFile(new URL(".ci/run", ROOT)));
    await write("tests/real/tools/retry.sh", 'retry() { "$@"; }');
    const script = await Deno.readTextFile(new URL(".ci/run", ROOT));
    const [, parts = ""] = /^parts=\(([^)]+)\)$/m.exec(script) ?? [];
    const fails = failing.map((command) => `"${command}"*) echo "no luck"; exit 3;;`).join(" ");
    const says = `case "$said" in ${fails} *) echo "said $said";; esac`;
    for (const part of [...parts.split(/\s+/), "container"]) {
      await write(`tests/real/tools/${part}.sh`, `#!/bin/bash\nsaid="${part} $1"; [ "$1" != stop ] || exit 0; ${says}`);
    }
    // `npx -y deno@VERSION ARGUMENT…`
    const counts =
      'case "$said" in "task test "*) echo "9 passed, 0 failed, 1 skipped";; *"run.ts real"*) echo "5 passed, 0 failed, 0 skipped";; esac';
    await write("bin/npx", `#!/bin/bash\nshift 2; said="$*"; ${says}; ${counts}`);
    const { code, stdout } = await new Deno.Command("bash", {
      args: [".ci/run"],
      cwd: folder,
      env: { PATH: `${folder}/bin:${Deno.env.get("PATH")}`, XDG_CACHE_HOME: `${folder}/cache`, RETRY_PAUSE_S: "0" },
      stderr: "null",
    }).output();
    return { code, lines: new TextDecoder().decode(stdout).trimEnd().split("\n") };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The image is tested in a run of its own, where it can be. */
const COUNTS = /^(?:5|10) passed, 0 failed, 0 skipped$/;

test(".ci/run ends with the counts of the tests with real parts, after its sum", async () => {
  const { code, lines } = await runCi();
  expect(lines.at(-1)).toMatch(COUNTS);
  expect(lines.at(-2)).toMatch(/^all: \d+ s; with cached parts on two quiet cores at most 1200 s$/);
  expect(lines).toEqual(expect.arrayContaining(["said fmt --check", "said lint", "said check", "said task prose"]));
  expect(lines.filter((line) => line.startsWith("install llm: "))).toHaveLength(1);
  expect(code).toBe(0);
});

test(".ci/run names what fails: a check, a part with the end of its log, the tests, the cases", async () => {
  const check = await runCi("lint", "task prose");
  expect(check.lines).toEqual(expect.arrayContaining([
    "FAILED deno lint with code 3",
    "FAILED prose with code 3",
    "said fmt --check",
  ]));
  expect(check.lines).not.toContain("9 passed, 0 failed, 1 skipped");
  expect(check.code).toBe(1);
  const part = await runCi("proxies install", "comfyui install");
  expect(part.lines.slice(-6)).toEqual([
    "FAILED install comfyui with code 3; its log ends with:",
    "no luck",
    "FAILED install proxies with code 3; its log ends with:",
    "no luck",
    expect.stringMatching(/^parts: \d+ s$/),
    "FAILED parts with code 1",
  ]);
  expect(part.lines).toContain("9 passed, 0 failed, 1 skipped");
  expect(part.code).toBe(1);
  const cases = await runCi("run -A tests/run.ts cases");
  expect(cases.lines.at(-1)).toMatch(COUNTS);
  expect(cases.code).toBe(1);
  const tests = await runCi("task test");
  expect(tests.lines.at(-1)).toMatch(COUNTS);
  expect(tests.code).toBe(1);
});
