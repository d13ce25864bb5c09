import { afterEach, beforeEach, expect, test } from "vitest";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureUi, findUi } from "../../build/ui_builds.ts";
import { findFirstLoad } from "../../build/ui.ts";
import { findUiFolder, openUiFolder } from "../../routes/ui.ts";

const ROOT = new URL("../../", import.meta.url);
const SEVERAL_BUILDS_MS = 180_000;
/** A module that server and page both load. */
const SHARED = "services/json/search_fold.ts";

let root: URL;
let builds: string;

/** A page of one line with everything a build needs. */
beforeEach(async () => {
  root = new URL(`file://${await Deno.makeTempDir({ prefix: "parlor-ui-" })}/`);
  const write = async (path: string, text: string) => {
    await Deno.mkdir(new URL("./", new URL(path, root)), { recursive: true });
    await Deno.writeTextFile(new URL(path, root), text);
  };
  // The files that the build copies unchanged.
  const pageFiles = [...Deno.readDirSync(new URL("static/src/", ROOT))].map(({ name }) => name)
    .filter((name) => /\.(html|svg|js)$/.test(name)).map((name) => `static/src/${name}`);
  const shared = ["services/http/address_scheme.ts", SHARED];
  for (const path of ["build/ui.ts", "deno.lock", ...shared, ...pageFiles]) {
    await write(path, await Deno.readTextFile(new URL(path, ROOT)));
  }
  // Otherwise the bundler would update the lock file, which is one of the sources.
  await write("deno.json", '{ "lock": false }');
  await write("static/src/main.tsx", 'document.title = "one";');
  await write("static/src/service_worker.ts", "addEventListener('fetch', () => [SHELL_FILES, SHELL_VERSION]);");
  for (const name of ["main", "later"]) await write(`static/src/styles/${name}.css`, '@import "base.css";');
  await write("static/src/styles/base.css", "body { margin: 0 }");
  const icons = "static/src/icons/";
  await Deno.mkdir(new URL(icons, root));
  for await (const { name } of Deno.readDir(new URL(icons, ROOT))) {
    await Deno.copyFile(new URL(icons + name, ROOT), new URL(icons + name, root));
  }
  builds = fileURLToPath(new URL("static/dist", root));
});

afterEach(() => Deno.remove(root, { recursive: true }));

/** Ensures that the page is built. @returns True if it was built now. */
const build = async () => (await ensureUi({ root, isDev: false })).files !== undefined;

const setTitle = (title: string) =>
  Deno.writeTextFile(new URL("static/src/main.tsx", root), `document.title = "${title}";`);

const readPage = (folder: string) => Deno.readTextFile(`${folder}/index.html`);

/** Reads the page's script through the reference in the page. */
async function readScript(folder: string): Promise<string> {
  const page = await readPage(folder);
  return await Deno.readTextFile(folder + /<script type="module" src="([^"]+)">/.exec(page)![1]!);
}

async function namesOfBuilds(): Promise<string[]> {
  const names = await Array.fromAsync(Deno.readDir(builds), ({ name }) => name);
  return names.filter((name) => !["build.lock", "current"].includes(name)).sort();
}

/** Runs code in its own process, with `ensure()` for the page of this test. */
function startProcess(code: string): Deno.ChildProcess {
  const module = new URL("../../build/ui_builds.ts", import.meta.url).href;
  const ensure = `const { ensureUi } = await import("${module}");
    const ensure = () => ensureUi({ root: new URL("${root}"), isDev: false });`;
  return new Deno.Command(Deno.execPath(), {
    args: ["eval", `${ensure} ${code}`],
    cwd: fileURLToPath(ROOT),
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
}

test(
  "the modules that the first load shares with files loaded later are one script, in which they exist once",
  async () => {
    const write = (name: string, text: string) => Deno.writeTextFile(new URL(`static/src/${name}`, root), text);
    await write("one.ts", "export let one = 1; export const set = (value: number) => one = value;");
    await write("two.ts", 'import { one } from "./one.ts"; export default class Two { one = () => one }');
    await write("three.ts", "export const three = () => 3;");
    await write(
      "first_lazy.ts",
      'import { one, set } from "./one.ts"; export const run = () => { set(5); return one; };',
    );
    await write(
      "second_lazy.ts",
      'import Two from "./two.ts"; import { three } from "./three.ts"; export const run = () => [new Two().one(), three()];',
    );
    await write(
      "main.tsx",
      `import { one } from "./one.ts"; import Two from "./two.ts"; import { three } from "./three.ts";
     globalThis.seen = { own: [one, new Two().one(), three()], load: async () =>
       [(await import("./first_lazy.ts")).run(), (await import("./second_lazy.ts")).run(), one] };`,
    );
    const { path, files } = await ensureUi({ root, isDev: false });
    const first = await findFirstLoad(files!, pathToFileURL(`${path}/`));
    expect(first.filter((file) => file.path.endsWith(".js")).map((file) => file.path.split("-")[0])).toEqual([
      "assets/chunk",
      "assets/app",
      "assets/theme",
    ]);
    const script = path + /<script type="module" src="([^"]+)">/.exec(await readPage(path))![1]!;
    await import(/* @vite-ignore */ pathToFileURL(script).href);
    const { seen } = globalThis as unknown as { seen: { own: unknown; load(): Promise<unknown> } };
    expect(seen.own).toEqual([1, 1, 3]);
    expect(await seen.load()).toEqual([5, [5, 3], 5]);
  },
  SEVERAL_BUILDS_MS,
);

