/**
 * Runs one target in a process of its own: its cases, then random inputs until its time is up. Needs `gc` to be exposed.
 * Before each input, it prints which one it is, so that its parent knows what crashed it.
 */
import { findDescendants, findVariable, LANE_VARIABLE, listProcesses } from "../runner/running_processes.ts";
import { Random } from "./random.ts";
import { threadClock } from "./clock.ts";
import { type FuzzTarget, SERVING_STRETCH_MS } from "./target.ts";

/** What to run; the only argument, as JSON. */
export interface FuzzOrder {
  target: string;
  seed: number;
  /** CPU time for random inputs. */
  cpuMs: number;
  /** Time after which the run ends on a machine that is too busy to give the CPU time; twice as long unless set. */
  wallMs?: number;
  /** Number of the first input. */
  first?: number;
  /** Maximum number of inputs. */
  count?: number;
  /** Module with the targets; those of the product by default. */
  targetsPath?: string;
  /** File to write the number of the current input to. */
  progressPath: string;
}

/** A failure of one input. */
export interface Finding {
  /** `case "…"` or `input 17`. */
  input: string;
  error: string;
}

/** The result; the last line of the output, as JSON. */
export interface FuzzResult {
  inputs: number;
  findings: Finding[];
  longestStretchMs: number;
  /** Bytes retained after garbage collection at the end, beyond those after the first third. */
  grownBytes: number;
}

/** Heap that may be retained: caches fill, and code is compiled. */
const MAX_GROWN_BYTES = 32 * 1024 * 1024;
/** Number of measurements that must all exceed the limit, because a machine may be slow once. */
const MEASUREMENTS = 4;
const MAX_FINDINGS = 5;

declare const gc: () => void;

const clock = threadClock();

async function main(order: FuzzOrder): Promise<FuzzResult> {
  const { TARGETS }: { TARGETS: readonly FuzzTarget[] } = await import(order.targetsPath ?? "./targets.ts");
  const target = TARGETS.find(({ name }) => name === order.target);
  if (target === undefined) throw new Error(`There is no target "${order.target}"`);
  using progress = Deno.openSync(order.progressPath, { write: true, create: true, truncate: true });
  const begin = (input: string) => {
    progress.truncateSync(0);
    progress.seekSync(0, Deno.SeekMode.Start);
    progress.writeSync(new TextEncoder().encode(input));
  };
  begin("start");
  await target.open?.();
  let result: FuzzResult;
  try {
    result = await runAll(target, order, begin);
  } finally {
    await target.close?.();
  }
  // A browser ends with this process.
  const isBrowser = (pid: number) => findVariable(pid, LANE_VARIABLE) !== undefined;
  const left = Deno.build.os === "linux" ? findDescendants(listProcesses(), Deno.pid, isBrowser) : [];
  if (left.length > 0) {
    result.findings.push({ input: "the end", error: `${left.length} processes are left after the target was closed` });
  }
  return result;
}

async function runAll(target: FuzzTarget, order: FuzzOrder, begin: (input: string) => void): Promise<FuzzResult> {
  const result: FuzzResult = { inputs: 0, findings: [], longestStretchMs: 0, grownBytes: 0 };
  const seen = new Set<string>();
  const tryInput = async (name: string, make: () => unknown) => {
    begin(name);
    result.inputs++;
    try {
      const stretch = await stretchOf(target, make);
      result.longestStretchMs = Math.max(result.longestStretchMs, stretch);
      const limit = target.maxStretchMs ?? SERVING_STRETCH_MS;
      if (stretch > limit) throw new Error(`A stretch of ${Math.round(stretch)} ms of CPU time, more than ${limit}`);
      assertPlainPrototypes();
    } catch (error) {
      const text = error instanceof Error ? error.stack ?? error.message : String(error);
      const kind = text.split("\n").slice(0, 2).join("\n").replace(/\d+/g, "0").slice(0, 300);
      if (!seen.has(kind)) result.findings.push({ input: name, error: text.slice(0, 3_000) });
      seen.add(kind);
    }
  };
  const isReplay = order.first !== undefined;
  if (!isReplay) { for (const [name, make] of Object.entries(target.cases)) await tryInput(`case "${name}"`, make); }
  const cpuMs = () => clock() + (target.cpuElsewhereMs?.() ?? 0);
  const [cpuBegin, wallBegin] = [cpuMs(), performance.now()];
  const wallShare = order.cpuMs / (order.wallMs ?? 2 * order.cpuMs);
  const spent = () => Math.max(cpuMs() - cpuBegin, (performance.now() - wallBegin) * wallShare);
  const retained = target.retainedBytes ?? retainedBytes;
  let warmBytes: number | undefined;
  const end = order.count === undefined ? Infinity : (order.first ?? 0) + order.count;
  for (let n = order.first ?? 0; n < end && spent() < order.cpuMs && result.findings.length < MAX_FINDINGS; n++) {
    await tryInput(`input ${n}`, () => target.generate(new Random(`${order.seed} ${target.name} ${n}`)));
    if (warmBytes === undefined && spent() > order.cpuMs / 3) warmBytes = await retained();
  }
  if (warmBytes !== undefined) {
    result.grownBytes = await retained() - warmBytes;
    if (result.grownBytes > MAX_GROWN_BYTES) {
      const error = `Memory grew by ${
        (result.grownBytes / 1024 / 1024).toFixed(1)
      } MiB after the first third of the run`;
      result.findings.push({ input: "all", error });
    }
  }
  return result;
}

/** Runs an input and returns its longest stretch without a break, the shortest of some measurements where that is long. */
async function stretchOf(target: FuzzTarget, make: () => unknown): Promise<number> {
  const limit = target.maxStretchMs ?? SERVING_STRETCH_MS;
  let shortest = Infinity;
  for (let n = 0; n < MEASUREMENTS && shortest > limit; n++) {
    const input = make(); // A new copy, because a run may change its input.
    shortest = Math.min(shortest, await longestStretch(() => target.run(input)));
  }
  return shortest;
}

/** Returns the maximum CPU time of this thread between two yields. */
async function longestStretch(run: () => void | Promise<void>): Promise<number> {
  let [last, longest] = [clock(), 0];
  const look = () => {
    const now = clock();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const running = run();
  look();
  if (running === undefined) return longest;
  const timer = setInterval(look, 1);
  try {
    await running;
  } finally {
    clearInterval(timer);
  }
  look();
  return longest;
}

async function retainedBytes(): Promise<number> {
  gc();
  await new Promise((resolve) => setTimeout(resolve)); // Finalized objects are collected in the next pass.
  gc();
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}

/** Names such as `__proto__` must never change the prototype of all objects. */
function assertPlainPrototypes(): void {
  for (const [name, prototype] of [["Object", Object.prototype], ["Array", Array.prototype]] as const) {
    for (const key of Object.keys(prototype)) throw new Error(`${name}.prototype was given "${key}"`);
  }
}

if (import.meta.main) {
  const result = await main(JSON.parse(Deno.args[0]!));
  await new Response(JSON.stringify(result)).body!.pipeTo(Deno.stdout.writable, { preventClose: true });
  Deno.exit(0);
}
