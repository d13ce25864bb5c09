/** Tells whether a file changed since the last look, for what has to be known at every request. */

/** How a file looked. */
export interface FileState {
  /** Changes whenever the file does; `"absent"` only when there surely is none, `"unknown"` when that cannot be seen. */
  id: string;
  /**
   * False right after a change: a second one in the same tick of the file system's clock could look the same, so what was
   * read now must be read again.
   */
  isSettled: boolean;
}

/** Twice the coarsest tick of the kernels we run on; NTFS and ext4 keep finer times than that. */
const SETTLED_AFTER_MS = 20;

/** Looks at once: the way to another thread and back takes longer than the look. */
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
