/**
 * How many more files and connections the process can open. A Worker that can't open its own would end the process: the
 * runtime panics.
 */
import { AppError } from "../errors.ts";

/** A Worker takes six; the rest is for the files that it opens. */
const WORKER_FILES = 16;

/**
 * Counts how many more files the process could open, up to `most`, by opening them. Takes a few microseconds for each.
 *
 * The runtime can't read the limit itself (`RLIMIT_NOFILE`). Windows has none.
 */
export function countFreeFiles(most: number): number {
  if (Deno.build.os === "windows") return most;
  const opened: Deno.FsFile[] = [];
  try {
    while (opened.length < most) opened.push(Deno.openSync("/dev/null"));
  } catch (error) {
    if (!isOutOfFiles(error)) throw error;
  } finally {
    for (const file of opened) file.close();
  }
  return opened.length;
}

/** @throws {AppError} `not_available` if too few files can be opened for a Worker */
export function assertFilesForWorker(): void {
  if (countFreeFiles(WORKER_FILES) === WORKER_FILES) return;
  throw new AppError(
    "not_available",
    "The server has reached its limit of open files and connections (ulimit -n). Try again later, or raise the limit",
  );
}

/** Returns whether an error says that the process, or the machine, has too many open files. */
function isOutOfFiles(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "EMFILE" || code === "ENFILE";
}
