/** Reads response bodies up to a limit. */

/** Reads a body as text. Text beyond `maxBytes` is dropped and the connection closed. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let sizeBytes = 0;
  for await (const chunk of response.body) {
    sizeBytes += chunk.length;
    const excess = Math.max(0, sizeBytes - maxBytes);
    text += decoder.decode(chunk.subarray(0, chunk.length - excess), { stream: true });
    if (sizeBytes >= maxBytes) break;
  }
  return text + decoder.decode();
}

/** Reads a whole body. Returns undefined and closes the connection if the body is longer than `maxBytes`. */
export async function readBytes(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) return undefined;
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

// Limits the size and the silence of a response body.

interface BodyLimits {
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
