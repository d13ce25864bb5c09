/** Detects changes of a file that is checked on every request. */

/** State of a file at one moment. */
export interface FileState {
  /**
   * Changes whenever the file does. `"absent"` only if there is certainly no file; `"unknown"` if that can't be
   * determined.
   */
  id: string;
  /**
   * False right after a change. A second change in the same tick of the file system's clock could look the same, so
   * content read now must be read again.
   */
  isSettled: boolean;
}

/** Twice the coarsest clock tick of supported kernels; NTFS and ext4 have finer timestamps. */
const SETTLED_AFTER_MS = 20;

/** Reads the state synchronously, which is faster than a trip to another thread. */
export function fileState(path: string): FileState {
  try {
    const { isFile, ino, size, mode, mtime } = Deno.lstatSync(path);
    const changedAtMs = mtime?.getTime() ?? 0;
    return {
      id: `${isFile}:${ino}:${size}:${mode}:${changedAtMs}`,
      isSettled: Math.abs(Date.now() - changedAtMs) > SETTLED_AFTER_MS,
    };
  } catch (error) {
    return error instanceof Deno.errors.NotFound
      ? { id: "absent", isSettled: true }
      : { id: "unknown", isSettled: false };
  }
}
