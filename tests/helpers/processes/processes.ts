/** Lists processes: with /proc on Linux, since small images have no `ps`, and with `ps` elsewhere. */

const IS_LINUX = Deno.build.os === "linux";

/** Returns whether a process has ended. Zombies count as ended. */
export async function isGone(pid: number): Promise<boolean> {
  // The state stands behind the name, which may hold anything. @see proc_pid_stat(5)
  const state = IS_LINUX
    ? (await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "")).replace(/^.*\) /s, "")
    : await ps("-o", "stat=", "-p", String(pid));
  return state.trim() === "" || /^[ZX]/.test(state);
}

/** Returns the command line of a process, which all users of the machine can read; empty if it has ended. */
export async function commandLineOf(pid: number): Promise<string> {
  if (!IS_LINUX) return (await ps("-ww", "-o", "args=", "-p", String(pid))).trim();
  return (await Deno.readTextFile(`/proc/${pid}/cmdline`).catch(() => "")).replaceAll("\0", " ").trim();
}

/** Returns the CPU time of a process in seconds. Linux only. */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const fields = (await Deno.readTextFile(`/proc/${pid}/stat`)).replace(/^.*\) /s, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100; // utime and stime, in ticks: proc_pid_stat(5)
}

/** Returns the processes whose command line contains a text. */
export async function findProcesses(text: string): Promise<number[]> {
  const pids = IS_LINUX
    ? (await Array.fromAsync(Deno.readDir("/proc"), ({ name }) => Number(name))).filter(Number.isInteger)
    : (await ps("-A", "-o", "pid=")).split("\n").map(Number);
  const found: number[] = [];
  for (const pid of pids) {
    if (pid > 0 && pid !== Deno.pid && (await commandLineOf(pid)).includes(text)) found.push(pid);
  }
  return found;
}

async function ps(...args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command("ps", { args }).output();
  return new TextDecoder().decode(stdout);
}
