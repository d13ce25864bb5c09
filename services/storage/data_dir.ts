/** The data directory: its modes, its lock, its folders. What lies in it belongs to the other rooms. */

import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import { type ProcessLock, takeProcessLock } from "./process_lock.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** Name of the lock file. */
const LOCK_FILE_NAME = "lock";

/** Files that only Parlor writes or reads under these names: a folder holding one of them is ours to put right. */
const OWN_FILE_NAMES = ["app.db", "storage-key", "session-key", "credentials.json", "tokens.json", "config.toml"];

/** An opened data directory; this process alone has it. */
export interface DataDir {
  /** Absolute path, without symbolic links. */
  readonly path: string;
  /** Gives the path of something inside: `file("voices", "a.wav")`. */
  file(...names: string[]): string;
  /**
   * Makes a folder inside, 0700, or puts the mode of an existing one right.
   *
   * @param name One path segment.
   * @returns Its path.
   * @throws {AppError} `internal` when something else has that name (a symbolic link too) or it cannot be made.
   */
  ensureFolder(name: string): Promise<string>;
  /** Gives the lock back. */
  close(): void;
}

/**
 * Opens a data directory, made with mode 0700 when missing, and takes its lock.
 *
 * A directory that others may enter is put right when it is empty or already Parlor's; a foreign one is refused, so
 * that a mistyped path does not close somebody's home or /tmp.
 *
 * @throws {AppError} `conflict` when another process holds it, `internal` when it cannot be made, entered or written.
 */
export async function openDataDir(path: string): Promise<DataDir> {
  let root: string;
  try {
    await Deno.mkdir(path, { recursive: true, mode: FOLDER_MODE });
    root = await Deno.realPath(path);
  } catch (cause) {
    throw cannotOpen(path, messageOf(cause), cause);
  }
  await settleRootMode(root);
  const lock = await lockFolder(root);
  return {
    path: root,
    file: (...names) => join(root, ...names),
    async ensureFolder(name) {
      if (name === "" || name === "." || name === ".." || /[/\\\0]/.test(name)) {
        throw new AppError("internal", `Cannot make the folder "${name}" in "${root}": it is no single name`);
      }
      const folder = join(root, name);
      await makeFolder(folder);
      return folder;
    },
    close: () => lock.release(),
  };
}

async function lockFolder(root: string): Promise<ProcessLock> {
  const lockPath = join(root, LOCK_FILE_NAME);
  try {
    const file = await Deno.open(lockPath, { write: true, createNew: true, mode: FILE_MODE });
    file.close();
  } catch (cause) {
    if (!(cause instanceof Deno.errors.AlreadyExists)) throw cannotWrite(root, cause);
    // What is mounted for reading alone would be noticed by the first write of all, long after the start.
    const now = new Date();
    await Deno.utime(lockPath, now, now).catch((reason) => {
      throw cannotWrite(root, reason);
    });
  }
  return takeProcessLock(lockPath);
}

async function settleRootMode(root: string): Promise<void> {
  if (Deno.build.os === "windows") return; // access lists of the user's profile folder stand in for modes
  try {
    const { mode } = await Deno.stat(root);
    if (mode === null || (mode & 0o7077) === 0) return;
    const entries = (await Array.fromAsync(Deno.readDir(root))).map((entry) => entry.name);
    const isFresh = entries.every((name) => name === "lost+found"); // of a file system's own root
    const isOurs = entries.some((name) => OWN_FILE_NAMES.includes(name));
    const isShared = (mode & 0o1000) !== 0; // the sticky bit marks a folder many write to, such as /tmp
    if (isShared || !(isFresh || isOurs)) {
      const found = (mode & 0o7777).toString(8).padStart(4, "0");
      throw cannotOpen(
        root,
        `others may enter it (mode ${found}) and it holds files that are not Parlor's; ` +
          "choose an empty folder, or set its mode to 0700",
      );
    }
    await Deno.chmod(root, FOLDER_MODE);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw cannotOpen(root, messageOf(cause), cause);
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    try {
      await Deno.mkdir(folder, { mode: FOLDER_MODE });
    } catch (cause) {
      if (!(cause instanceof Deno.errors.AlreadyExists)) throw cause;
    }
    const info = await Deno.lstat(folder);
    if (!info.isDirectory) throw new Error("something that is no folder has that name");
    if (Deno.build.os !== "windows" && info.mode !== null && (info.mode & 0o777) !== FOLDER_MODE) {
      await Deno.chmod(folder, FOLDER_MODE);
    }
  } catch (cause) {
    throw new AppError("internal", `Cannot make the folder "${folder}": ${messageOf(cause)}`, { cause });
  }
}

function cannotWrite(root: string, cause: unknown): AppError {
  return cannotOpen(root, `it cannot be written to (${messageOf(cause)})`, cause);
}

function cannotOpen(path: string, found: string, cause?: unknown): AppError {
  return new AppError("internal", `Cannot open the data directory "${path}": ${found}`, { cause });
}
