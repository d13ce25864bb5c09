/** Measures how busy the machine is with other programs, from Linux's /proc. */

/** The load of the machine during one row. */
export interface MachineUse {
  /** Load average over the last minute, before the row and after it. The row's own programs count. */
  load: [before: number, after: number];
  /** Average number of processors used by other programs, including time stolen by a hypervisor. */
  elsewhere: number;
}

/** Load average at the start of a run above which its figures aren't written. */
export const MAX_LOAD = 1;
/** Processors used by other programs during a row above which its figures aren't written. */
export const MAX_ELSEWHERE = 0.25;

/**
 * Flags of Chromium with which its processor time counts as ours: the zygote, which starts the pages' processes, isn't waited for
 * by the browser, so their time would look like that of other programs.
 */
export const COUNTED_FLAGS = ["--no-zygote"];

// USER_HZ; see process_facts.ts.
const MS_PER_TICK = 10;

/** Starts measuring. The returned function returns the result. Programs count as ours once they have ended. */
export function watchMachine(): () => MachineUse {
  const [loadBefore, busyBefore, ownBefore, beganAt] = [load(), busyMs(), ownMs(), performance.now()];
  return () => {
    const elsewhereMs = busyMs() - busyBefore - (ownMs() - ownBefore);
    return {
      load: [loadBefore, load()],
      elsewhere: Math.max(0, elsewhereMs / (performance.now() - beganAt)),
    };
  };
}

/** Formats the load. */
export function formatUse({ load: [before, after], elsewhere }: MachineUse): string {
  return `load ${before.toFixed(1)} → ${after.toFixed(1)}, other programs ${
    Math.round(elsewhere * 100)
  } % of a processor`;
}

function load(): number {
  return Deno.loadavg()[0]!;
}

/** Time that all processors were busy: all fields of proc_stat(5) but idle, iowait and those of guests, which others contain. */
function busyMs(): number {
  const [user, nice, system, _idle, _iowait, irq, softirq, steal] = Deno.readTextFileSync("/proc/stat").split("\n")[0]!
    .split(/\s+/).slice(1).map(Number) as [number, number, number, number, number, number, number, number];
  return (user + nice + system + irq + softirq + steal) * MS_PER_TICK;
}

/** Processor time of this process and of the children it has waited for. */
function ownMs(): number {
  const stat = Deno.readTextFileSync("/proc/self/stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  return (fields[11]! + fields[12]! + fields[13]! + fields[14]!) * MS_PER_TICK;
}
