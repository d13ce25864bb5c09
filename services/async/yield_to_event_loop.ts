/** Splits long work on the serving thread, so that requests and streams run in between. */

/** Longest time that work may hold the event loop. A longer tick shows as a late token in some stream. */
const TICK_MS = 8;

/** When the current tick of the event loop started, as far as any work has asked. All work in a tick shares it. */
let tickStartedAt: number | undefined;

/** Whether work has held the event loop for as long as it may. The time counts from the first call in a tick. */
export function isTickUsedUp(): boolean {
  const now = performance.now();
  if (tickStartedAt === undefined) {
    tickStartedAt = now;
    setImmediate(() => tickStartedAt = undefined);
  }
  return now - tickStartedAt >= TICK_MS;
}

/** Lets other work run. */
export async function yieldToEventLoop(): Promise<void> {
  // By a timer: between two immediates the runtime doesn't poll its sockets (Deno 2.9.6).
  await new Promise<void>((resolve) => setTimeout(resolve));
  tickStartedAt = undefined;
  isTickUsedUp();
}

/** Lets other work run if the current tick is used up. Call it between steps of about a millisecond. */
export async function yieldIfTickUsedUp(): Promise<void> {
  if (isTickUsedUp()) await yieldToEventLoop();
}
