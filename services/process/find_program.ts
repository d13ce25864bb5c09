/** Finds external programs. */
import { join } from "node:path";

/**
 * Finds a program like a shell: the first file with that name on PATH.
 *
 * @param name Without `.exe`.
 * @param otherFolders Searched after PATH, which is often short for system services.
 */
export async function findOnPath(name: string, otherFolders: readonly string[] = []): Promise<string | undefined> {
  const isWindows = Deno.build.os === "windows";
  const onPath = (Deno.env.get("PATH") ?? "").split(isWindows ? ";" : ":");
  for (const folder of [...onPath, ...otherFolders]) {
    if (folder === "") continue;
    const path = join(folder, isWindows ? `${name}.exe` : name);
    if (await isFile(path)) return path;
  }
  return undefined;
}

/** Reports whether a path is a file, or a link to one. */
export async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}
