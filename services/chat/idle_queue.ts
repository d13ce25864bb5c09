/** Runs background calls to models one at a time while no reply is being written. A reply that starts cancels them. */
import type { LiveReplies } from "../conversations/live_replies.ts";
import type { EventHub } from "../events/event_hub.ts";

/** Work for the time between replies. */
export interface IdleTask {
  /** @param signal Fires when a reply starts or the server closes. */
  run(signal: AbortSignal): Promise<void>;
  /** Called with what `run` threw, unless its signal fired. */
  onError(error: unknown): void;
}

/** Dependencies of an IdleQueue. */
export interface IdleQueueDeps {
  live: LiveReplies;
  events: EventHub;
  /** How long no reply may have run before a task starts. `Infinity` disables the queue. */
  idleMs?: number;
}

const IDLE_MS = 1_000;
/** Tasks that wait. Each holds its prompt in memory. */
const MAX_WAITING = 16;

/** Runs tasks, the newest first. */
export class IdleQueue {
  readonly #deps: IdleQueueDeps;
  /** By name, the newest last. */
  readonly #waiting = new Map<string, IdleTask>();
  readonly #unsubscribe: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #current: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(deps: IdleQueueDeps) {
    this.#deps = deps;
    this.#unsubscribe = deps.events.subscribe(({ kind }) => {
      // At once, before the reply calls the model.
      if (kind === "reply_started") this.#current?.abort();
      if (kind === "reply_started" || kind === "reply_ended") this.#schedule();
    });
  }

  /** Adds a task. It replaces one that waits under the same name. */
  add(name: string, task: IdleTask): void {
    if (this.#isClosed || this.#deps.idleMs === Infinity) return;
    this.#waiting.delete(name);
    this.#waiting.set(name, task);
    if (this.#waiting.size > MAX_WAITING) this.#waiting.delete(this.#waiting.keys().next().value!);
    this.#schedule();
  }

  /** Cancels the running task and drops the waiting ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    this.#current?.abort();
    await this.#running;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#waiting.size === 0 || this.#isBusy()) return;
    this.#timer = setTimeout(() => {
      if (!this.#isBusy()) this.#running = this.#runNext();
    }, this.#deps.idleMs ?? IDLE_MS);
  }

  #isBusy(): boolean {
    return this.#current !== undefined || this.#deps.live.all().length > 0;
  }

  async #runNext(): Promise<void> {
    const [name, task] = [...this.#waiting].at(-1)!;
    this.#waiting.delete(name);
    const controller = this.#current = new AbortController();
    try {
      await task.run(controller.signal);
    } catch (error) {
      // A task that a reply cancelled runs again later, unless a newer one took its name.
      if (!controller.signal.aborted) task.onError(error);
      else if (!this.#waiting.has(name)) this.#waiting.set(name, task);
    } finally {
      this.#current = undefined;
      this.#schedule();
    }
  }
}