test(
  "builds the page once, and again when a source changes, appears or disappears, or the build is damaged",
  async () => {
    const source = (path: string) => new URL(`static/src/${path}`, root);
    const script = async () => await readScript(await findUiFolder(builds));
    expect([await build(), await build()]).toEqual([true, false]);
    expect(await script()).toContain("one");

    await setTitle("two");
    expect(await findUi({ root, isDev: false })).toBeUndefined();
    expect([await build(), await build()]).toEqual([true, false]);
    expect(await script()).toContain("two");

    await Deno.writeTextFile(source("more.ts"), "");
    expect([await build(), await build()]).toEqual([true, false]);
    await Deno.remove(source("more.ts"));
    // Back to the sources of an earlier build, which still exists.
    expect(await build()).toBe(false);
    expect(await script()).toContain("two");

    await Deno.writeTextFile(new URL(SHARED, root), "export const changed = true;");
    expect([await build(), await build()]).toEqual([true, false]);

    await Deno.remove(`${await findUiFolder(builds)}/index.html`);
    expect([await build(), await build()]).toEqual([true, false]);
    await Deno.writeTextFile(`${await findUiFolder(builds)}/index.html`, "another page");
    expect([await build(), await build()]).toEqual([true, false]);
    expect(await script()).toContain("two");
  },
  SEVERAL_BUILDS_MS,
);

test("processes that build at the same time share one build", async () => {
  const ask = async () => {
    const { stdout } = await startProcess("console.log(JSON.stringify(await ensure()));").output();
    return JSON.parse(new TextDecoder().decode(stdout)) as { path: string; files?: unknown[] };
  };
  const answers = await Promise.all([ask(), ask(), ask()]);
  const [name, ...others] = await namesOfBuilds();
  expect(others).toEqual([]);
  expect(answers.map(({ path }) => path)).toEqual(Array(3).fill(`${builds}/${name}`));
  expect(answers.filter(({ files }) => files !== undefined)).toHaveLength(1);
  expect(await readScript(`${builds}/${name}`)).toContain("one");
}, SEVERAL_BUILDS_MS);

test("a killed build leaves the current page complete, and the next build cleans up after it", async () => {
  await build();
  const before = await findUiFolder(builds);
  await setTitle("two");
  // Stops the build before its last step, the rename.
  const halt = 'Deno.rename = () => { console.log("halted"); return new Promise(() => {}); };';
  const child = startProcess(`setInterval(() => {}, 1_000); ${halt} await ensure();`);
  const output = child.stdout.getReader();
  expect(new TextDecoder().decode((await output.read()).value)).toContain("halted");
  expect(await namesOfBuilds()).toHaveLength(2);
  child.kill("SIGKILL");
  await child.status;
  await output.cancel();

  expect(await findUiFolder(builds)).toBe(before);
  expect(await readScript(before)).toContain("one");
  expect(await build()).toBe(true);
  expect(await readScript(await findUiFolder(builds))).toContain("two");
  expect((await namesOfBuilds()).filter((name) => name.endsWith(".tmp"))).toEqual([]);
}, SEVERAL_BUILDS_MS);

test("a server keeps its page on disk while newer ones are built; afterwards old pages are deleted", async () => {
  await build();
  const server = await openUiFolder(builds);
  const name = server.path.slice(builds.length + 1);
  for (const title of ["two", "three", "four", "five"]) {
    await setTitle(title);
    await build();
  }
  expect(await readScript(server.path)).toContain("one");
  expect(await namesOfBuilds()).toHaveLength(4);
  using newer = await openUiFolder(builds);
  expect(await readScript(newer.path)).toContain("five");

  server[Symbol.dispose]();
  await setTitle("six");
  await build();
  expect(await namesOfBuilds()).toHaveLength(3);
  expect(await namesOfBuilds()).not.toContain(name);
  expect(await readScript(newer.path)).toContain("five");
}, SEVERAL_BUILDS_MS);

test("files that no build created, such as those of an older layout, are deleted", async () => {
  await Deno.mkdir(`${builds}/assets`, { recursive: true });
  await Deno.writeTextFile(`${builds}/assets/app.js`, "");
  await Deno.writeTextFile(`${builds}/index.html`, "");
  await build();
  expect(await namesOfBuilds()).toEqual([(await findUiFolder(builds)).slice(builds.length + 1)]);
}, SEVERAL_BUILDS_MS);

test("a folder without a build opens without a page", async () => {
  using folder = await openUiFolder(builds);
  expect(folder.path).toBe(builds);
});
