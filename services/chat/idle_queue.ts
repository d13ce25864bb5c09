/** Calls of the server's own, made one at a time while nobody is being answered; a reply that begins ends them at once. */
import type { EventHub } from "../events/event_hub.ts";
import type { LiveReplies } from "../conversations/live_replies.ts";

/** What is to be done when it is quiet. */
export interface IdleWork {
  /** @param leaving Fires when a reply begins or the server closes. */
  run(leaving: AbortSignal): Promise<void>;
  /** Hears of an error that is not due to a reply. */
  failed(error: unknown): void;
}

/** What the queue stands on. */
export interface IdleQueueParts {
  live: LiveReplies;
  events: EventHub;
  /** How long nobody must have been answered; infinite for never. */
  idleMs?: number;
}

const IDLE_MS = 1_000;
/** Works that wait; each holds its prompt in memory. */
const WAITING = 16;

/** Does works. */
export class IdleQueue {
  readonly #parts: IdleQueueParts;
  /** By name; the one added last is the last and done first. */
  readonly #waiting = new Map<string, IdleWork>();
  readonly #unsubscribe: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #current: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: IdleQueueParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.events.subscribe(({ kind }) => {
      // At once: the reply's own call has not gone out yet.
      if (kind === "reply_started") this.#current?.abort();
      if (kind === "reply_started" || kind === "reply_ended") this.#schedule();
    });
  }

  /** Takes a work, in the place of one that waits under the same name. */
  add(name: string, work: IdleWork): void {
    if (this.#isClosed || this.#parts.idleMs === Infinity) return;
    this.#waiting.delete(name);
    this.#waiting.set(name, work);
    if (this.#waiting.size > WAITING) this.#waiting.delete(this.#waiting.keys().next().value!);
    this.#schedule();
  }

  /** Ends a work that is under way; those that wait are not done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    this.#current?.abort();
    await this.#running;
  }

  /** Begins anew to wait for quiet. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#waiting.size === 0 || this.#isBusy()) return;
    this.#timer = setTimeout(() => {
      if (!this.#isBusy()) this.#running = this.#next();
    }, this.#parts.idleMs ?? IDLE_MS);
  }

  #isBusy(): boolean {
    return this.#current !== undefined || this.#parts.live.all().length > 0;
  }

  async #next(): Promise<void> {
    const [name, work] = [...this.#waiting].at(-1)!;
    this.#waiting.delete(name);
    const leaving = this.#current = new AbortController();
    try {
      await work.run(leaving.signal);
    } catch (error) {
      // Given up for a reply: it is its turn again when that is done, unless there is a newer one.
      if (!leaving.signal.aborted) work.failed(error);
      else if (!this.#waiting.has(name)) this.#waiting.set(name, work);
    } finally {
      this.#current = undefined;
      this.#schedule();
    }
  }
}
