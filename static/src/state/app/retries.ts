/** Work that failed and may succeed soon: it is repeated until nothing fails. */
import type { ApiError } from "../../api/client.ts";
import { getRetryDelayMs } from "./backoff.ts";

/** After this long without a failure, the next one counts as the first. In milliseconds. */
const CALM_MS = 60_000;

/** The longest wait that a server may ask for, in milliseconds. */
const LONGEST_WAIT_MS = 5 * 60_000;

/**
 * Repeats work after a failure: after a delay that doubles, but not before the time that the server named, and at once
 * when the network returns or the page is looked at.
 */
export class Retries {
  readonly #repeat: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempt = 0;
  #lastAtMs = -Infinity;
  /** The time before which the server wants no request, by this page's clock. */
  #notBeforeMs = 0;

  /** @param repeat Repeats the work. Its own failures are reported to `add`. */
  constructor(repeat: () => void) {
    this.#repeat = repeat;
  }

  /** Starts to watch network and page. Returns a function that stops. */
  open(): () => void {
    const onNetwork = () => this.#runEarly();
    const onLook = () => document.visibilityState === "visible" && this.#runEarly();
    globalThis.addEventListener("online", onNetwork);
    globalThis.addEventListener("focus", onLook);
    document.addEventListener("visibilitychange", onLook);
    return () => {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      globalThis.removeEventListener("online", onNetwork);
      globalThis.removeEventListener("focus", onLook);
      document.removeEventListener("visibilitychange", onLook);
    };
  }

  /** Plans to repeat the work. Does nothing if that wouldn't help. */
  add({ isTransient, retryAfterMs = 0 }: Pick<ApiError, "isTransient" | "retryAfterMs">): void {
    if (!isTransient) return;
    const now = Date.now();
    if (now - this.#lastAtMs > CALM_MS) this.#attempt = 0;
    this.#notBeforeMs = Math.max(this.#notBeforeMs, now + Math.min(retryAfterMs, LONGEST_WAIT_MS));
    this.#timer ??= this.#schedule(getRetryDelayMs(this.#attempt));
  }

  #schedule(delayMs: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#run(), Math.max(delayMs, this.#notBeforeMs - Date.now()));
  }

  #runEarly(): void {
    if (this.#timer !== undefined && Date.now() >= this.#notBeforeMs) this.#run();
  }

  #run(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // Another response may have asked for more time since.
    if (Date.now() < this.#notBeforeMs) {
      this.#timer = this.#schedule(0);
      return;
    }
    this.#attempt++;
    this.#lastAtMs = Date.now();
    this.#repeat();
  }
}
