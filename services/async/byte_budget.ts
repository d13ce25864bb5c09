/**
 * Limits the memory that large requests, responses and imports use at the same time, and collects the garbage they
 * leave.
 */
import { AppError } from "../errors.ts";
import { delay } from "./delay.ts";

const MIB = 1024 * 1024;
/** Bytes that all large requests can use together. See docs/decisions/0033-memory-of-large-requests.md. */
const LIMIT_BYTES = 256 * MIB;
/** Smallest limit, in a container that is too small for more. */
const LEAST_LIMIT_BYTES = 16 * MIB;
/** Memory of the process without large requests: 110 to 150 MiB, and a child of the sandbox. */
const IDLE_BYTES = 160 * MIB;
/** Part of the memory above `IDLE_BYTES` that reservations may use. The rest is for garbage, Workers and caches. */
const RESERVED_SHARE = 0.5;
/** Part of the limit that only small reservations may use, so that one large request never delays all others. */
const RESERVE_BYTES = 64 * MIB;
/** Largest small reservation. */
const SMALL_BYTES = 8 * MIB;
/** Smallest reservation that can fill memory by itself: a body of 13 MB. */
const HUGE_BYTES = 64 * MIB;
/** How much memory must grow before garbage is collected again. A collection blocks the event loop for 40 to 100 ms. */
const COLLECTED_BYTES = 64 * MIB;
/** How long a request waits before it's refused. */
const WAIT_MS = 10_000;
const RETRY_AFTER_SECONDS = 5;

/** How much memory large requests may use together, and when garbage is collected. In bytes. */
interface BudgetSizes {
  limitBytes: number;
  /** Part of the limit for small reservations. */
  reserveBytes: number;
  /** Largest small reservation. */
  smallBytes: number;
  /** Smallest reservation before which garbage is collected at once. */
  hugeBytes: number;
  /** How much memory must grow before garbage is collected again. */
  collectedBytes: number;
}

const FULL_SIZES: BudgetSizes = {
  limitBytes: LIMIT_BYTES,
  reserveBytes: RESERVE_BYTES,
  smallBytes: SMALL_BYTES,
  hugeBytes: HUGE_BYTES,
  collectedBytes: COLLECTED_BYTES,
};

/**
 * Returns the sizes with which the process stays below its memory limit. With less than the full budget, garbage is
 * collected before every large request.
 *
 * @param memoryLimitBytes By default that of the container or control group, as the runtime reads it. Without one, it's
 *   more than any machine has, or 0.
 */
export function getBudgetSizes(memoryLimitBytes: number = getMemoryLimitBytes()): BudgetSizes {
  const wanted = memoryLimitBytes <= 0 ? LIMIT_BYTES : Math.floor((memoryLimitBytes - IDLE_BYTES) * RESERVED_SHARE);
  if (wanted >= LIMIT_BYTES) return FULL_SIZES;
  const limitBytes = Math.max(LEAST_LIMIT_BYTES, wanted);
  const scale = limitBytes / LIMIT_BYTES;
  const smallBytes = Math.floor(SMALL_BYTES * scale);
  return {
    limitBytes,
    reserveBytes: Math.floor(RESERVE_BYTES * scale),
    smallBytes,
    hugeBytes: smallBytes,
    collectedBytes: Math.floor(COLLECTED_BYTES * scale / 2),
  };
}

/** Returns 0 if the limit is unknown: the runtime of a build can be older than the function. */
function getMemoryLimitBytes(): number {
  // deno-lint-ignore no-process-global -- as in random.ts, which every start has loaded by then
  const { constrainedMemory }: Partial<typeof process> = process;
  return constrainedMemory?.() ?? 0;
}

/** Requests below this size aren't counted: they never wait. */
export const UNCOUNTED_BYTES = 64 * 1024;

/** A reserved part of the budget. */
export interface Reservation extends Disposable {
  /** Returns the bytes to the budget. Later calls have no effect. */
  release(): void;
}

