/** One call to a model server: the HTTP call and the errors that model servers report. */
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
    super("the model", target, signal);
  }

  /** Creates an error about the response; `finding` continues the sentence "The model at … ". */
  createError(kind: UpstreamErrorKind, finding: string): UpstreamError {
    return new UpstreamError(kind, `The model at "${this.target.baseUrl}" ${finding}`);
  }

  /** Creates the error for an error object inside a response of status 200. */
  createReportedError(value: unknown): UpstreamError {
    return this.#fromReport(200, parseErrorReport(value) ?? { message: "an error without a message", codes: [] });
  }

  /** Reads the body of a response with an error status, at most 64 KiB, and creates its error. */
  async readError(response: Response): Promise<UpstreamError> {
    // Masked before it is truncated: no half of a key may remain.
    const text = this.mask(await readText(response, MAX_ERROR_BYTES).catch(() => ""));
    return this.#fromReport(response.status, parseErrorBody(text), {
      statusText: response.statusText,
      retryAfterSeconds: parseRetryAfter(response.headers, Date.now()),
    });
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

/** Sends one request of a call. @throws as `HttpClient.send` */
export function sendRequest(http: HttpClient, call: ModelCall, request: ModelRequest): Promise<Response> {
  const { url, body } = request;
  const headers = { accept: "application/json", "accept-encoding": "identity", ...request.headers };
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
