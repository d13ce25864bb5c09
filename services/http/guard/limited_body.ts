/** Limits the size and the silence of a response body. */

export interface BodyLimits {
  /** Bytes after decompression. */
  maxBytes: number;
  /** Timeout of one read. */
  idleMs: number;
  /** Ends the body and its connection. */
  signal: AbortSignal;
  /** Called when a limit is exceeded. Must abort the signal. */
  onExceeded(limit: "bytes" | "idle"): void;
  /** Called once when the body ends: complete, failed or canceled. */
  onEnd(): void;
  /** Returns the error the reader gets for a failed read. */
  toError(thrown: unknown): unknown;
}

/** Wraps a body to enforce the limits. Reads nothing ahead. */
export function limitBody(
  body: ReadableStream<Uint8Array>,
  limits: BodyLimits,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {}); // aborting the fetch alone can leave its socket open
  limits.signal.addEventListener("abort", cancel);
  const end = () => {
    limits.signal.removeEventListener("abort", cancel);
    limits.onEnd();
  };
  let receivedBytes = 0;
  const read = async () => {
    const idle = setTimeout(() => limits.onExceeded("idle"), limits.idleMs);
    try {
      const { done, value } = await reader.read();
      limits.signal.throwIfAborted(); // a canceled reader reports a regular end
      if (done) return undefined;
      receivedBytes += value.length;
      if (receivedBytes <= limits.maxBytes) return new Uint8Array(value);
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
        cancel();
      }
      end();
    },
    async cancel(reason) {
      await reader.cancel(reason).catch(() => {});
      end();
    },
  }, { highWaterMark: 0 });
}
