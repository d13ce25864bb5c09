/** Reads response bodies up to a limit, and the error responses of speech and image servers. */
import { maskKey } from "./base_url.ts";
import type { HttpTarget } from "./http_client.ts";
import { UpstreamError } from "./upstream_error.ts";

/** Reads a body as text. Discards text beyond `maxBytes` and closes the connection. */
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

/** Reads a whole body. Returns `undefined` and closes the connection if the body is longer than `maxBytes`. */
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

// Limits the size of a response body and the time without data.

interface BodyLimits {
  /** Maximum size after decompression. */
  maxBytes: number;
  /** Timeout of one read. */
  idleMs: number;
  /** Ends the body and its connection. */
  signal: AbortSignal;
  /** Called when a limit is exceeded. Must abort the signal. */
  onExceeded(limit: "bytes" | "idle"): void;
  /** Called once when the body ends: complete, failed or canceled. */
  onEnd(): void;
  /** Converts an error of reading to the error for the caller. */
  toError(thrown: unknown): unknown;
}

/** Wraps a body to enforce the limits. Reads nothing ahead. */
export function limitBody(
  body: ReadableStream<Uint8Array>,
  limits: BodyLimits,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => {}); // Aborting the fetch alone can leave its socket open.
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
      limits.signal.throwIfAborted(); // A canceled reader reports a regular end.
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

const MAX_ERROR_BYTES = 64 * 1024;
const MAX_MESSAGE_CHARS = 500;

/**
 * Reads the start of an error response (docs/protocols/tts.md#speech-errors, docs/protocols/images.md#a1111-errors). If
 * the connection breaks, returns what was received: the status is known anyway.
 */
export async function readErrorText(
  response: Response,
  apiKey: string | undefined,
  maxBytes = MAX_ERROR_BYTES,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let sizeBytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      sizeBytes += chunk.length;
      if (sizeBytes >= maxBytes) break;
    }
  } catch {
    // Use what was received.
  }
  return maskKey(text, apiKey);
}

/**
 * Finds the message in an error body: nested, flat, or the `detail` of a validation error.
 *
 * @returns `undefined` if the body is empty, a web page, or JSON without a message
 */
export function findErrorMessage(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.trim() === "" || text.trimStart().startsWith("<") ? undefined : text.trim().slice(0, MAX_MESSAGE_CHARS);
  }
  return findMessage(value, 0)?.trim().replace(/\.+$/, "").slice(0, MAX_MESSAGE_CHARS);
}

function findMessage(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > 4 || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return findMessage(value[0], depth + 1);
  const fields = value as Record<string, unknown>;
  // FastAPI names the field apart from the message: {"loc":["body","voice"],"msg":"Field required"}.
  const field = Array.isArray(fields.loc) ? fields.loc.at(-1) : undefined;
  if (typeof field === "string" && typeof fields.msg === "string") return `${field}: ${fields.msg}`;
  for (const name of ["error", "detail", "message", "msg"]) {
    const found = findMessage(fields[name], depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Creates the error for an error response.
 *
 * @param label Name of the server in the message: `"The speech server"`.
 * @param message The server's own message, if any.
 * @param advice What to do, by status: `{ 401: "check its API key" }`.
 */
export function createResponseError(
  label: string,
  target: Pick<HttpTarget, "baseUrl">,
  response: Pick<Response, "status" | "headers">,
  message: string | undefined,
  advice: Partial<Record<number, string>>,
): UpstreamError {
  const { status, headers } = response;
  const reason = message === undefined ? `status ${status}` : `${message} (status ${status})`;
  const hint = advice[status] === undefined ? "" : ` – ${advice[status]}`;
  return new UpstreamError("failed", `${label} at "${target.baseUrl}" returned an error: ${reason}${hint}`, {
    status,
    retryAfterSeconds: parseRetryAfter(headers, Date.now()),
  });
}

/**
 * Parses `Retry-After` (seconds or a date) and the non-standard `retry-after-ms`.
 *
 * @returns Whole seconds, rounded up.
 * @see https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 */
export function parseRetryAfter(headers: Headers, nowMs: number): number | undefined {
  const millis = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(millis) && millis >= 0) return Math.ceil(millis / 1000);
  const value = headers.get("retry-after");
  if (value === null || value.trim() === "") return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds) : undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - nowMs) / 1000));
}
