/** The body of an answer, cut off where it costs more than agreed. */

export interface BodyLimits {
  /** Bytes after decompression. */
  maxBytes: number;
  /** How long one read may wait. */
  idleMs: number;
  /** Fires when the call has to end; the connection behind the body is then given up, read or not. */
  signal: AbortSignal;
  /** Called when a limit is passed; makes the signal fire. */
  onExceeded(limit: "bytes" | "idle"): void;
  /** Called once, however the body ends: read whole, failed, or given up by its reader. */
  onEnd(): void;
  /** Gives the error that the reader sees for a failed read. */
  toError(thrown: unknown): unknown;
}

/** Wraps a body so that nothing is read before it is asked for, and nothing passes beyond the limits. */
export function limitBody(
  body: ReadableStream<Uint8Array>,
  limits: BodyLimits,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const giveUp = () => void reader.cancel().catch(() => {}); // aborting the fetch alone can leave its socket open
  limits.signal.addEventListener("abort", giveUp);
  const end = () => {
    limits.signal.removeEventListener("abort", giveUp);
    limits.onEnd();
  };
  let passed = 0;
  const read = async () => {
    const idle = setTimeout(() => limits.onExceeded("idle"), limits.idleMs);
    try {
      const { done, value } = await reader.read();
      limits.signal.throwIfAborted(); // given up, which a reader sees as an ordinary end
      if (done) return undefined;
      passed += value.length;
      if (passed <= limits.maxBytes) return new Uint8Array(value);
    } finally {
      clearTimeout(idle);
    }
    limits.onExceeded("bytes");
    throw new Error("The body is longer than its limit");
  };
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const chunk = await read();
        if (chunk !== undefined) return controller.enqueue(chunk);
        controller.close();
      } catch (thrown) {
        controller.error(limits.toError(thrown));
        giveUp();
      }
      end();
    },
    async cancel(reason) {
      await reader.cancel(reason).catch(() => {});
      end();
    },
  }, { highWaterMark: 0 });
}
