/** Processes and threads of this machine as Linux reports them in /proc. */

/**
 * Returns the ids of the descendants of a process, without itself.
 *
 * @param except Leaves these and theirs out, such as the browser that the tests of a lane share: it starts processes at any
 *   time.
 */
export function listDescendants(pid: number, except: readonly number[] = []): number[] {
  const children = new Map<number, number[]>();
  for (const { name } of Deno.readDirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(`/proc/${name}/stat`) : undefined;
    if (stat === undefined) continue;
    const parent = Number(stat[1]);
    children.set(parent, [...children.get(parent) ?? [], Number(name)]);
  }
  const getChildren = (parent: number) => (children.get(parent) ?? []).filter((child) => !except.includes(child));
  const found = getChildren(pid);
  for (const each of found) found.push(...getChildren(each));
  return found;
}

/** Reports whether a process exists, even as a zombie. */
export function processExists(pid: number): boolean {
  return readStat(`/proc/${pid}/stat`) !== undefined;
}

/** Returns the processor time of each thread of a process, in ticks of 10 ms. */
export function readThreadTicks(pid: number): Map<string, number> {
  const ticks = new Map<string, number>();
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    const stat = readStat(`/proc/${pid}/task/${name}/stat`);
    if (stat !== undefined) ticks.set(name, Number(stat[11]) + Number(stat[12]));
  }
  return ticks;
}

/** Returns the resident memory of a process, in bytes. */
export function readResidentBytes(pid: number): number {
  return Number(/^VmRSS:\s*(\d+)/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))![1]) * 1024;
}

/** Returns the fields from the third on. The name before them may contain spaces. */
function readStat(path: string): string[] | undefined {
  try {
    return Deno.readTextFileSync(path).replace(/^.*\) /s, "").split(" ");
  } catch {
    return undefined;
  }
}
