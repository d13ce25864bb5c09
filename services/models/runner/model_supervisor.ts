/** Keeps one model running: looks at its server, starts it again when it ends by itself, and ends it when nobody uses it. */
import type { Log } from "../../log.ts";
import type { LlamaOptions } from "./llama_program.ts";
import { LlamaServer } from "./llama_server.ts";
import { delay } from "../../async/delay.ts";
import { freeMemory, residentBytes } from "../../process/process_memory.ts";
import type { RunnerStatus } from "./runner_status.ts";

/** How patient the runner is. */
export interface RunnerTimes {
  /** From the start to the first good answer: a large file comes from a slow disk. */
  startMs: number;
  startPollMs: number;
  /** Between two looks at a running server. */
  watchMs: number;
  /** Longest wait for its answer. */
  healthMs: number;
  /** First pause before a restart; it doubles. */
  restartMs: number;
}

export const DEFAULT_TIMES: RunnerTimes = {
  startMs: 10 * 60_000,
  startPollMs: 250,
  watchMs: 5_000,
  healthMs: 10_000,
  restartMs: 1_000,
};

/** What is kept running, and who hears of it. */
export interface KeptModel {
  program: string;
  options: Omit<LlamaOptions, "port">;
  /** Without a use for so many minutes it is stopped; 0 never. */
  idleMinutes: number;
  /** When it was last used, on the clock of `performance`; moved by whoever uses it. */
  usage: { atMs: number };
  times: RunnerTimes;
  log: Log;
  /** Ends it. */
  signal: AbortSignal;
  /** Told at each start; the server does not answer yet. */
  onStart(server: LlamaServer): void;
  /** Told when a server answers; it counts as running afterwards. */
  onReady(server: LlamaServer): Promise<void>;
  /** Told what changes while it runs. */
  onChange(change: Partial<Pick<RunnerStatus, "state" | "error" | "restarts" | "memoryBytes" | "startedAtMs">>): void;
}

type RunEnd =
  /** On purpose: by its owner, or idle. */
  | { kind: "stopped" }
  /** In a way that a restart would only repeat. */
  | { kind: "failed"; message: string }
  | { kind: "ended"; wasReady: boolean; message: string };

/** Looks without an answer before it counts as hung. */
const MAX_SILENT_LOOKS = 3;
/** Restarts in a row; it begins anew after `STEADY_MS` without an end. */
const MAX_RESTARTS = 3;
const STEADY_MS = 10 * 60_000;
/** Share of the memory that the system has to keep: below it everything here suffers. */
const MIN_FREE_SHARE = 0.03;

/**
 * Runs the program again and again until it is told to end or idles.
 *
 * @throws {Error} when it does not come up, or ends too often. The signal's reason, where it ends a pause.
 */
export async function keepRunning(kept: KeptModel): Promise<void> {
  let inARow = 0;
  for (let restarts = 1;; restarts++) {
    const beganAt = performance.now();
    const end = await runOnce(kept);
    if (end.kind === "stopped") return;
    if (end.kind === "failed" || !end.wasReady) throw new Error(end.message);
    inARow = performance.now() - beganAt > STEADY_MS ? 1 : inARow + 1;
    if (inARow > MAX_RESTARTS) throw new Error(`${end.message}; given up after ${MAX_RESTARTS} restarts`);
    kept.log("warn", "The model on this machine ended and is started again", { cause: end.message });
    const gone = { memoryBytes: undefined, startedAtMs: undefined };
    kept.onChange({ state: "starting", error: end.message, restarts, ...gone });
    await delay(kept.times.restartMs * 2 ** (inARow - 1), kept.signal);
  }
}

async function runOnce(kept: KeptModel): Promise<RunEnd> {
  const { signal, times } = kept;
  const server = new LlamaServer(kept.program, kept.options, times.healthMs);
  kept.onStart(server);
  let wasReady = false;
  const exit = server.process.ended.then(
    (status): RunEnd => ({ kind: "ended", wasReady, message: describeExit(status) }),
  );
  const watching = new AbortController();
  const onAbort = () => watching.abort();
  signal.addEventListener("abort", onAbort);
  const follow = async (): Promise<RunEnd> => {
    if (!await server.untilHealthy(times.startMs, times.startPollMs, watching.signal)) {
      return { kind: "failed", message: `it was not ready after ${Math.round(times.startMs / 1000)} s` };
    }
    await kept.onReady(server);
    wasReady = true;
    return await watch(kept, server, watching.signal);
  };
  try {
    return await Promise.race([exit, follow()]);
  } catch (error) {
    if (signal.aborted) return { kind: "stopped" };
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    watching.abort();
    await server.process.stop();
  }
}

/** Looks at a running server now and then. Gives why it has to end. */
async function watch(kept: KeptModel, server: LlamaServer, signal: AbortSignal): Promise<RunEnd> {
  const { idleMinutes, usage, times } = kept;
  let knownMemory: number | undefined;
  for (let silent = 0;;) {
    await delay(times.watchMs, signal);
    silent = await server.isHealthy(signal) ? 0 : silent + 1;
    if (silent === MAX_SILENT_LOOKS) return { kind: "ended", wasReady: true, message: "it did not answer any more" };
    const memory = freeMemory();
    if (memory.free < memory.total * MIN_FREE_SHARE) {
      return { kind: "failed", message: "it was stopped since the machine ran short of memory" };
    }
    const memoryBytes = await residentBytes(server.process.pid);
    signal.throwIfAborted();
    if (memoryBytes !== knownMemory) kept.onChange({ memoryBytes });
    knownMemory = memoryBytes;
    const isIdle = idleMinutes > 0 && performance.now() - usage.atMs > idleMinutes * 60_000;
    if (!isIdle) continue;
    if (!await server.isBusy(signal)) return { kind: "stopped" };
    usage.atMs = performance.now();
  }
}

function describeExit({ code, signal }: Deno.CommandStatus): string {
  if (signal === "SIGKILL") return "llama-server was killed, as the system does when memory runs out";
  return signal === null ? `llama-server ended with code ${code}` : `llama-server ended by ${signal}`;
}
