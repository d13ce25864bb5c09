/** Where the node's socket lies: in a folder of the owner's alone, since the socket itself is open to every user. */
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";

/** Longest path that a Unix socket may have on macOS, less one; Linux takes four more. */
const MAX_BYTES = 103;
const NAME = "ts.sock";

/**
 * Gives the path, the same at every start: the node refuses a socket that another one still answers on, so that no two
 * write one state.
 *
 * @param stateFolder Its usual place; where that is too deep, a short folder of its own is made.
 * @throws {AppError} `not_available` when there is no such folder to be had.
 */
export async function nodeSocketPath(stateFolder: string): Promise<string> {
  const usual = join(stateFolder, NAME);
  if (isShort(usual)) return usual;
  const folder = await shortFolder(stateFolder);
  const path = join(folder, NAME);
  if (!isShort(path)) throw noPlace(`"${path}" is too long for a socket`);
  try {
    await Deno.mkdir(folder, { mode: 0o700, recursive: true });
    const { isDirectory, mode, uid } = await Deno.lstat(folder);
    const isOurs = isDirectory && uid === Deno.uid() && mode !== null && (mode & 0o077) === 0;
    if (!isOurs) throw new Error("somebody else may enter it");
  } catch (cause) {
    throw noPlace(`"${folder}" cannot hold it: ${messageOf(cause)}`, cause);
  }
  return path;
}

/** Removes what `nodeSocketPath` made outside of the state's own folder, if it did. */
export async function removeNodeSocket(stateFolder: string): Promise<void> {
  if (isShort(join(stateFolder, NAME))) return;
  await Deno.remove(await shortFolder(stateFolder), { recursive: true }).catch(() => {}); // an empty folder harms nobody
}

async function shortFolder(stateFolder: string): Promise<string> {
  return join(Deno.env.get("XDG_RUNTIME_DIR") || "/tmp", `parlor-${await shortHash(stateFolder)}`);
}

function isShort(path: string): boolean {
  return new TextEncoder().encode(path).length <= MAX_BYTES;
}

function noPlace(why: string, cause?: unknown): AppError {
  return new AppError("not_available", `No place for the socket of the tailnet node: ${why}`, { cause });
}

async function shortHash(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
