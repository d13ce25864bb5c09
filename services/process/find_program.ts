/** Finds programs of others on this machine. */
import { join } from "node:path";

/**
 * Finds a program as a shell would: the first file of that name on PATH.
 *
 * @param name Without `.exe`.
 * @param otherFolders Looked into after PATH, which is often a short one where the system starts its services.
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

/** Says whether a path leads to a file. */
export async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}
