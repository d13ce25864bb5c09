/** Processes and their descendants, read from /proc. On other systems than Linux all lists are empty. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Clock ticks per second in /proc/PID/stat. @see proc_pid_stat(5) */
const TICKS_PER_SECOND = 100;

/** Marks processes that outlive a file on purpose: the browser of the lane. */
export const LANE_VARIABLE = "TEST_LANE_PROCESS";

/** A running process. */
export interface RunningProcess {
  pid: number;
  parent: number;
  /** Processor time of the process and of its children that have ended, in seconds. */
  processorSeconds: number;
}

/** Lists all processes of the machine, without those that have ended and wait for their parent. */
export function listProcesses(): RunningProcess[] {
  if (Deno.build.os !== "linux") return [];
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    const stat = readProc(`/proc/${name}/stat`);
    // The name of the program is in parentheses and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields.length < 15 || fields[0] === "Z" || fields[0] === "X") return [];
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return [{ pid: Number(name), parent: Number(fields[1]), processorSeconds: ticks / TICKS_PER_SECOND }];
  });
}

/** Returns the descendants of a process. @param isOmitted Leaves out a process with all that it started. */
export function findDescendants(
  processes: readonly RunningProcess[],
  pid: number,
  isOmitted: (pid: number) => boolean = () => false,
): RunningProcess[] {
  return processes.filter((each) => each.parent === pid && !isOmitted(each.pid))
    .flatMap((child) => [child, ...findDescendants(processes, child.pid, isOmitted)]);
}

/** Returns the processor time of a process and its descendants in seconds, with those that have ended. */
export function countProcessorSeconds(pid: number): number {
  const processes = listProcesses();
  const own = processes.filter((each) => each.pid === pid);
  return [...own, ...findDescendants(processes, pid)].reduce((sum, each) => sum + each.processorSeconds, 0);
}

/** Returns a variable of a process's environment at its start. */
export function findVariable(pid: number, name: string): string | undefined {
  const line = readProc(`/proc/${pid}/environ`).split("\0").find((line) => line.startsWith(`${name}=`));
  return line?.slice(name.length + 1);
}

/** Returns the command line of a process, shortened. */
export function readCommand(pid: number): string {
  return readProc(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim().slice(0, 200);
}

/** Ends a process, if it hasn't ended meanwhile. */
export function killProcess(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Returns the TCP ports that this process listens on. */
export function listListeningPorts(): number[] {
  if (Deno.build.os !== "linux") return [];
  const sockets = new Set(readdirSync("/proc/self/fd").map((name) => readLink(`/proc/self/fd/${name}`)));
  return ["/proc/self/net/tcp", "/proc/self/net/tcp6"].flatMap((path) => readProc(path).split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    // State 0A is LISTEN. @see https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
    .filter((fields) => fields[3] === "0A" && sockets.has(`socket:[${fields[9]}]`))
    .map((fields) => parseInt(fields[1]!.split(":").at(-1)!, 16));
}

/** Reads a file of /proc; empty if the process has ended. */
function readProc(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
