/**
 * The built page for tests: bundled once, and again only when what it is made from has changed. Nothing else of the tests
 * writes static/dist, so that runs beside each other, and servers in processes of their own, can rely on it.
 */
import { createHash } from "node:crypto";
import { buildUi } from "../../build.ts";

const ROOT = new URL("../../", import.meta.url);
const KEPT = new URL("node_modules/.cache/parlor-ui/", ROOT);

/** Beside static/src: what bundles it, how it is set up, and the versions of the packages inside. */
const OTHER_SOURCES = ["build.ts", "build/shell.ts", "deno.json", "deno.lock"];

/** Where a page is built, and from what. */
export interface UiFolders {
  /** Folder with static/src and what else goes into the page, ending with a slash. */
  root: URL;
  /** Folder that gets the page, ending with a slash. */
  dist: URL;
  /** File that remembers what was built there. */
  stamp: URL;
}

/**
 * Sees to it that the page is built as its sources are now: the released one in static/dist, where servers find it, or
 * the developers' with every component in every state in a folder of its own.
 *
 * Processes may ask at the same time: one builds, the others wait for it.
 *
 * @returns Path of the folder.
 */
export async function builtUi({ isDev = false } = {}): Promise<string> {
  const name = isDev ? "developers" : "released";
  const dist = isDev ? new URL("developers/", KEPT) : new URL("static/dist/", ROOT);
  await Deno.mkdir(KEPT, { recursive: true });
  using lock = await Deno.open(new URL(`${name}.lock`, KEPT), { create: true, write: true });
  await lock.lock(true);
  await buildIfChanged({ root: ROOT, dist, stamp: new URL(`${name}.stamp`, KEPT) }, isDev);
  return dist.pathname;
}

/** Builds unless the folder holds just what would come out. @returns Whether it built. */
export async function buildIfChanged({ root, dist, stamp }: UiFolders, isDev: boolean): Promise<boolean> {
  const sources = await hashOfSources(root);
  const hashOfPage = async () => await hashOfFiles(await filesBelow(dist), dist);
  const written = await Deno.readTextFile(stamp).catch(() => undefined);
  if (written === `${sources} ${await hashOfPage()}`) return false;
  // Compressing takes most of the time, and no test asks a developers' page for it.
  await buildUi({ root, dist, isDev, isPlain: isDev });
  const temporary = new URL(`${stamp.href}.tmp`);
  await Deno.writeTextFile(temporary, `${sources} ${await hashOfPage()}`);
  await Deno.rename(temporary, stamp);
  return true;
}

async function hashOfSources(root: URL): Promise<string> {
  const paths = await filesBelow(new URL("static/src/", root));
  return await hashOfFiles([...paths.map((path) => `static/src/${path}`), ...OTHER_SOURCES], root, Deno.version.deno);
}

async function hashOfFiles(paths: readonly string[], folder: URL, more = ""): Promise<string> {
  const hash = createHash("sha256").update(more);
  for (const path of paths) {
    const content = await Deno.readFile(new URL(path, folder));
    hash.update(`\0${path}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** Gives the paths of the files in a folder and below, in order; none where there is no folder. */
async function filesBelow(folder: URL): Promise<string[]> {
  const paths: string[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(folder)) {
      if (!isDirectory) paths.push(name);
      else for (const path of await filesBelow(new URL(`${name}/`, folder))) paths.push(`${name}/${path}`);
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return paths.sort();
}
