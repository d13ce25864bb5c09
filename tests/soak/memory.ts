/** How much memory a process holds, and whether that grows. */
const MIB = 1024 * 1024;

/** Gives the resident memory of a process; 0 where the system does not tell. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`).catch(() => "");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}

/** Compares the last third of the samples with the first, by their medians: a single collection does not count. */
export function growthOf(samples: readonly number[]): { beginMib: number; endMib: number; ratio: number } {
  const third = Math.ceil(samples.length / 3);
  const [begin, end] = [median(samples.slice(0, third)), median(samples.slice(-third))];
  return { beginMib: Math.round(begin / MIB), endMib: Math.round(end / MIB), ratio: begin === 0 ? 1 : end / begin };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
