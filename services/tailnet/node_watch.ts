/** Follows the node's messages: keeps the last one of each kind and wakes the controller. */
import { AppError } from "../errors.ts";
import { delay } from "../async/delay.ts";
import { type LocalApi, type Notice, removeSecrets } from "./local_api.ts";
import type { NodeTimes } from "./node_status.ts";

/** The node's message to a slow consumer. It isn't shown to the owner. */
const OUR_OWN_FAULT = /fell behind|too slow/i;

/** Follows the messages of one node. */
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

  /** Last error message. */
  get errorMessage(): string {
    return this.#errorMessage;
  }

  /** Last sign-in URL. */
  get browseUrl(): string {
    return this.#browseUrl;
  }

  /** Health warnings by code. */
  get health(): ReadonlyMap<string, string> {
    return this.#health;
  }

  /** Opens the stream and follows it until the signal aborts. @throws {AppError} if it can't be opened */
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
        // Messages may have been lost, so read the status again.
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

  /** Clears the messages about the previous state. */
  forget(): void {
    this.#errorMessage = "";
    this.#browseUrl = "";
  }

  /** Wakes `untilNews`. */
  wake(): void {
    this.#hasRung = true;
    this.#ring();
  }

  /** Waits for a message or the timeout. @throws The abort reason. */
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
    if (errorMessage && !OUR_OWN_FAULT.test(errorMessage)) this.#errorMessage = removeSecrets(errorMessage);
    if (health !== undefined) {
      this.#health = new Map([...health].map(([code, text]) => [code, removeSecrets(text)]));
    }
    this.wake();
  }
}
