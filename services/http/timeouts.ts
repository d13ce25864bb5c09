/** The time limits of one call and the single abort that they share with the caller. */
import type { UpstreamTimeouts } from "../llm/provider.ts";
import { UpstreamError } from "./upstream_error.ts";

// After the finish reason only usage and the end mark can follow; a server that holds the line open then must not hold the reply.
const ENDING_MS = 10_000;
/** Looks at a silent stream until its limit has passed. */
const STEPS = 50;
/** Why a call that is over is aborted. Made once: an exception with its stack for every call costs more than the call's end. */
const ENDED = new Error("The call is over");

/**
 * Watches one call: before its first byte, between bytes, and for the caller's leaving.
 *
 * A byte costs no clock reading: a timer looks now and then whether any came, so that silence between bytes may last
 * up to 1/50 longer than its limit before it is found.
 */
export class CallWatch {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #place: string;
  readonly #idleMs: number;
  #limitMs: number;
  /** Since when nothing has come, as far as the timer has seen. */
  #quietSince = performance.now();
  #isWaiting = true;
  /** Something came, or the reader did something else, since the timer's last look. */
  #hadSign = false;
  #phase: "answer" | "idle" | "ending" = "answer";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failure: UpstreamError | undefined;

  /** @param place The server as shown to the owner. */
  constructor(timeouts: UpstreamTimeouts, caller: AbortSignal, place: string) {
    this.#caller = caller;
    this.#place = place;
    this.#limitMs = timeouts.firstByteMs;
    this.#idleMs = timeouts.idleMs;
    if (caller.aborted) this.#leave();
    else {
      caller.addEventListener("abort", this.#leave, { once: true });
      this.#arm(this.#limitMs);
    }
  }

  /** Fires on the caller's abort, on a passed limit and on `end`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True while no byte of the answer has come. */
  get isUnanswered(): boolean {
    return this.#phase === "answer";
  }

  /** To be called before each read: time that the reader spends on its own is not the server's silence. */
  waiting(): void {
    this.#isWaiting = true;
    if (this.#phase !== "answer") this.#hadSign = true;
  }

  /** To be called when bytes have come. */
  arrived(): void {
    this.#isWaiting = false;
    if (this.#phase === "answer") this.#enter("idle", this.#idleMs);
  }

  /** To be called when the finish reason has come. */
  ending(): void {
    if (this.#phase !== "ending") this.#enter("ending", Math.min(this.#idleMs, ENDING_MS));
  }

  /** Ends the call with a failure of our own finding. */
  fail(failure: UpstreamError): void {
    this.#failure ??= failure;
    this.#controller.abort(failure);
  }

  /** What a thrown value of fetch or read stands for: the caller's reason, our own limit, or itself. */
  reasonOf(thrown: unknown): { own: unknown } | { foreign: unknown } {
    if (this.#failure) return { own: this.#failure };
    if (this.#caller.aborted) return { own: this.#caller.reason };
    return { foreign: thrown };
  }

  /** Releases the timer and the caller's signal; the call itself goes on or has ended. */
  release(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener("abort", this.#leave);
  }

  /** Releases and ends the call upstream, if it still runs. */
  end(): void {
    this.release();
    this.#controller.abort(ENDED);
  }

  readonly #leave = (): void => this.#controller.abort(this.#caller.reason);

  #enter(phase: "idle" | "ending", limitMs: number): void {
    this.#phase = phase;
    this.#limitMs = limitMs;
    this.#quietSince = performance.now();
    this.#hadSign = false;
    this.#arm(limitMs / STEPS);
  }

  #arm(delayMs: number): void {
    clearTimeout(this.#timer);
    // The longest delay a timer takes is 2^31 - 1 ms; more would fire at once.
    this.#timer = setTimeout(this.#check, Math.min(delayMs, 2_147_483_647));
  }

  readonly #check = (): void => {
    const now = performance.now();
    if (this.#hadSign || !this.#isWaiting) {
      this.#hadSign = false;
      this.#quietSince = now;
    }
    const leftMs = this.#limitMs - (now - this.#quietSince);
    // Timers may fire a fraction of a millisecond early.
    if (leftMs > 1) return this.#arm(this.#phase === "answer" ? leftMs : Math.min(leftMs, this.#limitMs / STEPS));
    const message = this.#phase === "answer"
      ? `Cannot get an answer from the model at "${this.#place}": no answer after ${this.#limitMs} ms`
      : `The model at "${this.#place}" fell silent in the middle of its answer: no byte for ${this.#limitMs} ms`;
    this.fail(new UpstreamError("timeout", message));
  };
}
