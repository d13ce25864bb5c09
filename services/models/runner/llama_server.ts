/**
 * llama.cpp's server: finds the program, builds its command line, and keeps one model running. Restarts a server that
 * ends, stops an idle one, and takes over the one that an earlier Parlor left.
 */
import { basename } from "node:path";
import { delay } from "../../async/delay.ts";
import { randomToken } from "../../crypto/random.ts";
import { AppError } from "../../errors.ts";
import { toBearerHeader } from "../../http/base_url.ts";
import { openHttpClient } from "../../http/http_client.ts";
import {
  findOnPath,
  freeMemory,
  isFile,
  measureResidentBytes,
  type ProcessEnd,
  readStartTime,
  startWatched,
  takeOverProcess,
  type WatchedProcess,
  WatcherPipe,
} from "../../process/supervised_process.ts";
import type { Log } from "../../log.ts";
import { isStillRunning, type ServerRecord } from "./left_server.ts";
import type { RunnerStatus } from "./runner.ts";

/** How to start a server. */
interface StartOptions {
  program: string;
  options: Omit<LlamaOptions, "port">;
  /** Path for the pipe of its watcher. */
  pipePath: string;
  times: RunnerTimes;
}

/** A running llama-server on a free port of the loopback interface, with a random key. */
export class LlamaServer {
  /** Without a path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly process: WatchedProcess;
  /** What the next Parlor must know to take it over. */
  readonly record: ServerRecord;
  readonly #healthMs: number;
  readonly #client = openHttpClient();

  private constructor(record: ServerRecord, process: WatchedProcess, healthMs: number) {
    this.record = record;
    this.baseUrl = `http://127.0.0.1:${record.port}`;
    this.apiKey = record.apiKey;
    this.process = process;
    this.#healthMs = healthMs;
  }

  /**
   * Starts the server. It responds once it has loaded its model.
   *
   * @throws {AppError} `not_available` if the program can't be started
   */
  static async start({ program, options, pipePath, times }: StartOptions): Promise<LlamaServer> {
    const port = findFreePort();
    const apiKey = randomToken(24);
    const pipe = await WatcherPipe.create(pipePath);
    try {
      const process = startWatched(program, {
        args: createLlamaArguments({ ...options, port }),
        env: { LLAMA_API_KEY: apiKey },
        outlives: pipe && { pipe, waitSeconds: Math.ceil(times.leftMs / 1000) },
      });
      const { pid } = process;
      const startedAtMs = await readStartTime(pid) ?? Date.now();
      const record = { pid, startedAtMs, port, apiKey, pipe: pipe?.path ?? null, program };
      return new LlamaServer(record, process, times.healthMs);
    } catch (error) {
      await pipe?.discard();
      throw error;
    }
  }

  /**
   * Takes over the server that an earlier Parlor left. One that can't be recognized is ended by its watcher, because the pipe
   * is removed.
   *
   * @returns `undefined` if it isn't running anymore, or can't be recognized.
   */
  static async takeOver(record: ServerRecord, healthMs: number, signal: AbortSignal): Promise<LlamaServer | undefined> {
    if (!await isStillRunning(record)) {
      if (record.pipe !== null) await Deno.remove(record.pipe).catch(() => {});
      return undefined;
    }
    const pipe = record.pipe === null ? undefined : await WatcherPipe.open(record.pipe);
    const server = new LlamaServer(record, await takeOverProcess(record.pid, pipe), healthMs);
    if (await server.#knowsKey(signal)) return server;
    await server.stop();
    return undefined;
  }

  /** Stops the server. */
  async stop(): Promise<void> {
    await this.process.stop();
    this.#client.close();
  }

  /** Lets the server run on after the end of Parlor. Stops it where that isn't possible. */
  async leave(): Promise<void> {
    if (this.process.leave === undefined) return await this.stop();
    this.process.leave();
    this.#client.close();
  }

  /** Waits until the server is ready. @returns False if it isn't after `withinMs`. */
  async waitUntilHealthy(withinMs: number, pollMs: number, signal: AbortSignal): Promise<boolean> {
    const until = performance.now() + withinMs;
    while (performance.now() < until) {
      if (await this.isHealthy(signal)) return true;
      await delay(pollMs, signal);
    }
    return false;
  }

  /** Returns whether the server is ready. `/health` requires no key and returns 503 while the model is loading. */
  async isHealthy(signal: AbortSignal): Promise<boolean> {
    return await this.#ask("/health", signal, (answer) => Promise.resolve(answer.ok)) ?? false;
  }

  /** Returns whether the server is generating. */
  async isBusy(signal: AbortSignal): Promise<boolean> {
    const slots = await this.#ask("/slots", signal, (answer) => answer.json());
    return Array.isArray(slots) && slots.some((slot) => slot?.is_processing === true);
  }

  /** Returns whether the server accepts its key, also while it loads its model. */
  async #knowsKey(signal: AbortSignal): Promise<boolean> {
    const status = await this.#ask("/slots", signal, (answer) => Promise.resolve(answer.status));
    return status !== undefined && status !== 401 && status !== 403;
  }

