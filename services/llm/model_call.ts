/** One call to a model server: the HTTP call and the errors that model servers report. */
import { maskKey } from "../http/api_key.ts";
import { parseRetryAfter } from "../http/error_response.ts";
import { HttpCall, type HttpClient } from "../http/http_client.ts";
import { readText } from "../http/read_body.ts";
import { UpstreamError, type UpstreamErrorKind } from "../http/upstream_error.ts";
import { createReportedError, type ErrorReport, parseErrorBody, parseErrorReport } from "./error_report.ts";
import type { ChatStream, UpstreamTarget } from "./provider.ts";

const MAX_ERROR_BYTES = 64 * 1024;
/** Requests about the server, such as its model list, need no inference; a server silent for longer is busy or broken. */
const QUICK_FIRST_BYTE_MS = 15_000;

/** A request to a model server. */
export interface ModelRequest {
  url: string;
  headers?: Record<string, string>;
  /** Sent as JSON with POST; a request without a body is a GET. */
  body?: unknown;
}

/** One call to a model server. */
export class ModelCall extends HttpCall<UpstreamTarget> {
  constructor(target: UpstreamTarget, signal: AbortSignal) {
    super(getLabel(target), target, signal);
  }

  /** Replaces the target's key and the values of its headers in text from the server. */
  override mask(text: string): string {
    let masked = super.mask(text);
    for (const value of Object.values(this.target.headers ?? {})) masked = maskKey(masked, value, "[header]");
    return masked;
  }

  /** Creates an error about the response; `finding` continues the sentence "The model at … ". */
  createError(kind: UpstreamErrorKind, finding: string): UpstreamError {
    return new UpstreamError(kind, `${this.server[0]!.toUpperCase()}${this.server.slice(1)} ${finding}`);
  }

  /** Creates the error for an error object inside a response of status 200. */
  createReportedError(value: unknown): UpstreamError {
    return this.#fromReport(200, parseErrorReport(value) ?? { message: "an error without a message", codes: [] });
  }

  /** Reads the body of a response with an error status, at most 64 KiB, and creates its error. */
  async readError(response: Response): Promise<UpstreamError> {
    return (await this.readErrorText(response)).error;
  }

  /** As `readError`, with the body. */
  async readErrorText(response: Response): Promise<{ error: UpstreamError; text: string }> {
    // Masked before it is truncated: no half of a key may remain.
    const text = this.mask(await readText(response, MAX_ERROR_BYTES).catch(() => ""));
    const error = this.#fromReport(response.status, parseErrorBody(text), {
      statusText: response.statusText,
      retryAfterSeconds: parseRetryAfter(response.headers, Date.now()),
    });
    return { error, text };
  }

  #fromReport(
    status: number,
    report: ErrorReport | undefined,
    options?: { statusText?: string; retryAfterSeconds?: number },
  ): UpstreamError {
    const masked = report && { ...report, message: this.mask(report.message) };
    return createReportedError(this.server, status, masked, options);
  }
}

/** Names the server in errors. A name that only repeats the address says nothing. */
function getLabel({ connection, baseUrl }: UpstreamTarget): string {
  if (connection === undefined || !URL.canParse(baseUrl)) return "the model";
  return new URL(baseUrl).host === connection.name ? "the model" : `the model of "${connection.name}"`;
}

/**
 * Sends one request of a call, with the query and the headers of its target.
 *
 * @throws as `HttpClient.send`
 */
export function sendRequest(http: HttpClient, call: ModelCall, request: ModelRequest): Promise<Response> {
  const { body } = request;
  const { query, headers: own } = call.target;
  const url = query ? `${request.url}${request.url.includes("?") ? "&" : "?"}${query}` : request.url;
  const headers: Record<string, string> = {
    accept: "application/json",
    "accept-encoding": "identity",
    ...request.headers,
    ...own,
  };
  if (body === undefined) return http.send(call, { url, headers });
  return http.send(call, {
    url,
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/**
 * Makes a call that ends when `run` returns.
 *
 * @throws {AppError} as `HttpClient.send`
 */
export async function runCall<T>(
  target: UpstreamTarget,
  signal: AbortSignal,
  run: (call: ModelCall) => Promise<T>,
): Promise<T> {
  const call = new ModelCall(target, signal);
  try {
    return await run(call);
  } catch (thrown) {
    throw call.toError(thrown);
  } finally {
    call.timer.end();
  }
}

/**
 * Makes a call that ends with the stream `open` returns.
 *
 * @throws {AppError} as `HttpClient.send`
 */
export async function openStream(
  target: UpstreamTarget,
  signal: AbortSignal,
  open: (call: ModelCall) => Promise<ChatStream>,
): Promise<ChatStream> {
  const call = new ModelCall(target, signal);
  try {
    return await open(call);
  } catch (thrown) {
    call.timer.end();
    throw call.toError(thrown);
  }
}

/** Returns a target with the shorter timeouts of requests about the server itself. */
export function withQuickTimeouts(target: UpstreamTarget): UpstreamTarget {
  const firstByteMs = Math.min(target.timeouts.firstByteMs, QUICK_FIRST_BYTE_MS);
  return { ...target, timeouts: { ...target.timeouts, firstByteMs } };
}
