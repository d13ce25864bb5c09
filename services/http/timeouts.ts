/** The time limits of one outbound call, and the abort signal they share with the caller. */
import type { AppError } from "../errors.ts";
import { UpstreamError } from "./upstream_error.ts";

/** How long a server may take, in milliseconds. */
export interface CallTimeouts {
  /** Until the machine accepts the TCP connection. */
  connectMs: number;
  /** Until the first byte of the response body. A long prompt on a slow machine takes minutes. */
  firstByteMs: number;
  /** Between two bytes of the response body. SSE comments count as bytes. */
  idleMs: number;
}

// Only usage and the end mark can follow the finish reason, so a server that keeps the connection open must not delay the reply.
const ENDING_MS = 10_000;
/** How often the timer checks a silent stream within its limit. */
const CHECKS_PER_LIMIT = 50;
/** setTimeout takes at most 2^31 - 1 ms; a longer delay would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;
/** The abort reason of finished calls. Shared, because creating an exception with its stack costs more than ending the call. */
const ENDED = new Error("The call has ended");

/**
 * Enforces the time limits of one call.
 *
 * Receiving a byte does not read the clock. A timer checks from time to time whether bytes have arrived, so a silent
 * connection is detected up to 1/50 of the idle limit late.
 */
export class CallTimer {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #server: string;
  readonly #idleMs: number;
  #limitMs: number;
  /** When the timer last saw activity. */
  #silentSince = performance.now();
  #isWaiting = true;
  /** True if there was activity since the timer's last check. */
  #wasActive = false;
  #phase: "first_byte" | "idle" | "ending" = "first_byte";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failure: AppError | undefined;

  /** @param server How errors name the server: `the model at "http://127.0.0.1:8080"`. */
  constructor(timeouts: CallTimeouts, server: string, caller?: AbortSignal) {
    this.#caller = caller;
    this.#server = server;
    this.#limitMs = timeouts.firstByteMs;
    this.#idleMs = timeouts.idleMs;
    if (caller?.aborted) this.#onCallerAbort();
    else {
      caller?.addEventListener("abort", this.#onCallerAbort, { once: true });
      this.#schedule(this.#limitMs);
    }
  }

  /** Aborts when the caller aborts, when a limit is exceeded, and on `end`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Call before each read. Time the reader spends elsewhere does not count as the server's silence. */
  startReading(): void {
    this.#isWaiting = true;
    if (this.#phase !== "first_byte") this.#wasActive = true;
  }

  /** Call when bytes have arrived. */
  receivedBytes(): void {
    this.#isWaiting = false;
    if (this.#phase === "first_byte") this.#enter("idle", this.#idleMs);
  }

  /** Call when the finish reason has arrived: what follows is short. */
  startEnding(): void {
    if (this.#phase !== "ending") this.#enter("ending", Math.min(this.#idleMs, ENDING_MS));
  }

  /** Aborts the call with an error. The first error wins. */
  fail(failure: AppError): void {
    this.#failure ??= failure;
    this.#controller.abort(failure);
  }

  /** Returns why the call was aborted: our own error or the caller's reason. Undefined if neither happened. */
  findAbortReason(): { reason: unknown } | undefined {
    if (this.#failure) return { reason: this.#failure };
    if (this.#caller?.aborted) return { reason: this.#caller.reason };
    return undefined;
  }

  /** Releases the timer and the caller's signal. The call itself continues, or has finished. */
  release(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#onCallerAbort);
  }

  /** Releases the timer and aborts the call if it is still running. */
  end(): void {
    this.release();
    this.#controller.abort(ENDED);
  }

  readonly #onCallerAbort = (): void => this.#controller.abort(this.#caller?.reason);

  #enter(phase: "idle" | "ending", limitMs: number): void {
    this.#phase = phase;
    this.#limitMs = limitMs;
    this.#silentSince = performance.now();
    this.#wasActive = false;
    this.#schedule(limitMs / CHECKS_PER_LIMIT);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#check, Math.min(delayMs, MAX_TIMER_MS));
  }

  readonly #check = (): void => {
    const now = performance.now();
    if (this.#wasActive || !this.#isWaiting) {
      this.#wasActive = false;
      this.#silentSince = now;
    }
    const leftMs = this.#limitMs - (now - this.#silentSince);
    // Timers may fire a fraction of a millisecond early.
    if (leftMs > 1) {
      return this.#schedule(this.#phase === "first_byte" ? leftMs : Math.min(leftMs, this.#limitMs / CHECKS_PER_LIMIT));
    }
    const limit = formatDuration(this.#limitMs);
    const message = this.#phase === "first_byte"
      ? `No response from ${this.#server} after ${limit}`
      : `The response from ${this.#server} stopped: no data for ${limit}`;
    this.fail(new UpstreamError("timeout", message));
  };
}

/** Formats a duration for an error message: `"250 ms"`, `"30 s"`, `"15 min"`. */
export function formatDuration(ms: number): string {
  if (ms >= 300_000 && ms % 60_000 === 0) return `${ms / 60_000} min`;
  return ms >= 1000 ? `${Math.round(ms / 100) / 10} s` : `${Math.round(ms)} ms`;
}
