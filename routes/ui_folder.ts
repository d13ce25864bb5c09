/**
 * Finds the built page in static/dist, which holds one folder per build and the file `current` with the name of the newest.
 * build/ui_builds.ts writes them; docs/decisions/0032 has the reasons.
 */

/** Where the builds are; inside the executable the same path leads to the one it carries. */
const UI_BUILDS = `${import.meta.dirname}/../static/dist`;

/** Holds the name of the build that a server opens when it starts. */
export const CURRENT_FILE = "current";

/** Part of every build: a server keeps it locked while it serves the build, so that no cleanup removes it. */
export const IN_USE_FILE = "in_use.lock";

/** A build that stays on disk until it's disposed of. */
export interface OpenUiFolder extends Disposable {
  /** Path of the folder; without a page when nothing has been built. */
  readonly path: string;
}

/**
 * Opens the current build for a server, which serves the same one until it stops: a newer page could need a newer API.
 *
 * @param builds Path of static/dist.
 */
export async function openUiFolder(builds = UI_BUILDS): Promise<OpenUiFolder> {
  for (;;) {
    const path = await findUiFolder(builds);
    const lock = await lockForUse(path);
    // Another process may have built a newer page, and removed this one, before the lock was ours.
    if (await isFile(`${path}/index.html`) || await findUiFolder(builds) === path) {
      return { path, [Symbol.dispose]: () => lock?.close() };
    }
    lock?.close();
  }
}

/** Returns the path of the current build, or of static/dist itself when nothing has been built. */
export async function findUiFolder(builds = UI_BUILDS): Promise<string> {
  try {
    return `${builds}/${await Deno.readTextFile(`${builds}/${CURRENT_FILE}`)}`;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return builds;
    throw error;
  }
}

/** Shares the lock of a build. Without one, for example on a network drive, only a cleanup of that moment matters. */
async function lockForUse(path: string): Promise<Deno.FsFile | undefined> {
  // Nobody builds inside an executable, whose files can't be locked.
  if (Deno.build.standalone) return undefined;
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(`${path}/${IN_USE_FILE}`);
    await file.lock(false);
    return file;
  } catch {
    file?.close();
    return undefined;
  }
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then(({ isFile }) => isFile, () => false);
}
