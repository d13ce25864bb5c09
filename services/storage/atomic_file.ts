/**
 * Reads and writes files: atomic writes (after a crash, a file has either its old or its new content), detection of
 * changes, and large files in chunks.
 */
import { basename, dirname, join } from "node:path";
import { AppError, getErrorMessage } from "../errors.ts";

/** Suffix of a file that is still being written. Leftovers of a crash can be deleted once they can't be in use. */
export const TEMPORARY_ENDING = ".tmp";

/**
 * System error numbers for a full disk, a file size limit and an exceeded quota. Deno only has an error class for the
 * first.
 */
const FULL_ERROR_NUMBERS: Partial<Record<typeof Deno.build.os, number[]>> = {
  linux: [28, 27, 122],
  darwin: [28, 27, 69],
  windows: [112, 39],
};

/** How to write a file. */
export interface WriteFileOptions {
  /** Permission bits; 0600 by default. */
  mode?: number;
  /**
   * Called just before the new content replaces the old. If it throws, the old file stays and the error becomes the
   * cause.
   */
  beforeReplace?: () => void;
  /** UUID in the name of the temporary file; random by default. With a fixed one, the writer can find its leftovers. */
  temporaryId?: string;
}

/**
 * Replaces a file atomically: temporary file in the same folder, fsync, rename, fsync of the folder.
 *
 * When the promise resolves, the new content survives a power failure.
 *
 * @throws {AppError} `storage_full` if the disk is full, otherwise `internal`. No partial file remains.
 */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array,
  options: WriteFileOptions = {},
): Promise<void> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  await writeChunksAtomic(path, [bytes], options);
}

/**
 * Like `writeFileAtomic`, for content that arrives in chunks; holds one chunk at a time.
 *
 * @throws Also an AppError thrown by the source, unchanged.
 */
export async function writeChunksAtomic(
  path: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  options: WriteFileOptions = {},
): Promise<void> {
  const mode = options.mode ?? 0o600;
  const temporary = join(
    dirname(path),
    `.${basename(path)}.${options.temporaryId ?? crypto.randomUUID()}${TEMPORARY_ENDING}`,
  );
  try {
    await writeAll(temporary, chunks, mode);
    options.beforeReplace?.();
    await Deno.rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    // There is nothing to delete after the rename. The name with its UUID can't match another file.
    await Deno.remove(temporary).catch(() => {});
    throw toFileError(`Can't write "${path}"`, cause);
  }
}

/**
 * Reads a file that may not exist.
 *
 * @returns `undefined` only if the file doesn't exist.
 * @throws {AppError} `internal` for any other failure: an unreadable file is never treated as missing.
 */
export async function readFileIfExists(path: string): Promise<Uint8Array | undefined> {
  try {
    return await Deno.readFile(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw toFileError(`Can't read "${path}"`, cause);
  }
}

/**
 * Reports whether a name exists, including a dangling link.
 *
 * @throws {AppError} `internal` if that can't be determined.
 */
export async function pathExists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw toFileError(`Can't access "${path}"`, cause);
  }
}

/** Names of the temporary files of `writeChunksAtomic`: the final name and a UUID. */
const TEMPORARY_NAME = /^\.(.+)\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.tmp$/;

/** A file that `writeChunksAtomic` was writing when its process ended, or is still writing. */
interface TemporaryFile {
  /** Name that the file was to get. */
  finalName: string;
  /** UUID in its name. */
  id: string;
  /** How long ago it was changed, by the clock of the disk. */
  ageMs: number;
}

/** Returns the parts of a temporary file's name; `undefined` for other names. */
export function parseTemporaryName(name: string): Omit<TemporaryFile, "ageMs"> | undefined {
  const [, finalName, id] = TEMPORARY_NAME.exec(name) ?? [];
  return finalName === undefined ? undefined : { finalName, id: id! };
}

/**
 * Removes the temporary files in a folder that a killed process left.
 *
 * @param isLeftover Returns false for files that another process may be writing.
 * @returns Their names.
 * @throws The runtime's errors. A missing folder has none.
 */
export async function removeTemporaryFiles(
  folder: string,
  isLeftover: (file: TemporaryFile) => boolean,
): Promise<string[]> {
  const removed: string[] = [];
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  });
  for (const { name, isFile } of entries) {
    const parts = isFile ? parseTemporaryName(name) : undefined;
    if (parts === undefined) continue;
    const path = join(folder, name);
    const { mtime } = await Deno.lstat(path);
    if (!isLeftover({ ...parts, ageMs: Date.now() - (mtime?.getTime() ?? 0) })) continue;
    await Deno.remove(path);
    removed.push(name);
  }
  return removed;
}

/** Minimum age of leftovers. Younger files without a row may be about to get one; older ones are from a crash. */
export const LEFTOVER_AGE_MS = 60 * 60 * 1000;

/**
 * Removes the files in a folder that nothing refers to and that are older than an hour: leftovers of a crash.
 *
 * @param listUsedNames Returns the names of files with a row. Called after the folder was listed, so that a file that
 *   gets its row in between is either in this list or recent.
 * @throws The runtime's errors.
 */
