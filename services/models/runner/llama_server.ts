/** One start of llama.cpp's server: its address, its key, and how it answers. */
import { randomToken } from "../../crypto/random.ts";
import { llamaArguments, type LlamaOptions } from "./llama_program.ts";
import { delay } from "../../async/delay.ts";
import { startWatched, type WatchedProcess } from "../../process/supervised_process.ts";

/** A server that was started, on a free port of the loopback interface and with a key that nobody else knows. */
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
   * @throws {AppError} `not_available` when the program cannot be started
   */
  constructor(program: string, options: Omit<LlamaOptions, "port">, healthMs: number) {
    const port = freePort();
    this.baseUrl = `http://127.0.0.1:${port}`;
    this.apiKey = randomToken(24);
    this.#healthMs = healthMs;
    this.process = startWatched(program, {
      args: llamaArguments({ ...options, port }),
      env: { LLAMA_API_KEY: this.apiKey },
    });
  }

  /** Waits until it is ready. @returns False when it is not after `withinMs`. */
  async untilHealthy(withinMs: number, pollMs: number, signal: AbortSignal): Promise<boolean> {
    const until = performance.now() + withinMs;
    while (performance.now() < until) {
      if (await this.isHealthy(signal)) return true;
      await delay(pollMs, signal);
    }
    return false;
  }

  /** Says whether it is ready: `/health` alone needs no key, and is 503 while the model is loaded. */
  async isHealthy(signal: AbortSignal): Promise<boolean> {
    return await this.#ask("/health", signal, (answer) => Promise.resolve(answer.ok)) ?? false;
  }

  /** Says whether it is writing a reply. */
  async isBusy(signal: AbortSignal): Promise<boolean> {
    const slots = await this.#ask("/slots", signal, (answer) => answer.json());
    return Array.isArray(slots) && slots.some((slot) => slot?.is_processing === true);
  }

  /** Gives `undefined` when there is no answer. */
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

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
