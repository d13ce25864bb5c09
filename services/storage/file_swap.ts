/**
 * Replaces many files of a data directory as one step. The new files are prepared next to the old; a marker file then
 * commits the replacement, which the next start completes if the process is killed.
 */
import { join } from "node:path";
import { AppError, getErrorMessage } from "../errors.ts";
import { pathExists, readFileIfExists, syncFolder, toFileError, writeFileAtomic } from "./atomic_file.ts";

/** Name of the folder in the data directory. Nothing else may use it. */
export const INCOMING_FOLDER = "incoming";
const READY = "ready";
const FOLDER_MODE = 0o700;

/** Content of the marker file. */
interface Plan {
  /** Names in the data directory that get a new file or folder. */
  placed: string[];
  /** Names that are deleted. */
  removed: string[];
  /** Name of the folder in the data directory that receives the old files; without it, they're deleted. */
  keepOldIn?: string;
}

/** A replacement being prepared. */
export interface Incoming {
  /** Folder for the new files, with the layout of the data directory. */
  readonly folder: string;
  /**
   * Commits the replacement. If the process is killed before, the old files stay; if it's killed during the commit,
   * `finishIncoming` completes it.
   *
   * @param removed Names in the data directory to remove without a replacement.
   */
  commit(removed: readonly string[], keepOldIn?: string): Promise<void>;
  /** Deletes the new files. Call it only before `commit`. */
  discard(): Promise<void>;
}

/** Called at each step. Tests use it to interrupt the replacement. */
export type StepWatch = (step: string) => void;

/** Prepares a replacement. The caller holds the directory's lock. Deletes leftovers of an earlier attempt. */
export async function openIncoming(dataDir: string, watch: StepWatch = () => {}): Promise<Incoming> {
  await finishIncoming(dataDir, watch);
  const root = join(dataDir, INCOMING_FOLDER);
  const folder = join(root, "new");
  try {
    await Deno.mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  } catch (cause) {
    throw toFileError(`Can't create the folder "${folder}"`, cause);
  }
  return {
    folder,
    async commit(removed, keepOldIn) {
      const placed = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
      await syncTree(folder);
      await syncFolder(root);
      await syncFolder(dataDir);
      watch("prepared");
      const plan: Plan = { placed, removed: removed.filter((name) => !placed.includes(name)), keepOldIn };
      await writeFileAtomic(join(root, READY), JSON.stringify(plan));
      watch("ready");
      await finishIncoming(dataDir, watch);
    },
    discard: () => removeTree(root),
  };
}

/**
 * Completes a committed replacement, or discards one that wasn't committed. Call it with the lock held, before anything
 * is read.
 *
 * @throws {AppError} `internal` if it fails. Don't open anything then: files are in mixed states.
 */
export async function finishIncoming(dataDir: string, watch: StepWatch = () => {}): Promise<void> {
  const root = join(dataDir, INCOMING_FOLDER);
  const marker = await readFileIfExists(join(root, READY));
  try {
    if (marker !== undefined) await completeSwap(dataDir, root, JSON.parse(new TextDecoder().decode(marker)), watch);
    await removeTree(root);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      "internal",
      `Can't finish replacing the files of "${dataDir}": ${getErrorMessage(cause)}. The next start will try again`,
      { cause },
    );
  }
}

/**
 * Completes a replacement. Any step may already have run: if the new file isn't in its folder, it's already in place.
 */
async function completeSwap(dataDir: string, root: string, plan: Plan, watch: StepWatch): Promise<void> {
  const old = join(root, "old");
  await Deno.mkdir(old, { recursive: true, mode: FOLDER_MODE });
  for (const name of plan.removed) {
    await moveIfExists(join(dataDir, name), join(old, name));
    watch(`removed ${name}`);
  }
  for (const name of plan.placed) {
    const fresh = join(root, "new", name);
    if (!await pathExists(fresh)) continue;
    await moveIfExists(join(dataDir, name), join(old, name));
    watch(`cleared ${name}`);
    await Deno.rename(fresh, join(dataDir, name));
    watch(`placed ${name}`);
  }
  await syncFolder(dataDir);
  if (plan.keepOldIn !== undefined && !await pathExists(join(dataDir, plan.keepOldIn))) {
    await moveIfExists(old, join(dataDir, plan.keepOldIn));
    await syncFolder(dataDir);
  }
  // Delete the marker first: the rest is only cleanup.
  await Deno.remove(join(root, READY));
  await syncFolder(root);
  watch("done");
}

async function syncTree(folder: string): Promise<void> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) await syncTree(path);
    else {
      using file = await Deno.open(path, { read: true, write: true });
      await file.sync();
    }
  }
  await syncFolder(folder);
}

async function moveIfExists(from: string, to: string): Promise<void> {
  await Deno.rename(from, to).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

async function removeTree(path: string): Promise<void> {
  await Deno.remove(path, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}
