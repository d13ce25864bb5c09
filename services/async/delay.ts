/**
 * Waits: delays that end early, and pauses of long work on the serving thread, so that requests and streams run in
 * between.
 */

/**
 * Resolves after a time.
 *
 * @param wake Ends the wait early once it settles, whether it succeeded or failed.
 * @throws The reason of `signal`, if that fires first.
 */
export async function delay(ms: number, signal?: AbortSignal, wake?: Promise<unknown>): Promise<void> {
  signal?.throwIfAborted();
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  const abort = () => over.reject(signal!.reason);
  signal?.addEventListener("abort", abort, { once: true });
  wake?.then(() => over.resolve(), () => over.resolve());
  try {
    await over.promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/** Waits for work, but no longer than until the signal aborts. The work continues. @throws The reason of `signal` */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {}); // What fails after the signal has no effect anymore.
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Longest time that work may hold the event loop. A longer tick shows as a late token in some stream. */
const TICK_MS = 8;

/**
 * Turns of the event loop after which sockets have been polled. While there is always something to do, such as answers of
 * Web Crypto, the runtime polls them only at every 61st turn, and timers fire without it. A turn takes about 1 µs.
 *
 * @see https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html#method.event_interval
 */
const POLLED_AFTER_TURNS = 64;

/** Time that work has held the event loop since sockets were polled, in earlier turns. */
let heldMs = 0;
/** When work first asked in the current turn. */
let heldSince: number | undefined;
/** When the last turn with work ended. */
let releasedAt = 0;

/** Work that yielded, in the order in which it continues. */
const waiting: (() => void)[] = [];
let isScheduled = false;

/** Whether work has held the event loop for as long as it may. The time counts from the first call in a turn. */
export function isTickUsedUp(): boolean {
  const now = performance.now();
  if (heldSince === undefined) {
    // Work that waits for other threads holds it for many short turns. Only a pause as long as they were ends the tick.
    heldMs = Math.max(0, heldMs - (now - releasedAt));
    heldSince = now;
    setImmediate(endTurn);
  }
  return heldMs + now - heldSince >= TICK_MS;
}

/**
 * Lets other work run. Splits long work on the serving thread, so that requests and streams run in between.
 *
 * All work shares the time of a tick: ten imports and saves at once hold the event loop for as long as one.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    schedule();
  });
}

/** Lets other work run if the current tick is used up. Call it between steps of about a millisecond. */
export async function yieldIfTickUsedUp(): Promise<void> {
  if (isTickUsedUp()) await yieldToEventLoop();
}

function endTurn(): void {
  if (heldSince === undefined) return;
  releasedAt = performance.now();
  heldMs += releasedAt - heldSince;
  heldSince = undefined;
}

/** Starts the next tick once sockets have been polled. */
function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  let turns = 0;
  const next = () => {
    if (++turns < POLLED_AFTER_TURNS) return void setImmediate(next);
    heldMs = 0;
    continueWork(waiting.length);
  };
  // By a timer first: a machine with nothing else to do rests for a millisecond.
  setTimeout(next);
}

/** Continues work that yielded before this tick until the tick is used up. @param count How much of it is left. */
function continueWork(count: number): void {
  isTickUsedUp(); // starts the clock
  waiting.shift()!();
  setImmediate(() => {
    if (count > 1 && !isTickUsedUp()) return continueWork(count - 1);
    isScheduled = false;
    if (waiting.length > 0) schedule();
  });
}
