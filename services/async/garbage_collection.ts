/** Collects garbage on request. The engine alone lets its heap double first, which is a lot after large requests. */

/** Size of the buffer that starts a collection: more than the engine lets its heap grow without one. */
const BALLAST_BYTES = 256 * 1024 * 1024;

/** Bytes of such buffers that the engine counts, because it hasn't collected them yet. */
let ballastBytes = 0;
const ballasts = new FinalizationRegistry<number>((bytes) => {
  ballastBytes -= bytes;
});

let collector: Promise<() => void> | undefined;

/**
 * Collects the garbage of this thread.
 *
 * Holds the event loop: Deno's `gc()` goes through the whole heap at least twice, 40 to 100 ms after a large request, while
 * the engine's own collections are incremental and hold it for 3 to 30 ms. Call it only where memory would exceed a limit
 * before `startCollection` had an effect.
 *
 * @see https://github.com/denoland/deno/blob/v2.9.6/ext/node/ops/v8.rs
 */
export async function collectGarbage(): Promise<void> {
  collector ??= (async () => {
    const [{ setFlagsFromString }, { runInNewContext }] = await Promise.all([import("node:v8"), import("node:vm")]);
    // Deno adds the function to contexts made after this.
    setFlagsFromString("--expose-gc");
    return runInNewContext("gc") as () => void;
  })();
  const collect = await collector;
  collect();
}

/**
 * Makes the engine start an incremental collection of this thread's garbage, which goes on while the thread works.
 *
 * The engine counts buffers like the objects of its heap, so a large one that nobody refers to makes a collection due.
 * Nothing is written to it, so the operating system gives it no memory. Where address space is limited it may not get any;
 * then the engine collects when it would have.
 */
export function startCollection(): void {
  try {
    ballasts.register(new ArrayBuffer(BALLAST_BYTES), BALLAST_BYTES);
    ballastBytes += BALLAST_BYTES;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}

/** Returns the size of this thread's heap and its buffers in bytes, garbage included. Takes 20 µs. */
export function getMemoryBytes(): number {
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external - ballastBytes;
}
