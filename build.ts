/**
 * Builds the page and the executables: `deno run -A build.ts ui [--dev]` builds the page if its sources have changed,
 * `deno run -A build.ts executable` compiles the server with it into dist/parlor. Each mode is an entry of `MODES`.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import {
  createBillOfMaterials,
  findPackageFolder,
  formatNotices,
  listPackageFolders,
  readPackages,
} from "./build/inventory.ts";
import { type BuildTarget, getOwnTarget, parseTargets } from "./build/targets.ts";
import { ensureUi } from "./build/ui_builds.ts";
import { CURRENT_FILE } from "./routes/ui.ts";
import { LINEAR_REGEXP_FLAG } from "./services/platform/sandbox/sandbox.ts";

/** One mode of this file. `args` are the arguments after the mode's name. */
type Mode = (args: string[]) => Promise<void>;

const ROOT = new URL("./", import.meta.url);

/** File next to the executables. */
const NOTICES_FILE = "licences.txt";
/** Is in the executable, for the page. */
const CHANGELOG_FILE = "CHANGELOG.md";
const BILL_FILE = "parlor.cdx.json";

const MODES: Record<string, Mode> = {
  ui: async (args) => {
    const { path, files } = await ensureUi({ isDev: args.includes("--dev") });
    if (files === undefined) console.log(`${path} is up to date`);
    else for (const file of files) console.log(`${file.path}  ${file.sizeBytes} bytes, ${file.gzipBytes} with gzip`);
  },
  executable: async (args) => {
    const targets = parseTargets(args);
    const { path: uiFolder } = await ensureUi({ isDev: false });
    const named = targets.map((target) => ({ target, file: target.file }));
    const files: string[] = [];
    for (const { target, file } of named.length > 0 ? named : [{ target: undefined, file: "parlor" }]) {
      const sizeBytes = await buildExecutable({ root: ROOT, uiFolder, path: new URL(`dist/${file}`, ROOT), target });
      files.push(file);
      console.log(`dist/${file}  ${sizeBytes} bytes`);
    }
    await writeChecksums(new URL("dist/", ROOT), [...files, NOTICES_FILE, BILL_FILE]);
  },
};

/** Options of `buildExecutable`. */
export interface ExecutableBuildOptions {
  /** Folder with the source, ending with a slash. */
  root: URL;
  /** Path of the built page. */
  uiFolder: string;
  /** Path of the executable; notices and bill of materials are written next to it. */
  path: URL;
  /** The machine for which to build; by default this one. */
  target?: BuildTarget;
}

/**
 * Compiles the server with the built page into one self-contained executable.
 *
 * It compiles bundles in a separate folder, because next to the source all of node_modules would be included. They are
 * in app/, one folder deep like the source file that finds the page at "../static/dist/". `DENO_COMPILE_CLI` is the
 * path of another Deno to compile with, `DENORT_BIN` that of its runtime; both must have the same version.
 *
 * @returns Its size in bytes.
 * @throws {Error} if the bundler or the compiler fails, or the code uses a file that the executable wouldn't contain
 */
async function buildExecutable({ root, uiFolder, path, target }: ExecutableBuildOptions): Promise<number> {
  const { unstable, version } = await readDenoConfig(root);
  const stage = await Deno.makeTempDir({ prefix: "parlor-executable-" });
  try {
    await Deno.writeTextFile(`${stage}/deno.json`, JSON.stringify({ nodeModulesDir: "none", unstable }));
    await copyFolder(uiFolder, `${stage}/static/dist/page`);
    await Deno.writeTextFile(`${stage}/static/dist/${CURRENT_FILE}`, "page");
    const compiler = Deno.env.get("DENO_COMPILE_CLI") || Deno.execPath();
    const packages = await stageServer(root, stage);
    for (const found of await listUiPackages(root)) packages.add(found);
    const product = {
      version,
      runtimeVersion: await versionOf(compiler),
      licenceText: await Deno.readTextFile(new URL("LICENSE", root)),
      packages: await readPackages(root, packages),
    };
    await Deno.mkdir(new URL("./", path), { recursive: true });
    await Deno.copyFile(new URL(CHANGELOG_FILE, root), `${stage}/${CHANGELOG_FILE}`);
    await Deno.writeTextFile(`${stage}/${NOTICES_FILE}`, formatNotices(product));
    await Deno.writeTextFile(new URL(NOTICES_FILE, path), formatNotices(product));
    await Deno.writeTextFile(new URL(BILL_FILE, path), createBillOfMaterials(product));
    await compile(compiler, stage, fileURLToPath(path), [...await startPermissions(root)], target);
    return (await Deno.stat(path)).size;
  } finally {
    await Deno.remove(stage, { recursive: true });
  }
}

