/** Memory figures of the system. Deno doesn't allow reading /proc, so other processes are measured with `ps`. */

/** Returns the resident memory of a process in bytes; `undefined` if it has ended or can't be measured. */
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

/** Returns total and available memory in bytes. Systems that don't report it seem to have unlimited memory. */
export function freeMemory(): { free: number; total: number } {
  const { available, total } = Deno.systemMemoryInfo();
  return { free: Deno.build.os === "linux" ? available : total, total };
}
