/** The node's own messages, kept open for ever: the last words of each kind, and a bell that rings with every one. */
import { AppError } from "../errors.ts";
import { delay } from "../async/delay.ts";
import { type LocalApi, withoutSecrets } from "./local_api.ts";
import type { NodeTimes } from "./node_status.ts";
import type { Notice } from "./notices.ts";

/** A consumer that fell behind is told so before its stream ends; that is no business of the owner's. */
const OUR_OWN_FAULT = /fell behind|too slow/i;

/** Listens to one node. */
export class Watch {
  readonly #api: LocalApi;
  readonly #times: NodeTimes;
  #ring: () => void = () => {};
  #hasRung = false;
  #errorMessage = "";
  #browseUrl = "";
  #health: ReadonlyMap<string, string> = new Map();

  constructor(api: LocalApi, times: NodeTimes) {
    this.#api = api;
    this.#times = times;
  }

  /** Last words meant for a person. */
  get errorMessage(): string {
    return this.#errorMessage;
  }

  /** Last sign-in address. */
  get browseUrl(): string {
    return this.#browseUrl;
  }

  /** What is wrong, by its code. */
  get health(): ReadonlyMap<string, string> {
    return this.#health;
  }

  /** Opens the stream and goes on listening until the signal fires. @throws {AppError} when it cannot be opened. */
  async begin(signal: AbortSignal): Promise<void> {
    const begun = Promise.withResolvers<void>();
    const listen = async () => {
      for (;;) {
        try {
          for await (const notice of this.#api.watch(signal)) {
            begun.resolve();
            this.#take(notice);
          }
          begun.reject(new AppError("upstream_error", "The node ends its messages before the first one"));
        } catch (error) {
          if (signal.aborted) return;
          begun.reject(error);
        }
        // Read anew: what it said meanwhile is lost.
        this.wake();
        await delay(this.#times.pollMs, signal);
      }
    };
    listen().catch((error) => begun.reject(error)); // ended by the signal
    const limit = setTimeout(() => {
      begun.reject(new AppError("upstream_timeout", "The node says nothing"));
    }, this.#times.answerMs);
    const leave = () => begun.reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    await begun.promise.finally(() => {
      clearTimeout(limit);
      signal.removeEventListener("abort", leave);
    });
  }

  /** Forgets what was said about a state that is over. */
  forget(): void {
    this.#errorMessage = "";
    this.#browseUrl = "";
  }

  /** Rings the bell. */
  wake(): void {
    this.#hasRung = true;
    this.#ring();
  }

  /** Waits for the bell or so many milliseconds. @throws The signal's reason. */
  async untilNews(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#hasRung) {
      const waiting = new AbortController();
      this.#ring = () => waiting.abort();
      await delay(ms, AbortSignal.any([signal, waiting.signal])).catch(() => {});
      this.#ring = () => {};
    }
    this.#hasRung = false;
    signal.throwIfAborted();
  }

  #take({ browseUrl, errorMessage, health }: Notice): void {
    if (browseUrl) this.#browseUrl = browseUrl;
    if (errorMessage && !OUR_OWN_FAULT.test(errorMessage)) this.#errorMessage = withoutSecrets(errorMessage);
    if (health !== undefined) {
      this.#health = new Map([...health].map(([code, text]) => [code, withoutSecrets(text)]));
    }
    this.wake();
  }
}
