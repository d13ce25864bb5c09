/** Finds out whether a folder is on a mounted disk or on that of the folder around it. */
import { dirname, resolve } from "node:path";
import { AppError } from "../errors.ts";

/**
 * Reports whether a folder, or the one above it, is a mount point. A folder that doesn't exist yet can be created on a
 * mounted disk. Bind mounts of the same disk don't count. On Windows, the root of a drive counts.
 */
export async function isMounted(folder: string): Promise<boolean> {
  const path = resolve(folder);
  return await isMountPoint(path) || await isMountPoint(dirname(path));
}

/** @throws {AppError} `not_available` if `backup_dir` isn't on a mounted disk. */
export async function assertMounted(folder: string): Promise<void> {
  if (await isMounted(folder)) return;
  throw new AppError(
    "not_available",
    `Can't back up to "${folder}": neither it nor the folder above it is a mount point. Is its disk mounted?`,
  );
}

async function isMountPoint(path: string): Promise<boolean> {
  const [own, above] = await Promise.all([path, dirname(path)].map((at) => Deno.stat(at).catch(() => undefined)));
  if (own === undefined || above === undefined) return false;
  return dirname(path) === path ? Deno.build.os === "windows" : own.dev !== above.dev;
}