/** How to wait for a reservation. */
interface ReserveOptions {
  /** Ends the wait, for example because the client disconnected. */
  signal?: AbortSignal;
  /** Defaults to 10 seconds; `Infinity` waits until there is space. */
  waitMs?: number;
}

interface Waiting {
  bytes: number;
  start(): void;
}

/**
 * A semaphore that counts bytes. There is one per process.
 *
 * Reservations are granted first come, first served. Small ones (up to 8 MiB) have their own queue, and 64 MiB are
 * reserved for them. A reservation larger than the space for large ones counts as all of it, so it runs alone.
 */
export class ByteBudget {
  readonly #limitBytes: number;
  readonly #largeLimitBytes: number;
  readonly #smallBytes: number;
  readonly #hugeBytes: number;
  readonly #collectedBytes: number;
  readonly #waitMs: number;
  readonly #collectGarbage: () => Promise<void>;
  readonly #startCollection: () => void;
  readonly #memoryBytes: () => number;
  readonly #small: Waiting[] = [];
  readonly #large: Waiting[] = [];
  #usedBytes = 0;
  /** The smallest result of `memoryBytes` since the last collection. */
  #collectedToBytes = 0;

  /**
   * @param options.collectGarbage Called before a huge reservation is granted, if memory and all reservations together
   *   exceed the limit. Blocks the event loop.
   * @param options.startCollection The same for a large one, if memory and the reservation exceed it. Doesn't block.
   * @param options.memoryBytes Returns the size of the heap and its buffers, garbage included.
   */
  constructor(
    {
      limitBytes = LIMIT_BYTES,
      reserveBytes = RESERVE_BYTES,
      smallBytes = SMALL_BYTES,
      hugeBytes = HUGE_BYTES,
      collectedBytes = COLLECTED_BYTES,
      waitMs = WAIT_MS,
      collectGarbage = async () => {},
      startCollection = () => {},
      memoryBytes = () => 0,
    }: Partial<BudgetSizes> & {
      waitMs?: number;
      collectGarbage?: () => Promise<void>;
      startCollection?: () => void;
      memoryBytes?: () => number;
    } = {},
  ) {
    this.#limitBytes = limitBytes;
    this.#largeLimitBytes = limitBytes - reserveBytes;
    this.#smallBytes = smallBytes;
    this.#hugeBytes = hugeBytes;
    this.#collectedBytes = collectedBytes;
    this.#waitMs = waitMs;
    this.#collectGarbage = collectGarbage;
    this.#startCollection = startCollection;
    this.#memoryBytes = memoryBytes;
  }

  /** Bytes in use. May exceed the limit by what `take` added. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /**
   * Reserves bytes, waiting until there is space.
   *
   * @throws {AppError} `busy` after the wait.
   * @throws The reason of `signal`.
   */
  async reserve(bytes: number, { signal, waitMs = this.#waitMs }: ReserveOptions = {}): Promise<Reservation> {
    signal?.throwIfAborted();
    const isSmall = bytes <= this.#smallBytes;
    const counted = isSmall ? bytes : Math.min(bytes, this.#largeLimitBytes);
    const queue = isSmall ? this.#small : this.#large;
    const mustWait = queue.length > 0 || !this.#hasSpace(counted, isSmall);
    if (mustWait) await this.#wait(queue, counted, signal, waitMs);
    else this.#usedBytes += counted;
    const reservation = this.#createReservation(counted);
    if (isSmall) return reservation;
    // The request that returned the bytes has to finish first: until then it still references its buffers.
    if (mustWait) await delay(0);
    await this.#collectIfFull(counted);
    return reservation;
  }

  /** Counts bytes without waiting, for the last step of a request that can no longer be refused. */
  take(bytes: number): Reservation {
    this.#usedBytes += bytes;
    return this.#createReservation(bytes);
  }

  #createReservation(bytes: number): Reservation {
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      this.#usedBytes -= bytes;
      this.#startWaiting();
    };
    return { release, [Symbol.dispose]: release };
  }

