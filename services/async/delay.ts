/**
 * Delays that can end early, and yielding: long work on the serving thread pauses so that requests and streams can run.
 */

/**
 * Resolves after `ms` milliseconds.
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

/**
 * Waits for work until the signal aborts. The work itself continues.
 *
 * @throws The reason of `signal`
 */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {}); // A later failure has no effect.
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

/** Maximum time that work may block the event loop. Longer ticks delay tokens in streams. */
const TICK_MS = 8;

/**
 * Number of event loop iterations after which sockets have been polled for sure. While other work is ready, such as
 * results of Web Crypto, the runtime polls them only at every 61st iteration, but timers still fire. An iteration takes
 * about 1 µs.
 *
 * @see https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html#method.event_interval
 */
const POLLED_AFTER_TICKS = 64;

/** Time that work has blocked the event loop since sockets were last polled, without the current iteration. */
let heldMs = 0;
/** When work first asked in the current iteration. */
let heldSince: number | undefined;
/** When the last iteration with work ended. */
let releasedAt = 0;

/** Work that has yielded, in the order in which it will continue. */
const waiting: (() => void)[] = [];
let isScheduled = false;

/**
 * Returns whether work has blocked the event loop for the maximum time. The time counts from the first call in an
 * iteration.
 */
export function isTickUsedUp(): boolean {
  const now = performance.now();
  if (heldSince === undefined) {
    // Work that waits for other threads runs in many short iterations. Only an equally long pause resets the clock.
    heldMs = Math.max(0, heldMs - (now - releasedAt));
    heldSince = now;
    setImmediate(endTick);
  }
  return heldMs + now - heldSince >= TICK_MS;
}

/**
 * Lets other work run. Call it in long work on the serving thread, so that requests and streams aren't delayed.
 *
 * All work shares the time of a tick: ten imports and saves at once block the event loop no longer than one.
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

/** Runs work that yields after each step of about a millisecond, and lets other work run in between. */
export async function runInSteps<T>(work: Generator<void, T>): Promise<T> {
  for (let step = work.next();; step = work.next()) {
    if (step.done) return step.value;
    await yieldIfTickUsedUp();
  }
}

/** Runs the same work at once. */
export function runAtOnce<T>(work: Generator<void, T>): T {
  for (let step = work.next();; step = work.next()) if (step.done) return step.value;
}

function endTick(): void {
  if (heldSince === undefined) return;
  releasedAt = performance.now();
  heldMs += releasedAt - heldSince;
  heldSince = undefined;
}

/** Starts the next tick once sockets have been polled. */
function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  let ticks = 0;
  const next = () => {
    if (++ticks < POLLED_AFTER_TICKS) return void setImmediate(next);
    heldMs = 0;
    continueWork(waiting.length);
  };
  // Starts with a timer, so that the processor rests for a millisecond if it has no other work.
  setTimeout(next);
}

/**
 * Continues work that yielded before this tick until the tick is used up.
 *
 * @param count How many pieces of that work are left.
 */
function continueWork(count: number): void {
  isTickUsedUp(); // Starts the clock.
  waiting.shift()!();
  setImmediate(() => {
    if (count > 1 && !isTickUsedUp()) return continueWork(count - 1);
    isScheduled = false;
    if (waiting.length > 0) schedule();
  });
}
