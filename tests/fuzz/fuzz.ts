/** Runs fuzz targets in their own processes. A reader that never ends or crashes its process is a finding. */
import type { FuzzOrder, FuzzResult } from "./child.ts";

/** What to fuzz, and for how long. */
export interface FuzzRequest extends Omit<FuzzOrder, "progressPath"> {
  /** CPU time after which an input counts as endless, in seconds. */
  hangCpuSeconds?: number;
}

/** Heap limit of a process. No reader needs more for inputs of this size. */
const MAX_HEAP_MIB = 1024;
/** CPU time of a process without its inputs, in seconds. */
const HANG_CPU_SECONDS = 15;
/** Time limit for an input that only waits. */
const HANG_WALL_MS = 120_000;
const LOOK_MS = 250;
/** Of the kernel's clock. Linux has 100 on every architecture that Deno runs on. */
const TICKS_PER_SECOND = 100;

/** Runs one target. */
export async function fuzz({ hangCpuSeconds = HANG_CPU_SECONDS, ...request }: FuzzRequest): Promise<FuzzResult> {
  const progressPath = await Deno.makeTempFile({ prefix: "fuzz-" });
  const order: FuzzOrder = { ...request, progressPath };
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", `--v8-flags=--expose-gc,--max-old-space-size=${MAX_HEAP_MIB}`],
      ...[new URL("./child.ts", import.meta.url).pathname, JSON.stringify(order)],
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const watch = watchProgress(child, progressPath, hangCpuSeconds);
  try {
    const [out, err, { code, signal }] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.status,
    ]);
    if (code === 0 && out !== "") return JSON.parse(out);
    const why = watch.hang ?? `The process ended with ${signal ?? `code ${code}`}: ${err.trim().slice(-2_000)}`;
    const input = await Deno.readTextFile(progressPath);
    return { inputs: 0, findings: [{ input, error: why }], longestStretchMs: 0, grownBytes: 0 };
  } finally {
    watch.stop();
    await Deno.remove(progressPath);
  }
}

/** Returns the report of a run, each finding with the command that repeats it. */
export function reportOf({ target, seed }: FuzzRequest, result: FuzzResult): string {
  const { inputs, longestStretchMs, grownBytes, findings } = result;
  const head = `${target}, seed ${seed}: ${inputs} inputs, longest stretch ${longestStretchMs.toFixed(1)} ms, ` +
    `${(grownBytes / 1024 / 1024).toFixed(1)} MiB grown, ${findings.length} findings`;
  const lines = findings.map(({ input, error }) => {
    const number = /^input (\d+)$/.exec(input)?.[1];
    const replay = `deno task fuzz --target ${target} --seed ${seed}${
      number === undefined ? "" : ` --input ${number}`
    }`;
    return `${input}: ${error}\n  replay: ${replay}`;
  });
  return [head, ...lines].join("\n");
}

/** Kills a child that works on one input for too long. CPU time counts, so that a busy machine kills nothing. */
function watchProgress(
  child: Deno.ChildProcess,
  progressPath: string,
  hangCpuSeconds: number,
): { hang?: string; stop(): void } {
  const state: { hang?: string; stop(): void } = { stop: () => clearInterval(timer) };
  let [input, sinceMs, sinceCpu] = ["", performance.now(), 0];
  const timer = setInterval(() => {
    let now: string;
    let cpu: number;
    try {
      now = Deno.readTextFileSync(progressPath);
      cpu = cpuSecondsOf(child.pid);
    } catch {
      return; // it has ended
    }
    if (now !== input) [input, sinceMs, sinceCpu] = [now, performance.now(), cpu];
    const [usedCpu, usedMs] = [cpu - sinceCpu, performance.now() - sinceMs];
    if (usedCpu < hangCpuSeconds && usedMs < HANG_WALL_MS) return;
    state.hang = `It was not done after ${usedCpu.toFixed(1)} s of CPU time, ${Math.round(usedMs / 1000)} s in all`;
    state.stop();
    child.kill("SIGKILL");
  }, LOOK_MS);
  return state;
}

function cpuSecondsOf(pid: number): number {
  if (Deno.build.os !== "linux") return 0;
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