async function compile(compiler: string, stage: string, to: string, permissions: string[], target?: BuildTarget) {
  // A code cache would be in the shared temporary folder, under a name that any user of the machine can take first.
  // Children of the sandbox are the executable itself, whose runtime takes V8 flags only when it's compiled.
  const flags = ["--quiet", "--no-check", "--no-code-cache", `--v8-flags=${LINEAR_REGEXP_FLAG}`, ...permissions];
  const included = ["static/dist", "app", NOTICES_FILE, CHANGELOG_FILE].flatMap((path) => ["--include", path]);
  const forTarget = target === undefined ? [] : ["--target", target.triple];
  const env = Deno.env.toObject();
  // A given runtime is for this machine.
  if (target !== undefined && target.triple !== getOwnTarget()?.triple) delete env.DENORT_BIN;
  const { code, stderr } = await new Deno.Command(compiler, {
    args: ["compile", ...flags, ...included, ...forTarget, "--output", to, "app/main.js"],
    cwd: stage,
    env,
    clearEnv: true,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (code === 0) return;
  const output = new TextDecoder().decode(stderr);
  if (/Setting up base binary|Could not find standalone binary section/.test(output)) {
    throw new Error(
      `Can't compile for ${target?.name ?? "this machine"}: the compile runtime (denort ${await versionOf(
        compiler,
      )}) is ` +
        "neither in Deno's cache nor downloadable; build where Deno's download host is reachable, or set DENORT_BIN " +
        "(tests/real/tools/denort.sh builds one for linux-x64)",
    );
  }
  console.error(output);
  throw new Error(`Can't compile "${to}": deno ended with code ${code}`);
}

async function versionOf(deno: string): Promise<string> {
  const { stdout } = await new Deno.Command(deno, { args: ["--version"], stderr: "inherit" }).output();
  return /^deno (\S+)/.exec(new TextDecoder().decode(stdout))?.[1] ?? "unknown";
}

/**
 * Bundles the server with its Workers into app/ of a folder.
 *
 * @returns Folders of the packages with code in the bundle
 */
export function stageServer(root: URL, stage: string): Promise<Set<string>> {
  return stageBundle(root, "main.ts", `${stage}/app`);
}

/** Bundles the page and its service worker again, to find the packages whose code they contain. */
export async function listUiPackages(root: URL): Promise<Set<string>> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-ui-inputs-" });
  try {
    const entries = ["main.tsx", "service_worker.ts"].map((name) => fileURLToPath(new URL(`static/src/${name}`, root)));
    const flags = ["--quiet", "--platform", "browser", "--code-splitting", "--outdir", folder];
    await runDeno(Deno.execPath(), ["bundle", ...flags, ...entries], fileURLToPath(root), `bundle "${entries[0]}"`);
    const scripts = await Promise.all((await filesBelow(folder)).map((path) => Deno.readTextFile(path)));
    return new Set(scripts.flatMap((script) => [...listPackageFolders(script)]));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Writes SHA256SUMS in the format of `sha256sum --check`. */
export async function writeChecksums(folder: URL, files: string[]): Promise<void> {
  const lines = await Promise.all(files.map(async (file) => {
    const hash = createHash("sha256").update(await Deno.readFile(new URL(file, folder))).digest("hex");
    return `${hash}  ${file}\n`;
  }));
  await Deno.writeTextFile(new URL("SHA256SUMS", folder), lines.join(""));
}

/** Returns the permission flags of the start task, which the executable also gets. */
export async function startPermissions(root: URL = ROOT): Promise<string[]> {
  const { tasks } = await readDenoConfig(root);
  const flags = /^deno run ((?:--\S+ )+)build\/start\.ts$/.exec(tasks.start)?.[1];
  if (flags === undefined) throw new Error(`Can't read the permissions of the task "start" in deno.json`);
  return flags.trim().split(" ");
}

async function readDenoConfig(root: URL): Promise<{ version: string; unstable: string[]; tasks: { start: string } }> {
  return JSON.parse(await Deno.readTextFile(new URL("deno.json", root)));
}

/**
 * Bundles a file and its Workers, found by `new URL("./x.ts", import.meta.url)`, into the folder. Code is split, so
 * that startup reads only the parts it needs.
 *
 * @returns Folders of the packages with code in the bundle
 */
async function stageBundle(root: URL, entry: string, folder: string): Promise<Set<string>> {
  const pieces = await Deno.makeTempDir({ prefix: "parlor-pieces-" });
  try {
    const flags = ["--quiet", "--platform", "deno", "--code-splitting", "--outdir", pieces];
    await runDeno(Deno.execPath(), ["bundle", ...flags, entry], fileURLToPath(root), `bundle "${entry}"`);
    const packages = new Set<string>();
    const workers = new Set<string>();
    for (const piece of (await filesBelow(pieces)).filter((path) => path.endsWith(".js"))) {
      const staged = await stagePiece(root, piece, folder, entry);
      for (const found of staged.packages) packages.add(found);
      for (const name of staged.workers) workers.add(name);
    }
    for (const name of workers) {
      const inWorker = await stageBundle(root, await findService(root, `${name}.ts`), folder);
      for (const found of inWorker) packages.add(found);
    }
    return packages;
  } finally {
    await Deno.remove(pieces, { recursive: true });
  }
}

/** Copies one file of a bundle into the folder, along with the files it uses. Workers are up to the caller. */
async function stagePiece(
  root: URL,
  path: string,
  folder: string,
  entry: string,
): Promise<{ packages: Set<string>; workers: Set<string> }> {
  const script = await Deno.readTextFile(path);
  const packages = listPackageFolders(script);
  const { text, files } = await stagePackageFiles(root, script, folder);
  for (const [, path] of files) packages.add(findPackageFolder(await Deno.realPath(path))!);
  const workers = new Set<string>();
  const staged = text.replace(/new URL\("([^"]+)", import\.meta\.url\)/g, (found, path: string) => {
    // In the source, the files that read these are in folders of services/; the bundle is flat.
    const embedded = [NOTICES_FILE, CHANGELOG_FILE].find((name) => path.endsWith(`/${name}`));
    if (embedded !== undefined) return `new URL("../${embedded}", import.meta.url)`;
    const isStaged = path.startsWith("../static/dist/");
    if (isStaged || files.has(path.replace(/^\.\/|\.bin$/g, ""))) return found;
    const name = /^\.\/(\w+)\.ts$/.exec(path)?.[1];
    if (name === undefined) throw new Error(`Can't bundle "${entry}": the executable wouldn't contain "${path}"`);
    workers.add(name);
    return `new URL("./${name}.js", import.meta.url)`;
  });
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(`${folder}/${path.slice(path.lastIndexOf("/") + 1)}`, staged);
  return { packages, workers };
}

/**
 * Copies files and folders of packages, which code finds with `import.meta.resolve("package/file.wasm")`, next to the
 * code and replaces their URLs. They are named `.bin`, because the compiler would treat a `.wasm` as a module and resolve its
 * imports.
 *
 * @returns The code, and the paths of the files by their names in the packages
 */
async function stagePackageFiles(
  root: URL,
  code: string,
  folder: string,
): Promise<{ text: string; files: Map<string, URL> }> {
  const files = new Map<string, URL>();
  const text = code.replace(/import\.meta\.resolve\("([^"]+\/([\w.]+))"\)/g, (_found, specifier, name) => {
    files.set(name, new URL(`node_modules/${specifier}`, root));
    return `new URL("./${name}.bin", import.meta.url).href`;
  });
  for (const [name, from] of files) {
    const to = `${folder}/${name}.bin`;
    if ((await Deno.stat(from)).isDirectory) await copyFolder(fileURLToPath(from), to);
    else await Deno.copyFile(from, to);
  }
  return { text, files };
}

