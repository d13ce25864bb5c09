/**
 * Replaces many files of a data directory as one step: everything new is put beside the old, one marker says that it is
 * whole, and from then on the change is carried through, at the next start where a kill interrupted it.
 */
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import { fileError, fileExists, readFileIfExists, syncFolder, writeFileAtomic } from "./atomic_file.ts";

/** Folder in the data directory; nothing else may use the name. */
export const INCOMING_FOLDER = "incoming";
const READY = "ready";
const FOLDER_MODE = 0o700;

/** What the marker says. */
interface Plan {
  /** Names in the data directory that get a new file or folder. */
  placed: string[];
  /** Names there that go away. */
  removed: string[];
  /** Name of the folder in the data directory that keeps what was there; without it that is deleted. */
  keepOldIn?: string;
}

/** A replacement that is being prepared. */
export interface Incoming {
  /** Folder for the new files, laid out as in the data directory. */
  readonly folder: string;
  /**
   * Carries the replacement through; a kill before it leaves everything old, a kill in it is made good by `finishIncoming`.
   *
   * @param removed Names in the data directory that have no successor and go away.
   */
  commit(removed: readonly string[], keepOldIn?: string): Promise<void>;
}

/** A look at each step, for tests that end there. */
export type StepWatch = (step: string) => void;

/** Prepares a replacement; the caller holds the directory's lock. What an earlier one left unfinished is dropped. */
export async function openIncoming(dataDir: string, watch: StepWatch = () => {}): Promise<Incoming> {
  await finishIncoming(dataDir, watch);
  const root = join(dataDir, INCOMING_FOLDER);
  const folder = join(root, "new");
  try {
    await Deno.mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  } catch (cause) {
    throw fileError(`Cannot make the folder "${folder}"`, cause);
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
  };
}

/**
 * Carries through what was ready, or drops what never was. To be called with the lock held, before anything is read.
 *
 * @throws {AppError} `internal` when that fails; nothing may be opened then, since the files are of two states.
 */
export async function finishIncoming(dataDir: string, watch: StepWatch = () => {}): Promise<void> {
  const root = join(dataDir, INCOMING_FOLDER);
  const marker = await readFileIfExists(join(root, READY));
  try {
    if (marker !== undefined) await carryThrough(dataDir, root, JSON.parse(new TextDecoder().decode(marker)), watch);
    await removeTree(root);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      "internal",
      `Cannot finish replacing the files of "${dataDir}": ${messageOf(cause)}; the next start tries again`,
      { cause },
    );
  }
}

/** Each step may have been taken before: where the new file is gone from its folder, it stands in its place. */
async function carryThrough(dataDir: string, root: string, plan: Plan, watch: StepWatch): Promise<void> {
  const old = join(root, "old");
  await Deno.mkdir(old, { recursive: true, mode: FOLDER_MODE });
  for (const name of plan.removed) {
    await moveIfThere(join(dataDir, name), join(old, name));
    watch(`removed ${name}`);
  }
  for (const name of plan.placed) {
    const fresh = join(root, "new", name);
    if (!await fileExists(fresh)) continue;
    await moveIfThere(join(dataDir, name), join(old, name));
    watch(`cleared ${name}`);
    await Deno.rename(fresh, join(dataDir, name));
    watch(`placed ${name}`);
  }
  await syncFolder(dataDir);
  if (plan.keepOldIn !== undefined && !await fileExists(join(dataDir, plan.keepOldIn))) {
    await moveIfThere(old, join(dataDir, plan.keepOldIn));
    await syncFolder(dataDir);
  }
  // The marker goes first: what remains is then only to be deleted.
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

async function moveIfThere(from: string, to: string): Promise<void> {
  await Deno.rename(from, to).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

async function removeTree(path: string): Promise<void> {
  await Deno.remove(path, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}
