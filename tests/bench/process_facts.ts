/** Facts about a running process from Linux's /proc. */

// USER_HZ; getconf CLK_TCK gives 100 on every Linux port that Deno runs on (proc_pid_stat(5)).
const MS_PER_TICK = 10;

/** Returns the CPU time of all threads of a process, in ms. The kernel counts in steps of 10. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  // Fields 14 and 15, counted after the command's name, which may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/** Returns the resident memory of a process, in bytes. */
export function residentBytes(pid: number): Promise<number> {
  return statusBytes(pid, "VmRSS");
}

/** Returns the peak resident memory since the start or the last `forgetPeak`, in bytes. */
export function peakBytes(pid: number): Promise<number> {
  return statusBytes(pid, "VmHWM");
}

/** Resets the peak to the current resident memory. */
export async function forgetPeak(pid: number): Promise<void> {
  await Deno.writeTextFile(`/proc/${pid}/clear_refs`, "5");
}

/** Returns the bytes that a process has passed to write calls, for files and pipes. */
export function writtenBytes(pid: number): number {
  return numberAfter(Deno.readTextFileSync(`/proc/${pid}/io`), "wchar");
}

async function statusBytes(pid: number, name: string): Promise<number> {
  return numberAfter(await Deno.readTextFile(`/proc/${pid}/status`), name) * 1024;
}

function numberAfter(text: string, name: string): number {
  const match = new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(text);
  if (match === null) throw new Error(`Can't find ${name} among the facts of a process`);
  return Number(match[1]);
}
