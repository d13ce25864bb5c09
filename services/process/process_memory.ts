/** What the system says of memory: Deno gives no program /proc, so other processes are asked for by `ps`. */

/** Gives the resident memory of a process in bytes; `undefined` when it is gone or cannot be asked. */
export async function residentBytes(pid: number): Promise<number | undefined> {
  if (Deno.build.os === "windows") return undefined;
  try {
    const { stdout } = await new Deno.Command("ps", {
      args: ["-o", "rss=", "-p", String(pid)],
      stdin: "null",
      stderr: "null",
    }).output();
    const kibibytes = Number(new TextDecoder().decode(stdout).trim());
    return kibibytes > 0 ? kibibytes * 1024 : undefined;
  } catch {
    return undefined; // a container without ps
  }
}

/** Gives what memory there is and what is left of it, in bytes; on systems that count it otherwise nothing ever lacks. */
export function freeMemory(): { free: number; total: number } {
  const { available, total } = Deno.systemMemoryInfo();
  return { free: Deno.build.os === "linux" ? available : total, total };
}