  /** Sends a request. Returns `undefined` if there is no response. */
  async #ask<T>(path: string, signal: AbortSignal, read: (answer: Response) => Promise<T>): Promise<T | undefined> {
    signal.throwIfAborted();
    try {
      const { baseUrl, apiKey } = this;
      const [connectMs, firstByteMs, idleMs] = [this.#healthMs, this.#healthMs, this.#healthMs];
      const answer = await this.#client.fetch(
        "the local model server",
        { baseUrl, apiKey, timeouts: { connectMs, firstByteMs, idleMs } },
        { url: baseUrl + path, headers: toBearerHeader(apiKey) },
        AbortSignal.any([signal, AbortSignal.timeout(this.#healthMs)]),
      );
      const found = await read(answer);
      if (!answer.bodyUsed) await answer.body?.cancel();
      return found;
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }
}

function findFreePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Options for running a model. */
export interface LlamaOptions {
  modelPath: string;
  /** Vision projector that belongs to the model. */
  projectorPath?: string;
  port: number;
  contextSize: number;
  /** Number of layers for the graphics card; by default llama.cpp decides. */
  gpuLayers?: number;
}

const PROGRAM = "llama-server";

/** How to install the program, in one sentence. */
export const HOW_TO_GET =
  "Install llama.cpp (macOS and Linux: brew install llama.cpp, Windows: winget install llama.cpp, or a build from " +
  "https://github.com/ggml-org/llama.cpp/releases), or set llama_server_path to its llama-server";

/**
 * Finds the program: the configured one, or else the first on PATH.
 *
 * @param configured `llama_server_path`
 * @returns Its path; `undefined` if there is none.
 */
export async function findLlamaServer(configured: string | null): Promise<string | undefined> {
  if (configured !== null) return await isFile(configured) ? configured : undefined;
  return await findOnPath(PROGRAM);
}

/** Creates the error for a missing program. */
export function notFound(configured: string | null): AppError {
  const where = configured === null ? `${PROGRAM} isn't on PATH` : `the file "${configured}" doesn't exist`;
  return new AppError("not_available", `Can't run the model: ${where}. ${HOW_TO_GET}`);
}

/** Returns the arguments for a model. The key is passed in the environment, because every user of the machine can read arguments. */
function createLlamaArguments(options: LlamaOptions): string[] {
  const { modelPath, projectorPath, port, contextSize, gpuLayers } = options;
  return [
    ...["--model", modelPath],
    ...projectorPath === undefined ? [] : ["--mmproj", projectorPath],
    ...["--alias", basename(modelPath), "--host", "127.0.0.1", "--port", String(port)],
    // A single slot has the whole context and retains the conversation's prefix between messages.
    ...["--ctx-size", String(contextSize), "--parallel", "1"],
    ...gpuLayers === undefined ? [] : ["--n-gpu-layers", String(gpuLayers)],
  ];
}

/** Returns a shell command that runs a model. */
export function createLlamaCommand(program: string | undefined, options: LlamaOptions): string {
  return [program ?? PROGRAM, ...createLlamaArguments(options)].map(quoteArgument).join(" ");
}

function quoteArgument(word: string): string {
  if (/^[A-Za-z0-9_./:=@%+-]+$/.test(word)) return word;
  return Deno.build.os === "windows" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Timeouts and intervals of the runner. */
export interface RunnerTimes {
  /** Maximum time from the start until it's ready. Loading a large file from a slow disk takes minutes. */
  startMs: number;
  startPollMs: number;
  /** Between two health checks. */
  watchMs: number;
  /** Time limit of a health check. */
  healthMs: number;
  /** First delay before a restart. It doubles each time. */
  restartMs: number;
  /** How long a server without Parlor waits for the next one. */
  leftMs: number;
}

export const SUPERVISOR_TIMES: RunnerTimes = {
  startMs: 10 * 60_000,
  startPollMs: 250,
  watchMs: 5_000,
  healthMs: 10_000,
  restartMs: 1_000,
  leftMs: 10 * 60_000,
};

/** The reason of a signal that lets the server run on after the end of Parlor. */
export const LEAVE_RUNNING = new DOMException("The local model is left running", "AbortError");

/** What to run, and the listeners. */
export interface SupervisedModel {
  program: string;
  options: Omit<LlamaOptions, "port">;
  /** A server of an earlier Parlor, to go on with. */
  takenOver?: LlamaServer;
  /** Returns a new path for the pipe of a server's watcher. */
  createPipePath(): Promise<string>;
  /** Minutes without use after which it's stopped; 0 for never. */
  idleMinutes: number;
  /** Last use, by `performance.now()`. Updated by the runner. */
  usage: { atMs: number };
  times: RunnerTimes;
  log: Log;
  /** Stops the model; with the reason `LEAVE_RUNNING`, its server runs on. */
  signal: AbortSignal;
  /** Called at each start, before the server responds. */
  onStart(server: LlamaServer): Promise<void>;
  /** Called when the server is ready. */
  onReady(server: LlamaServer): Promise<void>;
  /** Called when the server has ended, unless it was left. */
  onEnd(): Promise<void>;
  /** Called with status changes. */
  onChange(change: Partial<Pick<RunnerStatus, "state" | "error" | "restarts" | "memoryBytes" | "startedAtMs">>): void;
}

type RunEnd =
  /** Stopped by the user, or idle. */
  | { kind: "stopped" }
  /** A restart wouldn't help. */
  | { kind: "failed"; message: string }
  | { kind: "ended"; wasReady: boolean; message: string };

/** Number of consecutive failed health checks after which the server is considered hung. */
const MAX_FAILED_CHECKS = 3;
/** Maximum number of consecutive restarts. The count resets after `STEADY_MS`. */
const MAX_RESTARTS = 3;
const STEADY_MS = 10 * 60_000;
/** Share of memory that must stay free for the system. */
const MIN_FREE_SHARE = 0.03;

/**
 * Runs the program, with restarts, until it's stopped or idle.
 *
 * @throws {Error} if it doesn't start or ends too often; the abort reason
 */
export async function keepRunning(model: SupervisedModel): Promise<void> {
  let inARow = 0;
  let server = model.takenOver;
  for (let restarts = 1;; restarts++) {
    const beganAt = performance.now();
    const { program, options, times } = model;
    server ??= await LlamaServer.start({ program, options, pipePath: await model.createPipePath(), times });
    const end = await runOnce(model, server);
    server = undefined;
    if (end.kind === "stopped") return;
    if (end.kind === "failed" || !end.wasReady) throw new Error(end.message);
    inARow = performance.now() - beganAt > STEADY_MS ? 1 : inARow + 1;
    if (inARow > MAX_RESTARTS) throw new Error(`${end.message}; stopped after ${MAX_RESTARTS} restarts`);
    model.log("warn", "The local model ended and is being restarted", { cause: end.message });
    const ended = { memoryBytes: undefined, startedAtMs: undefined } satisfies Partial<RunnerStatus>;
    model.onChange({ state: "starting", error: end.message, restarts, ...ended });
    await delay(model.times.restartMs * 2 ** (inARow - 1), model.signal);
  }
}

async function runOnce(model: SupervisedModel, server: LlamaServer): Promise<RunEnd> {
  const { signal, times } = model;
  let wasReady = false;
  const exit = server.process.ended.then((end): RunEnd => ({ kind: "ended", wasReady, message: describeExit(end) }));
  const watching = new AbortController();
  const onAbort = () => watching.abort();
  signal.addEventListener("abort", onAbort);
  const follow = async (): Promise<RunEnd> => {
    signal.throwIfAborted();
    await model.onStart(server);
    if (!await server.waitUntilHealthy(times.startMs, times.startPollMs, watching.signal)) {
      return { kind: "failed", message: `it wasn't ready after ${Math.round(times.startMs / 1000)} s` };
    }
    await model.onReady(server);
    wasReady = true;
    return await watch(model, server, watching.signal);
  };
  try {
    return await Promise.race([exit, follow()]);
  } catch (error) {
    if (signal.aborted) return { kind: "stopped" };
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    watching.abort();
    if (signal.reason === LEAVE_RUNNING) {
      await server.leave();
    } else {
      await server.stop();
      await model.onEnd();
    }
  }
}

/** Checks a running server at intervals. Returns why it must be stopped. */
async function watch(model: SupervisedModel, server: LlamaServer, signal: AbortSignal): Promise<RunEnd> {
  const { idleMinutes, usage, times } = model;
  let knownMemory: number | undefined;
  for (let silent = 0;;) {
    await delay(times.watchMs, signal);
    silent = await server.isHealthy(signal) ? 0 : silent + 1;
    if (silent === MAX_FAILED_CHECKS) return { kind: "ended", wasReady: true, message: "it no longer responded" };
    const memory = freeMemory();
    if (memory.free < memory.total * MIN_FREE_SHARE) {
      return { kind: "failed", message: "it was stopped because the machine ran low on memory" };
    }
    const memoryBytes = await measureResidentBytes(server.process.pid);
    signal.throwIfAborted();
    if (memoryBytes !== knownMemory) model.onChange({ memoryBytes });
    knownMemory = memoryBytes;
    const isIdle = idleMinutes > 0 && performance.now() - usage.atMs > idleMinutes * 60_000;
    if (!isIdle) continue;
    if (!await server.isBusy(signal)) return { kind: "stopped" };
    usage.atMs = performance.now();
  }
}

function describeExit({ code, signal }: ProcessEnd): string {
  if (code === null && signal === null) return "llama-server ended";
  if (signal === "SIGKILL") return "llama-server was killed, probably because the system ran out of memory";
  return signal === null ? `llama-server ended with code ${code}` : `llama-server was ended by ${signal}`;
}
