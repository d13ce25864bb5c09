/** Memory of a process over time. */
import type { ChildServer } from "../helpers/app/child_server.ts";

const MIB = 1024 * 1024;

/** Flags of Deno with which a server can be asked to collect its garbage. @param port A free one. */
export function inspectFlags(port: number): string[] {
  return [`--inspect=127.0.0.1:${port}`];
}

/** Returns the resident memory of a process; 0 if unknown. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`).catch(() => "");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}

/** Memory of a server. */
export interface HeldMemory {
  /** Objects of the serving thread that are in use. */
  heapBytes: number;
  /** Of the whole process. */
  residentBytes: number;
}

/** Memory of a server over its lifetime. */
export class MemoryRecord {
  readonly held: HeldMemory[] = [];
  peakBytes = 0;

  notePeak(bytes: number): void {
    this.peakBytes = Math.max(this.peakBytes, bytes);
  }
}

/** Looks at a server's memory. */
export interface MemoryProbe extends Disposable {
  /** Collects garbage first: how much of it there is, says when the engine last took the time, and nothing of a leak. */
  look(): Promise<HeldMemory>;
}

/**
 * Opens the look at a server that was started with `inspectFlags` and this port.
 *
 * @see https://chromedevtools.github.io/devtools-protocol/tot/HeapProfiler/
 */
export async function openProbe({ pid }: ChildServer, port: number): Promise<MemoryProbe> {
  const [target] = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json() as [
    { webSocketDebuggerUrl: string },
  ];
  const socket = new WebSocket(target.webSocketDebuggerUrl);
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

/**
 * Compares the last third of the samples with the second, by their medians: a single collection doesn't count, and in the first
 * third caches fill and the allocator's memory reaches its size.
 */
export function growthOf(samples: readonly number[]): { beginMib: number; endMib: number; ratio: number } {
  const third = Math.ceil(samples.length / 3);
  const [begin, end] = [median(samples.slice(-2 * third, -third)), median(samples.slice(-third))];
  return { beginMib: Math.round(begin / MIB), endMib: Math.round(end / MIB), ratio: begin === 0 ? 1 : end / begin };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
