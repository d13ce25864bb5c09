/** Whole-file writes that a crash leaves either old or new. What the files mean is up to the rooms that own them. */

import { basename, dirname, join } from "node:path";
import { AppError, messageOf } from "../errors.ts";

/** Ending of a file that is still being written; a leftover of a crash may be removed at any start. */
export const TEMPORARY_ENDING = ".tmp";

/** System error numbers of a full disk, a met file size limit, an exceeded quota; Deno names only the first of them. */
const FULL_ERROR_NUMBERS: Partial<Record<typeof Deno.build.os, number[]>> = {
  linux: [28, 27, 122],
  darwin: [28, 27, 69],
  windows: [112, 39],
};

/** How a file is to be written. */
export interface WriteFileOptions {
  /** Permission bits, 0600 unless told. */
  mode?: number;
  /** A last look before the new content takes its place; what it throws becomes the cause of the failure, and the old file stands. */
  beforeReplace?: () => void;
}

/**
 * Replaces a file as one step: temporary file in the same folder, fsync, rename, fsync of the folder.
 *
 * When the promise resolves, the new content survives a power cut; until then the old file stands.
 *
 * @throws {AppError} `storage_full` when the disk is, `internal` for any other failure; nothing half-written remains.
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
 * Does the same with content that comes in pieces, none of which is kept.
 *
 * @throws Also whatever the source of the pieces throws, if that is an AppError as it is.
 */
export async function writeChunksAtomic(
  path: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  options: WriteFileOptions = {},
): Promise<void> {
  const mode = options.mode ?? 0o600;
  const temporary = join(dirname(path), `.${basename(path)}.${crypto.randomUUID()}${TEMPORARY_ENDING}`);
  try {
    await writeWhole(temporary, chunks, mode);
    options.beforeReplace?.();
    await Deno.rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    // After the rename there is nothing to remove, and the name is too random to hit anything else.
    await Deno.remove(temporary).catch(() => {});
    throw fileError(`Cannot write "${path}"`, cause);
  }
}

/**
 * Reads a file that may not be there yet.
 *
 * @returns `undefined` only when there is no such file.
 * @throws {AppError} `internal` for every other failure, so that an unreadable file is never taken for an absent one.
 */
export async function readFileIfExists(path: string): Promise<Uint8Array | undefined> {
  try {
    return await Deno.readFile(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw fileError(`Cannot read "${path}"`, cause);
  }
}

/**
 * Says whether anything has this name, a dangling link included.
 *
 * @throws {AppError} `internal` when that cannot be seen.
 */
export async function fileExists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw fileError(`Cannot look at "${path}"`, cause);
  }
}

/**
 * Makes the names inside a folder survive a power cut.
 *
 * @throws What the runtime throws; nothing on Windows, where folders cannot be synced.
 */
export async function syncFolder(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(path);
  await folder.sync();
}

/**
 * Turns a failed file operation into an error for the outside.
 *
 * @param tried What was tried on what, as in `Cannot write "/data/tokens.json"`.
 * @returns `storage_full` for a full disk, an exceeded quota or file size limit, else `internal`.
 */
export function fileError(tried: string, cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  const errorNumber = Number(/\(os error (\d+)\)/.exec(messageOf(cause))?.[1]);
  const isFull = (FULL_ERROR_NUMBERS[Deno.build.os] ?? []).includes(errorNumber);
  return new AppError(isFull ? "storage_full" : "internal", `${tried}: ${messageOf(cause)}`, { cause });
}

async function writeWhole(
  path: string,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  mode: number,
): Promise<void> {
  // Never opened wider than it ends: the mode is given at creation and a umask can only narrow it.
  using file = await Deno.open(path, { write: true, createNew: true, mode });
  for await (const bytes of chunks) {
    let written = 0;
    while (written < bytes.byteLength) written += await file.write(bytes.subarray(written));
  }
  await file.sync();
}