/** Returns the path of the only file with that name, since a bundle doesn't keep the folders of its parts. */
async function findService(root: URL, name: string): Promise<string> {
  const found: string[] = [];
  for (const path of await filesBelow(fileURLToPath(new URL("services", root)))) {
    if (path.endsWith(`/${name}`)) found.push(path.slice(fileURLToPath(root).length));
  }
  if (found.length !== 1) throw new Error(`Can't find the Worker "${name}": ${found.length} files have this name`);
  return found[0]!;
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const inside = entries.map(({ name, isDirectory }) =>
    isDirectory ? filesBelow(`${folder}/${name}`) : [`${folder}/${name}`]
  );
  return (await Promise.all(inside)).flat();
}

async function copyFolder(from: string, to: string): Promise<void> {
  for (const path of await filesBelow(from)) {
    const copy = to + path.slice(from.length);
    await Deno.mkdir(copy.slice(0, copy.lastIndexOf("/")), { recursive: true });
    await Deno.copyFile(path, copy);
  }
}

async function runDeno(deno: string, args: string[], cwd: string, what: string): Promise<void> {
  const { code } = await new Deno.Command(deno, { args, cwd, stdin: "null", stdout: "null" }).spawn().status;
  if (code !== 0) throw new Error(`Can't ${what}: deno ended with code ${code}`);
}

if (import.meta.main) {
  const [name = "", ...args] = Deno.args;
  const mode = MODES[name];
  if (mode === undefined) {
    console.error(`Unknown mode "${name}". Modes: ${Object.keys(MODES).join(", ")}`);
    Deno.exit(2);
  }
  try {
    await mode(args);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
}
