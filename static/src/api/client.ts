/** The HTTP client of the page: headers, JSON, event streams, and every failure as an `ApiError`. */
import type { ErrorBody, UpstreamFailure } from "./types.ts";
import { isTransientFailure, parseErrorBody } from "./failures.ts";
import { ProxySignInError } from "./proxy_sign_in.ts";
import type { OutboxEntry } from "../state/app/outbox_store.ts";
import { texts } from "../texts/texts.ts";
import { createParser, type EventSourceMessage } from "eventsource-parser";

/** A request that was refused, or got no response from the server (`status` 0, code `no_answer` or `proxy_sign_in`). */
export class ApiError extends Error {
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly issues: { path: string; message: string }[];
  /** Which call to a model server failed, and why; undefined for other errors. */
  readonly upstream: UpstreamFailure | undefined;
  /** How long the server asks to wait before the next request (`Retry-After`), in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, body: ErrorBody, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(body.message, options);
    this.retryAfterMs = options.retryAfterMs;
    this.name = "ApiError";
    this.status = status;
    this.code = body.code;
    this.requestId = body.request_id;
    this.issues = body.issues ?? [];
    this.upstream = body.upstream;
  }

  /** The error as messages store it. */
  toBody(): ErrorBody {
    const { code, message, requestId: request_id, upstream } = this;
    return { code, message, request_id, ...(upstream && { upstream }) };
  }

  /** True if the server could not be reached, so a retry may help. */
  get isOffline(): boolean {
    return this.status === 0;
  }

  /** True if the same request may succeed soon. False if another server failed, which Parlor already waited for. */
  get isTransient(): boolean {
    return ["no_answer", "proxy_sign_in"].includes(this.code) || isTransientFailure(this.status, this.code);
  }

  /** True if the change waits in the outbox and is sent when the server responds. */
  get isQueued(): boolean {
    return this.code === "queued";
  }
}

/** The options of a request. */
export interface RequestOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged, with its own content type. */
  blob?: Blob;
  /** Sent as a form with files. */
  form?: FormData;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Lets the request outlive the page. Browsers limit its body to 64 KiB. */
  keepalive?: boolean;
  /** What the outbox knows besides the request. */
  outbox?: Pick<OutboxEntry, "base" | "next" | "conversationId" | "text">;
}

/** Sends one request and resolves when the response headers arrive. */
export interface ApiClient {
  /**
   * @throws {ApiError} for every status outside 200–299 and if there is no response. An abort is rethrown unchanged.
   */
  send(method: string, path: string, options?: RequestOptions): Promise<Response>;
}

/**
 * Creates the client of the page.
 *
 * @param pageOrigin `location.origin`. The server compares it with the origin it sees, to detect a proxy that hides
 * clients.
 * @param storedToken Sent with every request on a device that has a token instead of a passkey.
 * @param onFailedRead Called with the error of each GET that failed, also if its JSON broke off.
 */
export function createClient(
  fetchFunction: typeof fetch,
  pageOrigin: string,
  storedToken?: string,
  onFailedRead?: (error: ApiError) => void,
): ApiClient {
  const fail = (method: string, error: ApiError) => {
    if (method === "GET") onFailedRead?.(error);
    return error;
  };
  return {
    async send(method, path, options = {}) {
      const headers = { ...getClientHeaders(pageOrigin, storedToken), ...options.headers };
      const init: RequestInit = { method, headers, cache: "no-store" };
      if (options.body !== undefined) {
        headers["content-type"] = "application/json";
        init.body = JSON.stringify(options.body);
      }
      if (options.blob !== undefined) {
        headers["content-type"] = options.blob.type;
        init.body = options.blob;
      }
      // The browser sets the content type: only it knows the boundary.
      if (options.form !== undefined) init.body = options.form;
      if (options.signal) init.signal = options.signal;
      if (options.keepalive) init.keepalive = true;
      let response: Response;
      try {
        response = await fetchFunction(path, init);
      } catch (thrown) {
        if (options.signal?.aborted) throw thrown;
        throw fail(method, createNoAnswer(thrown));
      }
      if (!response.ok) {
        const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"));
        throw fail(method, new ApiError(response.status, await readErrorBody(response), { retryAfterMs }));
      }
      const readJson = response.json.bind(response);
      response.json = () =>
        readJson().catch((thrown) => {
          throw options.signal?.aborted ? thrown : fail(method, createNoAnswer(thrown));
        });
      return response;
    },
  };
}

/** Returns the headers of every request of the page. The parameters are those of `createClient`. */
export function getClientHeaders(pageOrigin: string, storedToken?: string): Record<string, string> {
  const headers: Record<string, string> = { "x-parlor-page": pageOrigin };
  if (storedToken !== undefined) headers.authorization = `Bearer ${storedToken}`;
  return headers;
}

function createNoAnswer(cause: unknown): ApiError {
  if (cause instanceof ProxySignInError) {
    return new ApiError(0, { code: "proxy_sign_in", message: texts.errors.proxySignIn }, { cause });
  }
  return new ApiError(0, { code: "no_answer", message: texts.errors.noAnswer }, { cause });
}

/** Parses seconds or a date. Returns milliseconds from now; undefined if there are none. */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const delayMs = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(delayMs) ? Math.max(0, delayMs) : undefined;
}

async function readErrorBody(response: Response): Promise<ErrorBody> {
  const requestId = response.headers.get("x-request-id") ?? undefined;
  try {
    const error = parseErrorBody(await response.json());
    if (error) {
      const message = error.code === "in_trash" ? texts.errors.inTrash : error.message;
      return { request_id: requestId, ...error, message };
    }
  } catch {
    // Not JSON: something between page and server responded, so only the status is known.
  }
  return {
    code: "unexpected_answer",
    message: texts.errors.status(response.status),
    request_id: requestId,
  };
}

/** Converts any thrown value to an `ApiError`, so that views show one kind of error. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError(0, { code: "page_defect", message });
}

/** Returns a response's ETag as `If-Match` expects it. A compressing proxy may have marked it as weak. */
export function toStrongTag(etag: string | null): string {
  return (etag ?? "").replace(/^W\//, "");
}

/**
 * Yields the events of each network read, in order, until the server ends the stream.
 *
 * Comments (keep-alives) yield an empty array, so that the caller sees that the stream is alive.
 *
 * Parses server-sent events of a fetch response. `EventSource` can't send our headers or a chosen `Last-Event-ID`.
 *
 * @throws What the body throws: a lost connection, or the abort of its fetch.
 */
export async function* readEvents(response: Response): AsyncGenerator<EventSourceMessage[]> {
  if (!response.body) return;
  let batch: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => batch.push(event) });
  // The parser removes the byte order mark at the start. One inside a text belongs to the text.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const reader = response.body.getReader();
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield batch;
      batch = [];
    }
  } finally {
    // Leaving the loop early must also end the request. After a normal end this does nothing.
    reader.cancel().catch(() => {});
  }
}
