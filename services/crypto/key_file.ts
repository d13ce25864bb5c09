/** Files that hold a secret key: private (0600), created atomically, never overwritten. */

import { AppError, messageOf } from "../errors.ts";
import { randomBytes, randomToken } from "./random.ts";

/** Length of the key in every such file. */
export const KEY_BYTES = 32;

/** A key file has at most 64 hex digits and a newline. A much longer file is something else. */
const MAX_KEY_FILE_BYTES = 1024;

/**
 * Reads a key file, at most 1 KiB.
 *
 * @param what Name of the key in errors: `"storage key"`.
 * @returns `undefined` if there is no such file.
 * @throws {AppError} `internal` if the file can't be read.
 */
export async function readKeyFile(path: string, what: string): Promise<Uint8Array | undefined> {
  try {
    using file = await Deno.open(path);
    const buffer = new Uint8Array(MAX_KEY_FILE_BYTES);
    let length = 0;
    while (length < buffer.byteLength) {
      const count = await file.read(buffer.subarray(length));
      if (count === null) break;
      length += count;
    }
    return buffer.subarray(0, length);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw new AppError("internal", `Can't read the ${what} from "${path}": ${messageOf(cause)}`, { cause });
  }
}

/**
 * Reports whether a key file exists.
 *
 * @throws {AppError} `internal` if it isn't a regular file, or if other users can read it.
 */
export async function isPrivateFile(path: string, what: string): Promise<boolean> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw new AppError("internal", `Can't read the ${what} from "${path}": ${messageOf(cause)}`, { cause });
  }
  if (!info.isFile) {
    throw new AppError("internal", `Can't use "${path}" as ${what}: not a regular file`);
  }
  if (Deno.build.os !== "windows" && info.mode !== null && (info.mode & 0o777) !== 0o600) {
    const mode = (info.mode & 0o777).toString(8).padStart(4, "0");
    throw new AppError(
      "internal",
      `Can't use "${path}" as ${what}: its mode is ${mode} but must be 0600, because other users could have read it`,
    );
  }
  return true;
}

/**
 * Creates a key file atomically: writes a temporary file and hard-links it to the final name. If another process
 * created the file first, that file stays.
 *
 * @throws {AppError} `internal`
 */
export async function createKeyFile(path: string, what: string): Promise<void> {
  const temporary = `${path}.${randomToken(6)}.tmp`;
  try {
    await writeNewFile(temporary, randomBytes(KEY_BYTES));
    try {
      await Deno.link(temporary, path); // never replaces a key that another process created first
    } catch (cause) {
      if (cause instanceof Deno.errors.AlreadyExists) return;
      // The file system has no hard links. The process lock prevents a concurrent start.
      await writeNewFile(path, await Deno.readFile(temporary));
    }
  } catch (cause) {
    throw new AppError("internal", `Can't create the ${what} "${path}": ${messageOf(cause)}`, { cause });
  } finally {
    await Deno.remove(temporary).catch(() => {});
  }
  await syncFolderOf(path);
}

async function writeNewFile(path: string, content: Uint8Array): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const count = await file.write(content);
  if (count !== content.byteLength) throw new Error(`wrote only ${count} of ${content.byteLength} bytes`);
  await file.sync();
}

async function syncFolderOf(path: string): Promise<void> {
  if (Deno.build.os === "windows") return; // Windows can't open a folder
  using folder = await Deno.open(path.slice(0, path.lastIndexOf("/")) || "/");
  await folder.sync();
}