  /**
   * Collects the garbage of earlier requests if memory and the new request may exceed the limit.
   *
   * Large requests rarely need it: `memoryBytes` includes most of what other requests use, and the engine collects by
   * itself.
   */
  async #collectIfFull(newBytes: number): Promise<void> {
    const memoryBytes = this.#memoryBytes();
    this.#collectedToBytes = Math.min(this.#collectedToBytes, memoryBytes);
    const isHuge = newBytes >= this.#hugeBytes;
    const expectedBytes = memoryBytes + (isHuge ? this.#usedBytes : newBytes);
    if (expectedBytes <= (isHuge ? this.#largeLimitBytes : this.#limitBytes)) return;
    if (memoryBytes - this.#collectedToBytes < (isHuge ? this.#collectedBytes / 2 : this.#collectedBytes)) return;
    if (isHuge) await this.#collectGarbage();
    else this.#startCollection();
    this.#collectedToBytes = this.#memoryBytes();
  }

  #wait(queue: Waiting[], bytes: number, signal: AbortSignal | undefined, waitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const abandon = (reason: unknown) => {
        queue.splice(queue.indexOf(waiting), 1);
        end();
        reject(reason);
        // The next in line may need less space.
        this.#startWaiting();
      };
      const onAbort = () => abandon(signal!.reason);
      const timer = waitMs === Infinity ? undefined : setTimeout(() => abandon(createBusyError()), waitMs);
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      const waiting: Waiting = {
        bytes,
        start: () => {
          this.#usedBytes += bytes;
          end();
          resolve();
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      queue.push(waiting);
    });
  }

  #startWaiting(): void {
    for (const [queue, isSmall] of [[this.#small, true], [this.#large, false]] as const) {
      while (queue.length > 0 && this.#hasSpace(queue[0]!.bytes, isSmall)) queue.shift()!.start();
    }
  }

  #hasSpace(bytes: number, isSmall: boolean): boolean {
    return this.#usedBytes + bytes <= (isSmall ? this.#limitBytes : this.#largeLimitBytes);
  }
}

function createBusyError(): AppError {
  return new AppError("busy", "The server is busy with other large requests. Try again in a few seconds.", {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/** Size of the buffer that triggers a collection: more than the heap can grow without one. */
const BALLAST_BYTES = 256 * 1024 * 1024;

/** Total size of such buffers that the engine hasn't collected yet. */
let ballastBytes = 0;
const ballasts = new FinalizationRegistry<number>((bytes) => {
  ballastBytes -= bytes;
});

let collector: Promise<() => void> | undefined;

/**
 * Collects the garbage of this thread. By itself, the engine lets its heap double first, which is a lot after large
 * requests.
 *
 * Blocks the event loop: Deno's `gc()` goes through the whole heap at least twice, which takes 40 to 100 ms after a
 * large request. The engine's own collections are incremental and block it for 3 to 30 ms. Call this only if memory
 * would exceed a limit before `startCollection` has an effect.
 *
 * @see https://github.com/denoland/deno/blob/v2.9.6/ext/node/ops/v8.rs
 */
export async function collectGarbage(): Promise<void> {
  collector ??= (async () => {
    const [{ setFlagsFromString }, { runInNewContext }] = await Promise.all([import("node:v8"), import("node:vm")]);
    // Deno adds `gc` only to contexts created after this call.
    setFlagsFromString("--expose-gc");
    return runInNewContext("gc") as () => void;
  })();
  const collect = await collector;
  collect();
}

/**
 * Triggers an incremental garbage collection of this thread. It runs while the thread works.
 *
 * The engine counts buffers as part of the heap, so allocating a large unreferenced one triggers a collection. Nothing
 * is written to the buffer, so the operating system assigns no memory to it. If address space is limited, the
 * allocation may fail; the engine then collects later, as usual.
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
