/** One HTTP call to a model server: address rules, key header, redirects, limits, and its failures in our words. */
import { AppError } from "../errors.ts";
import { watchConnect } from "../http/connect_watch.ts";
import { assertOwnerAddress, parseOwnerUrl } from "../http/endpoint_address.ts";
import { readText } from "../http/read_body.ts";
import { CallWatch } from "../http/timeouts.ts";
import { connectFailure } from "./connect_error.ts";
import type { UpstreamTarget } from "./provider.ts";
import {
  errorFromReport,
  maskKey,
  readReportedError,
  readRetryAfter,
  textOfErrorBody,
} from "../http/upstream_error.ts";
import { UpstreamError } from "../http/upstream_error.ts";

/** How to reach servers. */
export interface UpstreamHttpOptions {
  /** Addresses of a host name; the system's resolver unless a test gives another. */
  resolve?: (host: string) => Promise<string[]>;
}

/** One request of a call. */
export interface UpstreamRequest {
  method: "GET" | "POST";
  url: string;
  headers?: Record<string, string>;
  /** JSON text; sent with its length, since some servers refuse a body of unknown length. */
  body?: string;
}

/** The connections to all model servers. */
export interface UpstreamHttp {
  /**
   * Sends one request and gives its answer, of whatever status.
   *
   * @throws What UpstreamCall.translate makes of a failure.
   */
  send(call: UpstreamCall, request: UpstreamRequest): Promise<Response>;
  /** Closes idle connections and fails the calls that still run. */
  close(): void;
}

/** One call with its limits; its errors never hold the key. */
export class UpstreamCall {
  readonly target: UpstreamTarget;
  readonly watch: CallWatch;

  constructor(target: UpstreamTarget, signal: AbortSignal) {
    this.target = target;
    this.watch = new CallWatch(target.timeouts, signal, target.baseUrl);
  }

  /** Turns what fetch or a read threw into the caller's reason or an AppError. */
  translate(thrown: unknown): unknown {
    const reason = this.watch.reasonOf(thrown);
    if ("own" in reason) return reason.own;
    return reason.foreign instanceof AppError ? reason.foreign : connectFailure(this.target.baseUrl, reason.foreign);
  }

  /** Takes the target's key out of a text that came from the server. */
  mask(text: string): string {
    return maskKey(text, this.target.apiKey);
  }

  /** Makes the error for an error object inside an answer of status 200. */
  reported(value: unknown): UpstreamError {
    return this.#fromReport(200, readReportedError(value) ?? { message: "an error without a message", words: [] });
  }

  /** Reads the body of a failed answer, at most 64 KiB, and makes its error. */
  async failed(response: Response): Promise<UpstreamError> {
    // Masked before anything is cut off, so that no half of a key remains.
    const text = this.mask(await readText(response, 64 * 1024).catch(() => ""));
    let reported;
    try {
      reported = readReportedError(JSON.parse(text));
    } catch {
      const plain = textOfErrorBody(text);
      reported = plain === undefined ? undefined : { message: plain, words: [] };
    }
    return this.#fromReport(response.status, reported, {
      statusText: response.statusText,
      retryAfterSeconds: readRetryAfter(response.headers, Date.now()),
    });
  }

  #fromReport(
    status: number,
    reported: ReturnType<typeof readReportedError>,
    options?: { statusText?: string; retryAfterSeconds?: number },
  ): UpstreamError {
    const masked = reported && { ...reported, message: this.mask(reported.message) };
    return errorFromReport(this.target.baseUrl, status, masked, options);
  }
}

const MAX_REDIRECTS = 3;

/** Opens the connections; nothing happens before the first call. */
export function openUpstreamHttp(options: UpstreamHttpOptions = {}): UpstreamHttp {
  let client: Deno.HttpClient | undefined;
  // Below the 5 s after which common servers drop an idle connection, so that a request never meets one just being closed.
  const openClient = () =>
    Deno.createHttpClient({ poolIdleTimeout: 4_000, poolMaxIdlePerHost: 256, http1: true, http2: false });

  async function send(call: UpstreamCall, request: UpstreamRequest): Promise<Response> {
    let url = parseOwnerUrl(request.url);
    const headers = new Headers({ accept: "application/json", "accept-encoding": "identity", ...request.headers });
    for (let hop = 0;; hop++) {
      await assertOwnerAddress(url, options.resolve);
      const guard = watchCall(call, url);
      let response: Response;
      try {
        client ??= openClient();
        response = await fetch(url, {
          client,
          method: request.method,
          headers,
          body: request.body,
          redirect: "manual",
          signal: call.watch.signal,
        });
      } catch (thrown) {
        throw call.translate(thrown);
      } finally {
        guard.done();
      }
      const next = redirectTarget(call, request, url, response);
      if (next === undefined) return response;
      await response.body?.cancel();
      if (hop === MAX_REDIRECTS) throw redirectError(call, "in a circle");
      url = next;
    }
  }
  return { send, close: () => (client?.close(), client = undefined) };
}

/** Gives where to go on; a redirect to another origin is never followed, with a key or without (U02). */
function redirectTarget(call: UpstreamCall, request: UpstreamRequest, from: URL, response: Response): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(response.status)) return undefined;
  const location = response.headers.get("location") ?? "";
  if (location === "" || !URL.canParse(location, from)) throw redirectError(call, "to nowhere");
  const to = new URL(location, from);
  const keepsMethod = response.status === 307 || response.status === 308 || request.method === "GET";
  if (to.origin === from.origin && keepsMethod) return to;
  throw redirectError(call, `to "${to.origin === "null" ? to.protocol : call.mask(to.origin + to.pathname)}"`);
}

function redirectError(call: UpstreamCall, where: string): UpstreamError {
  return new UpstreamError(
    "redirect",
    `The model at "${call.target.baseUrl}" redirects ${where}, which is not followed: enter the final address itself`,
  );
}

function watchCall(call: UpstreamCall, url: URL): { done(): void } {
  const limitMs = call.target.timeouts.connectMs;
  return watchConnect(url, limitMs, () => {
    const message = `Cannot reach the model at "${call.target.baseUrl}": no answer after ${limitMs} ms`;
    call.watch.fail(new UpstreamError("unreachable", message));
  });
}
