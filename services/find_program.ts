/** Finds programs of others on this machine. */
import { join } from "node:path";

/**
 * Finds a program as a shell would: the first file of that name on PATH.
 *
 * @param name Without `.exe`.
 */
export async function findOnPath(name: string): Promise<string | undefined> {
  const isWindows = Deno.build.os === "windows";
  for (const folder of (Deno.env.get("PATH") ?? "").split(isWindows ? ";" : ":")) {
    if (folder === "") continue;
    const path = join(folder, isWindows ? `${name}.exe` : name);
    if (await Deno.stat(path).then((info) => info.isFile, () => false)) return path;
  }
  return undefined;
}
