/** Files in card folders: plain ones only, since a link in a folder that others may write to could lead anywhere. */
import { AppError } from "../errors.ts";
import { fileError } from "./atomic_file.ts";

/** A file as it was at one moment. */
export interface PlainFile {
  bytes: Uint8Array<ArrayBuffer>;
  mtimeMs: number;
  size: number;
}

/** Largest card file that is read; uploads are smaller, files of other programs may be anything. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

/**
 * Reads a file whole, as one version of it.
 *
 * @returns `undefined` when there is no plain file of that name.
 * @throws {AppError} `too_large`; `internal` when it cannot be read.
 */
export async function readPlainFile(path: string): Promise<PlainFile | undefined> {
  try {
    const named = await Deno.lstat(path);
    if (!named.isFile) return undefined;
    using file = await Deno.open(path);
    const info = await file.stat();
    // A link put there in between would have led elsewhere; a newer version put there by a rename is as good.
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
    throw fileError(`Cannot read "${path}"`, cause);
  }
}

/** Gives time and size of a plain file, `undefined` when there is none of that name. @throws {AppError} `internal` */
export async function statPlainFile(path: string): Promise<{ mtimeMs: number; size: number } | undefined> {
  try {
    const { isFile, mtime, size } = await Deno.lstat(path);
    return isFile ? { mtimeMs: mtime?.getTime() ?? 0, size } : undefined;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw fileError(`Cannot look at "${path}"`, cause);
  }
}

/** Removes a file that may be gone already. @throws {AppError} `internal` */
export async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Cannot remove "${path}"`, cause);
  }
}
