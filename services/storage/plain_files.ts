/** Reads regular files only. A link in a folder that others can write to could point anywhere. */
import { AppError } from "../errors.ts";
import { fileError } from "./atomic_file.ts";

/** Content of a file at one moment. */
export interface PlainFile {
  bytes: Uint8Array<ArrayBuffer>;
  mtimeMs: number;
  size: number;
}

/** Maximum file size. Uploads are smaller, but files of other programs aren't limited. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

/**
 * Reads a whole file, consistently.
 *
 * @returns `undefined` if there is no regular file of that name.
 * @throws {AppError} `too_large`; `internal` if it can't be read
 */
export async function readPlainFile(path: string): Promise<PlainFile | undefined> {
  try {
    const named = await Deno.lstat(path);
    if (!named.isFile) return undefined;
    using file = await Deno.open(path);
    const info = await file.stat();
    // A link created in between could point elsewhere. A newer version renamed into place is fine.
    if (info.ino !== named.ino && !(await Deno.lstat(path)).isFile) return undefined;
    if (info.size > MAX_FILE_BYTES) {
      throw new AppError("too_large", `The card file is larger than ${MAX_FILE_BYTES} bytes`);
    }
    const bytes = new Uint8Array(info.size);
    let at = 0;
    while (at < bytes.length) {
      const count = await file.read(bytes.subarray(at));
      if (count === null) break;
      at += count;
    }
    return {
      bytes: at === bytes.length ? bytes : bytes.slice(0, at),
      mtimeMs: info.mtime?.getTime() ?? 0,
      size: info.size,
    };
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw fileError(`Can't read "${path}"`, cause);
  }
}

/** Returns time and size of a regular file; `undefined` if there is none. @throws {AppError} `internal` */
export async function statPlainFile(path: string): Promise<{ mtimeMs: number; size: number } | undefined> {
  try {
    const { isFile, mtime, size } = await Deno.lstat(path);
    return isFile ? { mtimeMs: mtime?.getTime() ?? 0, size } : undefined;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw fileError(`Can't look at "${path}"`, cause);
  }
}

/** Removes a file that may not exist. @throws {AppError} `internal` */
export async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Can't remove "${path}"`, cause);
  }
}
