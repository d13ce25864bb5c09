/**
 * Slowness on purpose, because a test that races fails there, at no cost of processor time. `TEST_SLOW_ANSWERS=300` lets each
 * request of a page to the API, and each answer, take up to 300 ms. `TEST_SLOW_STEPS=300` lets each step of a test wait
 * 300 ms, so that the page is ahead of its test. `TEST_SLOW_WORK=300` lets background work and its events be up to 300 ms late:
 * messages to and from Workers, so also each write to the database and with it each step of a job, results of the sandbox, and
 * the events that a page reads.
 */

/** Of the system: a test may replace it. */
const { setTimeout } = globalThis;

/** What a request or an answer takes at most, in ms; 0 in an ordinary run. */
const MAX_DELAY_MS = Number(Deno.env.get("TEST_SLOW_ANSWERS") ?? 0);

/** What each step of a test waits, in ms; 0 in an ordinary run. */
export const stepDelayMs = Number(Deno.env.get("TEST_SLOW_STEPS") ?? 0);

/** How late background work and events are at most, in ms; 0 in an ordinary run. */
const MAX_WORK_DELAY_MS = Number(Deno.env.get("TEST_SLOW_WORK") ?? 0);

/** Gives the answer to a request; late where that is asked for and a page sent the request to the API. */
export async function answerInTime(request: Request, answer: () => Promise<Response>): Promise<Response> {
  const isFromPage = request.headers.has("sec-fetch-site");
  if (!isFromPage || (MAX_DELAY_MS === 0 && MAX_WORK_DELAY_MS === 0)) return await answer();
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith("/api/")) return await answer();
  if (MAX_DELAY_MS > 0) await pause(MAX_DELAY_MS);
  const response = await answer();
  if (MAX_DELAY_MS > 0) await pause(MAX_DELAY_MS);
  const isLate = MAX_WORK_DELAY_MS > 0 && pathname === "/api/events" && response.body !== null;
  return isLate ? new Response(delayChunks(response.body!), response) : response;
}

/** Makes background work in this process late, if that is asked for. */
export async function slowDownWork(): Promise<void> {
  if (MAX_WORK_DELAY_MS === 0 || globalThis.Worker === LateWorker) return;
  globalThis.Worker = LateWorker;
  const { Sandbox } = await import("../../../services/platform/sandbox/sandbox.ts");
  const { run } = Sandbox.prototype;
  Sandbox.prototype.run = async function (...args) {
    try {
      return await run.apply(this, args);
    } finally {
      await pause(MAX_WORK_DELAY_MS);
    }
  };
}

/** Does things late, in the order in which they were asked for. */
class LateQueue {
  #last: Promise<unknown> = Promise.resolve();

  add(act: () => void): void {
    this.#last = Promise.all([this.#last, pause(MAX_WORK_DELAY_MS)]).then(act);
  }
}

const RealWorker = globalThis.Worker;

/** A Worker whose messages arrive late, in both directions. */
class LateWorker extends RealWorker {
  readonly #sent = new LateQueue();
  readonly #received = new LateQueue();
  #isTerminated = false;

  override postMessage(message: unknown, options?: Transferable[] | StructuredSerializeOptions): void {
    const copy = structuredClone(message, Array.isArray(options) ? { transfer: options } : options);
    this.#sent.add(() => this.#isTerminated || super.postMessage(copy));
  }

  /** Called by the runtime for what the Worker sends. */
  override dispatchEvent(event: Event): boolean {
    // Whether an error was handled must be known at once.
    if (event.type !== "message") return super.dispatchEvent(event);
    this.#received.add(() => this.#isTerminated || super.dispatchEvent(event));
    return true;
  }

  override terminate(): void {
    this.#isTerminated = true;
    super.terminate();
  }
}

function delayChunks(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const queue = new LateQueue();
  let isCancelled = false;
  return new ReadableStream({
    async start(controller) {
      const add = (act: () => void) => queue.add(() => isCancelled || act());
      try {
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
          const { value } = piece;
          add(() => controller.enqueue(value));
        }
        add(() => controller.close());
      } catch (error) {
        add(() => controller.error(error));
      }
    },
    async cancel(reason) {
      isCancelled = true;
      await reader.cancel(reason);
    },
  });
}

function pause(maxMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * maxMs));
}
