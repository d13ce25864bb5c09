/** Says whether a data directory was in use before: then its storage key has to be there too. */

import { fileError } from "./atomic_file.ts";
import type { DataDir } from "./data_dir.ts";

/** Files and folders that hold sealed values, and that nobody makes before there is a key. */
const SEALED_NAMES = ["app.db", "app.db-wal", "credentials.json", "tokens.json", "attachments", "replies"];

/**
 * Says whether anything in the data directory may be sealed. To be asked before the database is opened, which makes it.
 *
 * @throws {AppError} `internal` when that cannot be seen: an unreadable folder is not an empty one.
 */
export async function holdsSealedData(dataDir: DataDir): Promise<boolean> {
  for (const name of SEALED_NAMES) {
    const path = dataDir.file(name);
    try {
      if (!(await Deno.stat(path)).isDirectory) return true;
      for await (const _ of Deno.readDir(path)) return true;
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) continue;
      throw fileError(`Cannot look for sealed data in "${path}"`, cause);
    }
  }
  return false;
}