export async function removeLeftovers(
  folder: string,
  listUsedNames: () => Iterable<string>,
  remove: (name: string) => Promise<void>,
): Promise<void> {
  const found = (await Array.fromAsync(Deno.readDir(folder))).filter((entry) => entry.isFile);
  const usedNames = new Set(listUsedNames());
  for (const { name } of found) {
    // Uses the clock of the disk, which tests don't control.
    const isLeftover = !usedNames.has(name) && await hasChanged(join(folder, name), Date.now() - LEFTOVER_AGE_MS);
    if (isLeftover) await remove(name);
  }
}

/** Reports whether a file was last changed before a time, by the clock of the disk. False if it no longer exists. */
async function hasChanged(path: string, timeMs: number): Promise<boolean> {
  try {
    return ((await Deno.lstat(path)).mtime?.getTime() ?? 0) < timeMs;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/**
 * Syncs a folder, so that its names survive a power failure.
 *
 * @throws The runtime's errors. Does nothing on Windows, which can't sync folders.
 */
export async function syncFolder(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(path);
  await folder.sync();
}

/**
 * Converts a failed file operation to an AppError.
 *
 * @param tried What failed, such as `Can't write "/data/tokens.json"`.
 * @returns `storage_full` for a full disk, an exceeded quota or file size limit; otherwise `internal`.
 */
export function toFileError(tried: string, cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  const errorNumber = Number(/\(os error (\d+)\)/.exec(getErrorMessage(cause))?.[1]);
  const isFull = (FULL_ERROR_NUMBERS[Deno.build.os] ?? []).includes(errorNumber);
  return new AppError(isFull ? "storage_full" : "internal", `${tried}: ${getErrorMessage(cause)}`, { cause });
}

async function writeAll(
  path: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  mode: number,
): Promise<void> {
  // Never readable by others, not even briefly: the mode is set at creation, and a umask can only narrow it.
  using file = await Deno.open(path, { write: true, createNew: true, mode });
  for await (const bytes of chunks) {
    let written = 0;
    while (written < bytes.byteLength) written += await file.write(bytes.subarray(written));
  }
  await file.sync();
}

// Detects changes of a file that is checked for every request.

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

/** Reads the state synchronously, which is faster than using another thread. */
export function readFileState(path: string): FileState {
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

// Reads regular files only. A link in a folder that others can write to could point anywhere.

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
 * @returns `undefined` if there is no regular file with that name.
 * @throws {AppError} `too_large`; `internal` if it can't be read
 */
export async function readPlainFile(path: string): Promise<PlainFile | undefined> {
  try {
    const named = await Deno.lstat(path);
    if (!named.isFile) return undefined;
    using file = await Deno.open(path);
    const info = await file.stat();
    // A link created in between could point elsewhere. A newer version that was renamed to this name is fine.
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
    throw toFileError(`Can't read "${path}"`, cause);
  }
}

/** Returns time and size of a regular file; `undefined` if there is none. @throws {AppError} `internal` */
export async function statPlainFile(path: string): Promise<{ mtimeMs: number; size: number } | undefined> {
  try {
    const { isFile, mtime, size } = await Deno.lstat(path);
    return isFile ? { mtimeMs: mtime?.getTime() ?? 0, size } : undefined;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw toFileError(`Can't access "${path}"`, cause);
  }
}

/** Removes a file that may not exist. @throws {AppError} `internal` */
export async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw toFileError(`Can't remove "${path}"`, cause);
  }
}

const PIECE_BYTES = 256 * 1024;
const FILE_MODE = 0o600;

/** Reads a file in chunks. @throws {AppError} `internal` if it can't be read. */
export async function* streamFilePieces(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  try {
    using file = await Deno.open(path);
    for (;;) {
      const piece = new Uint8Array(PIECE_BYTES);
      const count = await file.read(piece);
      if (count === null) return;
      yield piece.subarray(0, count);
    }
  } catch (cause) {
    throw toFileError(`Can't read "${path}"`, cause);
  }
}

/**
 * Writes a new file chunk by chunk; the sender waits for the disk. The file isn't synced: use `writeChunksAtomic` for
 * files that must survive.
 *
 * @throws {AppError} `storage_full`, `internal`; errors of `pieces`, unchanged.
 */
export async function writePieces(
  path: string,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  using file = await Deno.open(path, { createNew: true, write: true, mode: FILE_MODE });
  for await (const piece of pieces) {
    try {
      for (let at = 0; at < piece.length;) at += await file.write(piece.subarray(at));
    } catch (cause) {
      throw toFileError(`Can't write "${path}"`, cause);
    }
  }
}

/** A file that can be read at any position: an open file, or bytes in memory. */
export interface RandomAccessFile {
  stat(): Promise<{ size: number }>;
  seek(offset: number, whence: Deno.SeekMode): Promise<number>;
  /** @returns The number of bytes read; `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
}

/** Reads a number of bytes at a position; `undefined` if the file ends earlier. */
export async function readBytesAt(
  file: RandomAccessFile,
  at: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  await file.seek(at, Deno.SeekMode.Start);
  const bytes = new Uint8Array(length);
  for (let have = 0; have < length;) {
    const count = await file.read(bytes.subarray(have));
    if (count === null) return undefined;
    have += count;
  }
  return bytes;
}

/** Concatenates chunks into a new buffer. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
