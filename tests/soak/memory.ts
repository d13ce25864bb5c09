/** How much memory a process holds, and whether that grows. */
import type { ChildServer } from "../helpers/app/child_server.ts";

const MIB = 1024 * 1024;

/** Lets a server that was started with these flags of Deno be asked to collect its garbage. */
export const PROBED = ["--inspect=127.0.0.1:0"];

/** Gives the resident memory of a process; 0 where the system does not tell. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`).catch(() => "");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}

/** What a server holds on to. */
export interface HeldMemory {
  /** Objects of the serving thread that are in use. */
  heapBytes: number;
  /** Of the whole process. */
  residentBytes: number;
}

/** Looks at a server's memory. */
export interface MemoryProbe extends Disposable {
  /** Collects garbage first: how much of it there is, says when the engine last took the time, and nothing of a leak. */
  look(): Promise<HeldMemory>;
}

/** Opens the look at a server that was started with `PROBED`. @see chromedevtools.github.io/devtools-protocol, HeapProfiler */
export async function openProbe({ logs, pid }: ChildServer): Promise<MemoryProbe> {
  const address = logs.map((line) => /listening on (ws:\S+)/.exec(line)?.[1]).find((found) => found !== undefined);
  if (address === undefined) throw new Error("The server does not say where its inspector listens");
  const socket = new WebSocket(address);
  const waiting = new Map<number, (result: { usedSize: number }) => void>();
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.(result);
    waiting.delete(id);
  };
  await new Promise((resolve, reject) => [socket.onopen, socket.onerror] = [resolve, reject]);
  let lastId = 0;
  const ask = (method: string) =>
    new Promise<{ usedSize: number }>((resolve) => {
      waiting.set(++lastId, resolve);
      socket.send(JSON.stringify({ id: lastId, method }));
    });
  return {
    async look() {
      await ask("HeapProfiler.collectGarbage");
      const { usedSize: heapBytes } = await ask("Runtime.getHeapUsage");
      return { heapBytes, residentBytes: await residentBytes(pid) };
    },
    [Symbol.dispose]: () => socket.close(),
  };
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
