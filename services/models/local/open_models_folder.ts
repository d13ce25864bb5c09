/** Finds the models folder when the server starts. */
import { sep } from "node:path";
import { AppError, getErrorMessage } from "../../errors.ts";
import type { DataDir } from "../../storage/data_dir.ts";

/**
 * Opens the folder for downloaded models. Creates it if it's missing.
 *
 * Models are large, so they may be on another disk: in `models_dir`, or behind a link named `models` in the data
 * folder. Mode and owner of such a folder don't change.
 *
 * @param configured `models_dir`.
 * @returns Its path without links, so that links below it can still be rejected.
 * @throws {AppError} `invalid_request` for an invalid `models_dir`, `internal` if the folder in the data directory
 *   can't be used
 */
export async function openModelsFolder(dataDir: DataDir, configured: string | null): Promise<string> {
  const own = dataDir.file("models");
  if (configured === null) {
    const isLink = await Deno.lstat(own).then(({ isSymlink }) => isSymlink, () => false);
    if (!isLink) return await dataDir.ensureFolder("models");
    return await resolveFolder(own).catch((cause) => {
      throw new AppError("internal", `Can't use the link "${own}": ${getErrorMessage(cause)}`, { cause });
    });
  }
  const refuse = (found: string, cause?: unknown) =>
    new AppError("invalid_request", `Bad value for models_dir: can't use "${configured}": ${found}`, { cause });
  let path: string;
  try {
    await Deno.mkdir(configured, { recursive: true, mode: 0o700 });
    path = await resolveFolder(configured);
  } catch (cause) {
    throw refuse(getErrorMessage(cause), cause);
  }
  // Everything else in the data folder is backed up, restored and encrypted again.
  if (path === dataDir.path || (path.startsWith(dataDir.path + sep) && path !== own)) {
    throw refuse("it's in the data folder. Choose a folder outside of it, or omit the key");
  }
  return path;
}

async function resolveFolder(path: string): Promise<string> {
  const real = await Deno.realPath(path);
  if (!(await Deno.stat(real)).isDirectory) throw new Error("it isn't a folder");
  return real;
}
