/**
 * Starts from source in a fresh checkout, as `deno task start` does.
 *
 * @slow Each start builds the page in a fresh checkout.
 */
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startPermissions } from "../../build.ts";
import { type ChildServer, ownEnvironment, startChildServer } from "../helpers/app/child_server.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SOURCES = [
  "main.ts",
  "build.ts",
  "build",
  "routes",
  "middleware",
  "services",
  "deno.json",
  "deno.lock",
  "project.json",
  "LICENSE",
];
/** A build takes a minute on a busy machine, two at once twice as long. */
const READY_WITHIN_MS = 240_000;
const SEVERAL_BUILDS_MS = 3 * READY_WITHIN_MS;

let root: string;

beforeEach(async () => {
  root = await Deno.makeTempDir({ prefix: "parlor-checkout-" });
  await Deno.mkdir(`${root}/static`);
  for (const path of [...SOURCES, "static/src"]) {
    const { success } = await new Deno.Command("cp", { args: ["-r", ROOT + path, `${root}/${path}`] }).output();
    expect(success).toBe(true);
  }
  await Deno.symlink(`${ROOT}node_modules`, `${root}/node_modules`);
});

afterEach(() => Deno.remove(root, { recursive: true }));

const start = (data: string) =>
  startChildServer({
    ...{ root, dataDir: `${root}/${data}`, entry: "build/start.ts" },
    readyWithinMs: READY_WITHIN_MS,
  });

/** Loads the page with all files that it references. */
async function loadPage(server: ChildServer): Promise<string> {
  const page = await server.request("GET", "/");
  expect(page.status).toBe(200);
  const html = await page.text();
  const paths = [...html.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
  expect(paths.length).toBeGreaterThan(2);
  for (const path of paths) {
    const answer = await server.request("GET", path);
    expect([path, answer.status]).toEqual([path, 200]);
    await answer.body?.cancel();
  }
  return html;
}

const namesOfBuilds = async () =>
  (await Array.fromAsync(Deno.readDir(`${root}/static/dist`), ({ name }) => name)).filter((name) => name.includes("-"));

test(
  "two concurrent starts both serve the page, a third doesn't build it, and a change is for the next start",
  async () => {
    const servers = await Promise.all([start("a"), start("b")]);
    await using first = servers[0];
    await using second = servers[1];
    const page = await loadPage(first);
    expect(await loadPage(second)).toBe(page);
    expect(await namesOfBuilds()).toHaveLength(1);
    // The slower one may find the build of the other.
    expect([...first.logs, ...second.logs].join("\n")).toContain("Building the page");

    await second.kill("SIGTERM");
    await using third = await start("b");
    expect(await loadPage(third)).toBe(page);
    expect(third.logs.join("\n")).not.toContain("Building the page");

    await Deno.writeTextFile(`${root}/static/src/styles/base.css`, "\n.changed { margin: 0 }\n", { append: true });
    await using fourth = await start("c");
    expect(await loadPage(fourth)).not.toBe(page);
    expect(await loadPage(first)).toBe(page);
    expect(await namesOfBuilds()).toHaveLength(2);
  },
  SEVERAL_BUILDS_MS,
);

test.each([
  [["--version"]],
  [["--help"]],
  [["--print-config"]],
  [["auth", "--help"]],
  [["doctor"]],
  [["backup", "--help"]],
  [["licenses", "--help"]],
])("%j doesn't build the page", async (args) => {
  const environment = { ...ownEnvironment(), PARLOR_DATA_DIR: `${root}/data`, PARLOR_PORT: "1" };
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...await startPermissions(), "build/start.ts", ...args],
    cwd: root,
    env: environment,
    clearEnv: true,
    stdin: "null",
    stderr: "null",
  }).output();
  expect(new TextDecoder().decode(stdout)).not.toBe("");
  await expect(Deno.stat(`${root}/static/dist`)).rejects.toThrow(Deno.errors.NotFound);
}, SEVERAL_BUILDS_MS);

const task = async (args: string[]) => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "start", ...args],
    cwd: root,
    env: { ...ownEnvironment(), NO_COLOR: "1" },
    clearEnv: true,
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
};

test("a package that isn't in deno.lock ends the start, before it's installed or locked", async () => {
  expect(await task(["--version"])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Parlor /) });
  const config = await Deno.readTextFile(`${root}/deno.json`);
  const other = config.replace(/"npm:uqr@[^"]+"/, '"npm:uqr@^0.1.0"');
  expect(other).not.toBe(config);
  await Deno.writeTextFile(`${root}/deno.json`, other);
  const lock = await Deno.readTextFile(`${root}/deno.lock`);
  const { code, stderr } = await task(["--version"]);
  expect(code).not.toBe(0);
  expect(stderr).toContain("The lockfile is out of date");
  expect(await Deno.readTextFile(`${root}/deno.lock`)).toBe(lock);
});

test("the server loads no code from other hosts, and no native libraries", async () => {
  const code = 'const { state } = Deno.permissions.querySync({ name: "ffi" }); const host = "https://deno.land/";' +
    'console.log(state, await import(host + "a.ts").catch((error) => error.message));';
  await Deno.writeTextFile(`${root}/asks.ts`, code);
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", ...await startPermissions(), "asks.ts"],
    cwd: root,
    env: { ...ownEnvironment(), NO_COLOR: "1" },
    clearEnv: true,
    stdin: "null",
  }).output();
  expect(new TextDecoder().decode(stdout)).toMatch(/^(prompt|denied) A remote specifier was requested: .* --no-remote/);
  expect(await startPermissions()).toContain("--no-prompt");
});

test("a page that can't be built ends the start with the bundler's message", async () => {
  await Deno.writeTextFile(`${root}/static/src/main.tsx`, "const = ;");
  await expect(start("a")).rejects.toThrow(/main\.tsx[\s\S]*"error":"Can't build the page/);
}, SEVERAL_BUILDS_MS);
