/** llama.cpp's server: finds the program, builds its command line and starts it. */
import { basename } from "node:path";
import { delay } from "../../async/delay.ts";
import { randomToken } from "../../crypto/random.ts";
import { AppError } from "../../errors.ts";
import { findOnPath, isFile, startWatched, type WatchedProcess } from "../../process/supervised_process.ts";

/** A running llama-server on a free port of the loopback interface, with a random key. */
export class LlamaServer {
  /** Without a path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly process: WatchedProcess;
  readonly #healthMs: number;

  /**
   * Starts it; it answers when it has loaded its model.
   *
   * @param healthMs Longest wait for an answer.
   * @throws {AppError} `not_available` if the program can't be started
   */
  constructor(program: string, options: Omit<LlamaOptions, "port">, healthMs: number) {
    const port = findFreePort();
    this.baseUrl = `http://127.0.0.1:${port}`;
    this.apiKey = randomToken(24);
    this.#healthMs = healthMs;
    this.process = startWatched(program, {
      args: createLlamaArguments({ ...options, port }),
      env: { LLAMA_API_KEY: this.apiKey },
    });
  }

  /** Waits until the server is ready. @returns False if it isn't after `withinMs`. */
  async untilHealthy(withinMs: number, pollMs: number, signal: AbortSignal): Promise<boolean> {
    const until = performance.now() + withinMs;
    while (performance.now() < until) {
      if (await this.isHealthy(signal)) return true;
      await delay(pollMs, signal);
    }
    return false;
  }

  /** Returns whether the server is ready. `/health` needs no key and is 503 while the model loads. */
  async isHealthy(signal: AbortSignal): Promise<boolean> {
    return await this.#ask("/health", signal, (answer) => Promise.resolve(answer.ok)) ?? false;
  }

  /** Returns whether the server is generating. */
  async isBusy(signal: AbortSignal): Promise<boolean> {
    const slots = await this.#ask("/slots", signal, (answer) => answer.json());
    return Array.isArray(slots) && slots.some((slot) => slot?.is_processing === true);
  }

  /** Returns `undefined` if there is no answer. */
  async #ask<T>(path: string, signal: AbortSignal, read: (answer: Response) => Promise<T>): Promise<T | undefined> {
    signal.throwIfAborted();
    try {
      const answer = await fetch(this.baseUrl + path, {
        headers: { authorization: `Bearer ${this.apiKey}` },
        signal: AbortSignal.any([signal, AbortSignal.timeout(this.#healthMs)]),
      });
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

/** How a model is to be run. */
export interface LlamaOptions {
  modelPath: string;
  /** Vision projector that belongs to the model. */
  projectorPath?: string;
  port: number;
  contextSize: number;
  /** Layers for the graphics card; llama.cpp decides where it is left out. */
  gpuLayers?: number;
}

const PROGRAM = "llama-server";

/** Where to get the program, in one sentence. */
export const HOW_TO_GET =
  "Install llama.cpp (macOS and Linux: brew install llama.cpp, Windows: winget install llama.cpp, or a build from " +
  "https://github.com/ggml-org/llama.cpp/releases), or set llama_server_path to its llama-server";

/**
 * Finds the program: the configured one, else the first on PATH.
 *
 * @param configured `llama_server_path`
 * @returns Its path; `undefined` when there is none.
 */
export async function findLlamaServer(configured: string | null): Promise<string | undefined> {
  if (configured !== null) return await isFile(configured) ? configured : undefined;
  return await findOnPath(PROGRAM);
}

/** The error for a missing program. */
export function notFound(configured: string | null): AppError {
  const where = configured === null ? `${PROGRAM} is not on PATH` : `there is no file "${configured}"`;
  return new AppError("not_available", `Can't run the model: ${where}. ${HOW_TO_GET}`);
}

/** Returns the arguments for a model. The key is passed in the environment, because every user of the machine can read arguments. */
function createLlamaArguments(options: LlamaOptions): string[] {
  const { modelPath, projectorPath, port, contextSize, gpuLayers } = options;
  return [
    ...["--model", modelPath],
    ...projectorPath === undefined ? [] : ["--mmproj", projectorPath],
    ...["--alias", basename(modelPath), "--host", "127.0.0.1", "--port", String(port)],
    // One slot has the whole context, and keeps the conversation's prefix between turns.
    ...["--ctx-size", String(contextSize), "--parallel", "1"],
    ...gpuLayers === undefined ? [] : ["--n-gpu-layers", String(gpuLayers)],
  ];
}

/** Returns the shell command that runs a model. */
export function llamaCommand(program: string | undefined, options: LlamaOptions): string {
  return [program ?? PROGRAM, ...createLlamaArguments(options)].map(quoted).join(" ");
}

function quoted(word: string): string {
  if (/^[A-Za-z0-9_./:=@%+-]+$/.test(word)) return word;
  return Deno.build.os === "windows" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
