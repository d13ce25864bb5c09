/** Files that hold a secret key: private, whole from their first moment, never overwritten. What the keys are for is up to others. */

import { AppError, messageOf } from "../errors.ts";
import { randomBytes, randomToken } from "./random.ts";

/** Length of every key kept in such a file. */
export const KEY_BYTES = 32;

/** A key file is 64 hex digits and a line end at most; anything much longer is some other file. */
const MAX_KEY_FILE_BYTES = 1024;

/**
 * Reads a key file, up to more bytes than any key has.
 *
 * @param what Named in errors: `"storage key"`.
 * @returns `undefined` when there is no such file.
 * @throws {AppError} `internal` when it cannot be read.
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
    throw new AppError("internal", `Cannot read the ${what} from "${path}": ${messageOf(cause)}`, { cause });
  }
}

/**
 * Says whether a key file is there.
 *
 * @throws {AppError} `internal` when it is something that must not be used: no regular file, or one open to others.
 */
export async function isPrivateFile(path: string, what: string): Promise<boolean> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw new AppError("internal", `Cannot read the ${what} from "${path}": ${messageOf(cause)}`, { cause });
  }
  if (!info.isFile) {
    throw new AppError("internal", `Cannot use "${path}" as ${what}: it is no regular file`);
  }
  if (Deno.build.os !== "windows" && info.mode !== null && (info.mode & 0o777) !== 0o600) {
    const mode = (info.mode & 0o777).toString(8).padStart(4, "0");
    throw new AppError(
      "internal",
      `Cannot use "${path}" as ${what}: its mode is ${mode} and must be 0600, since others may have read it`,
    );
  }
  return true;
}

/**
 * Makes a key under a temporary name and links it to its own, so that no start ever sees half a key; one that another
 * start made meanwhile stays.
 *
 * @throws {AppError} `internal`
 */
export async function createKeyFile(path: string, what: string): Promise<void> {
  const temporary = `${path}.${randomToken(6)}.tmp`;
  try {
    await writeNewFile(temporary, randomBytes(KEY_BYTES));
    try {
      await Deno.link(temporary, path); // never replaces a key that another start made meanwhile
    } catch (cause) {
      if (cause instanceof Deno.errors.AlreadyExists) return;
      // A file system without hard links: the process lock keeps other starts away from this moment.
      await writeNewFile(path, await Deno.readFile(temporary));
    }
  } catch (cause) {
    throw new AppError("internal", `Cannot create the ${what} "${path}": ${messageOf(cause)}`, { cause });
  } finally {
    await Deno.remove(temporary).catch(() => {});
  }
  await syncFolderOf(path);
}

async function writeNewFile(path: string, content: Uint8Array): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const count = await file.write(content);
  if (count !== content.byteLength) throw new Error(`only ${count} of ${content.byteLength} bytes could be written`);
  await file.sync();
}

async function syncFolderOf(path: string): Promise<void> {
  if (Deno.build.os === "windows") return; // a folder cannot be opened there
  using folder = await Deno.open(path.slice(0, path.lastIndexOf("/")) || "/");
  await folder.sync();
}
