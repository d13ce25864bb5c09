/** The body of an answer, cut off where it costs more than agreed. */

export interface BodyLimits {
  /** Bytes after decompression. */
  maxBytes: number;
  /** How long one read may wait. */
  idleMs: number;
  /** Called when the limits are passed; must make the pending read fail. Gets which one it was. */
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
  let passed = 0;
  const read = async () => {
    const idle = setTimeout(() => limits.onExceeded("idle"), limits.idleMs);
    try {
      const { done, value } = await reader.read();
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
      }
      limits.onEnd();
    },
    async cancel(reason) {
      await reader.cancel(reason).catch(() => {});
      limits.onEnd();
    },
  }, { highWaterMark: 0 });
}
