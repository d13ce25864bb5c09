/** Collects garbage on request. The engine alone lets its heap double first, which is a lot after large requests. */

let collector: Promise<() => void> | undefined;

/**
 * Collects the garbage of this thread.
 *
 * Holds the event loop: Deno's `gc()` goes through the whole heap at least twice, 40 to 100 ms after a large request, while
 * the engine's own collections are incremental and hold it for 3 to 15 ms. Call it only where memory would exceed a limit.
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

/** Returns the size of this thread's heap and its buffers in bytes, garbage included. Takes 20 µs. */
export function getMemoryBytes(): number {
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}
