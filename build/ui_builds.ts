/**
 * Builds the page once per state of its sources. Every build has its own folder in static/dist, which is renamed into
 * place when it's complete; routes/ui.ts reads it. See docs/decisions/0032 for the reasons.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { filesBelow } from "./files.ts";
import { CURRENT_FILE, IN_USE_FILE } from "../routes/ui.ts";
import type { BuiltFile } from "./ui.ts";

const ROOT = new URL("../", import.meta.url);

/**
 * Sources of the page besides static/src: the bundling, its settings, the versions of the packages, and the modules that
 * the server loads, too.
 */
const OTHER_SOURCES = [
  "build/ui.ts",
  "deno.json",
  "deno.lock",
  "services/http/address_scheme.ts",
  "services/json/search_fold.ts",
];

/** Locked exclusively by the process that builds. */
const BUILD_LOCK = "build.lock";

/**
 * File in every build with the hash of its other files, which reveals a build that was changed or truncated by a power
 * failure.
 */
const CONTENTS_FILE = "contents.sha256";

/** Suffix of folders with unfinished builds. */
const UNFINISHED = ".tmp";

/**
 * Number of builds to keep, so that switching between branches, or between `start` and `dev`, doesn't rebuild every
 * time.
 */
const KEPT_BUILDS = 3;

/** Options that select the page. */
export interface UiOptions {
  /** Whether to build readable code with its source map, and no compressed copies. */
  isDev: boolean;
  /** Folder with static/src and the other sources of the page, ending with a slash. */
  root?: URL;
  /** Folder of the builds, ending with a slash; static/dist in `root` by default. */
  builds?: URL;
}

/** A page that matches its sources. */
export interface EnsuredUi {
  path: string;
  /** The files, if this call built them. */
  files?: BuiltFile[];
}

/** Returns the path of the current build if it matches the sources. Takes no lock and writes nothing. */
export async function findUi(options: UiOptions): Promise<string | undefined> {
  const { root, builds, isDev } = withDefaults(options);
  const [key, name] = await Promise.all([
    hashSources(root, isDev),
    Deno.readTextFile(new URL(CURRENT_FILE, builds)).catch(() => undefined),
  ]);
  return name?.startsWith(`${key}-`) && await isWhole(builds, name) ? pathOf(builds, name) : undefined;
}

/**
 * Makes the build that matches the sources the current one, after building it if necessary.
 *
 * Several processes may call this at the same time: one builds, the others wait. Builds in use by a server are kept;
 * older ones are deleted. A killed process doesn't change the current build.
 */
export async function ensureUi(options: UiOptions): Promise<EnsuredUi> {
  const current = await findUi(options);
  if (current !== undefined) return { path: current };
  const { builds } = withDefaults(options);
  await Deno.mkdir(builds, { recursive: true });
  using lock = await Deno.open(new URL(BUILD_LOCK, builds), { create: true, write: true });
  await lock.lock(true);
  const { name, files } = await findOrBuild(options);
  const temporary = new URL(`${CURRENT_FILE}${UNFINISHED}`, builds);
  await Deno.writeTextFile(temporary, name);
  await Deno.rename(temporary, new URL(CURRENT_FILE, builds));
  await removeOld(builds, name);
  return { path: pathOf(builds, name), files };
}

async function findOrBuild(options: UiOptions): Promise<{ name: string; files?: BuiltFile[] }> {
  const { root, builds, isDev } = withDefaults(options);
  for (;;) {
    const key = await hashSources(root, isDev);
    for await (const { name } of Deno.readDir(builds)) {
      if (name.startsWith(`${key}-`) && await isWhole(builds, name)) return { name };
    }
    // Always a new name: a server may still be reading a damaged build of the same sources.
    const name = `${key}-${crypto.randomUUID().slice(0, 8)}`;
    const folder = new URL(`${name}${UNFINISHED}/`, builds);
    await Deno.mkdir(folder);
    const { buildUi } = await import("./ui.ts");
    const files = await buildUi({ root, dist: folder, isDev, isPlain: isDev });
    // A source that was saved during the build may or may not be part of it.
    if (key !== await hashSources(root, isDev)) continue;
    await Deno.writeTextFile(new URL(IN_USE_FILE, folder), "");
    await Deno.writeTextFile(new URL(CONTENTS_FILE, folder), await hashContents(folder));
    await Deno.rename(folder, new URL(name, builds));
    return { name, files };
  }
}

/**
 * Deletes unfinished builds, and all but the newest builds that no server is using. Failed deletions are retried next
 * time.
 */
async function removeOld(builds: URL, current: string): Promise<void> {
  const old: { name: string; builtAtMs: number }[] = [];
  for await (const { name } of Deno.readDir(builds)) {
    if (name === BUILD_LOCK || name === CURRENT_FILE || name === current) continue;
    const stat = await Deno.stat(new URL(`${name}/${CONTENTS_FILE}`, builds)).catch(() => undefined);
    const isFinished = stat !== undefined && !name.endsWith(UNFINISHED);
    old.push({ name, builtAtMs: isFinished ? stat.mtime?.getTime() ?? 0 : -Infinity });
  }
  old.sort((a, b) => b.builtAtMs - a.builtAtMs);
  for (const [i, { name, builtAtMs }] of old.entries()) {
    if (i < KEPT_BUILDS - 1 && builtAtMs !== -Infinity) continue;
    const path = new URL(name, builds);
    if (await isFree(new URL(`${name}/`, builds))) await Deno.remove(path, { recursive: true }).catch(() => {});
  }
}

/** Makes a build unusable unless a server is using it, so that none opens it while it is being deleted. */
async function isFree(folder: URL): Promise<boolean> {
  let lock: Deno.FsFile;
  try {
    lock = await Deno.open(new URL(IN_USE_FILE, folder), { read: true, write: true });
  } catch (error) {
    return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
  }
  using file = lock;
  if (!await file.tryLock(true)) return false;
  await Deno.remove(new URL("index.html", folder)).catch(() => {});
  return true;
}

async function isWhole(builds: URL, name: string): Promise<boolean> {
  const folder = new URL(`${name}/`, builds);
  const written = await Deno.readTextFile(new URL(CONTENTS_FILE, folder)).catch(() => undefined);
  return written !== undefined && !name.endsWith(UNFINISHED) && written === await hashContents(folder);
}

async function hashContents(folder: URL): Promise<string> {
  const paths = await filesBelow(folder);
  return await hashFiles(paths.filter((path) => path !== IN_USE_FILE && path !== CONTENTS_FILE), folder);
}

async function hashSources(root: URL, isDev: boolean): Promise<string> {
  const paths = (await filesBelow(new URL("static/src/", root))).map((path) => `static/src/${path}`);
  return (await hashFiles([...paths, ...OTHER_SOURCES], root, `${Deno.version.deno} ${isDev}`)).slice(0, 16);
}

async function hashFiles(paths: readonly string[], folder: URL, more = ""): Promise<string> {
  const hash = createHash("sha256").update(more);
  const contents = await Promise.all(paths.map((path) => Deno.readFile(new URL(path, folder))));
  for (const [i, content] of contents.entries()) hash.update(`\0${paths[i]}\0${content.length}\0`).update(content);
  return hash.digest("hex");
}

function pathOf(builds: URL, name: string): string {
  return fileURLToPath(new URL(name, builds));
}

function withDefaults(
  { root = ROOT, builds = new URL("static/dist/", root), isDev }: UiOptions,
): Required<UiOptions> {
  return { root, builds, isDev };
}
