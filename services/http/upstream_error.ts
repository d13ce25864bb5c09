/** Calls to the owner's servers (model, speech or image server): why they fail, and how long they may take. */
import { AppError, getErrorTrace } from "../errors.ts";

/** Why a call failed. */
export type UpstreamErrorKind =
  | "refused" // Connection refused
  | "unresolved" // Unknown host name
  | "unreachable" // No response in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // Not HTTP, or TLS with a server that speaks plain HTTP
  | "blocked" // A bad port of the Fetch standard
  | "timeout" // Connected, then no data for too long
  | "redirect" // Redirects to another origin, in a loop, or without a location
  | "web_page" // HTML instead of an API response
  | "bad_answer" // A response with an unknown structure
  | "auth" // Key missing or rejected
  | "credit" // The account has no credit.
  | "not_found" // Wrong model or wrong path
  | "overflow" // The prompt is longer than the context.
  | "rate" // Too many requests
  | "starting" // The model is still loading.
  | "overloaded" // The server is busy.
  | "interrupted" // The response was cut off.
  | "filtered" // A content filter rejected the prompt or the reply.
  | "empty" // A response without content
  | "failed"; // Anything else: with a status, the server reported it; without one, there was no response.

/** Optional details of an UpstreamError. */
export interface UpstreamErrorOptions {
  /** HTTP status of the response, if there was one. */
  status?: number;
  retryAfterSeconds?: number;
  /** The server's own message. */
  reported?: string;
  overflow?: OverflowFacts;
  cause?: unknown;
}

/** What the error about a prompt that is too long says, in tokens. */
export interface OverflowFacts {
  contextSize?: number;
  promptTokens?: number;
}

/** A failed call to a server: `upstream_timeout` if it was too slow, otherwise `upstream_error`. */
export class UpstreamError extends AppError {
  readonly kind: UpstreamErrorKind;
  readonly status?: number;
  /** The server's own message, without the name of the server. */
  readonly reported?: string;
  /** Only with the kind `overflow`. */
  readonly overflow?: OverflowFacts;

  constructor(kind: UpstreamErrorKind, message: string, options: UpstreamErrorOptions = {}) {
    const { status, retryAfterSeconds, reported, overflow, cause } = options;
    const isSlow = kind === "timeout" || kind === "unreachable";
    super(isSlow ? "upstream_timeout" : "upstream_error", message, { retryAfterSeconds, cause });
    this.name = "UpstreamError";
    this.kind = kind;
    this.status = status;
    this.reported = reported;
    this.overflow = overflow;
  }
}

/** Kinds of errors whose message is entirely Parlor's. Others may quote the server, which may quote the prompt. */
const OWN_MESSAGES = new Set<UpstreamErrorKind>([
  "refused",
  "unresolved",
  "unreachable",
  "certificate",
  "protocol",
  "blocked",
  "timeout",
  "redirect",
  "web_page",
  "interrupted",
  "filtered",
  "empty",
]);

/**
 * Returns the fields of an error for the log: what identifies it, and its message unless that may contain content.
 * Removes queries from URLs.
 */
export function getErrorFields(thrown: unknown): Record<string, unknown> {
  if (!(thrown instanceof AppError)) return { error: getErrorTrace(thrown) };
  const { code, message, upstream } = thrown;
  if (code === "internal") return { code, error: getErrorTrace(thrown) };
  const isOwn = thrown instanceof UpstreamError
    ? OWN_MESSAGES.has(thrown.kind) && thrown.status === undefined
    : code !== "upstream_error" && code !== "upstream_timeout";
  return {
    ...(upstream && { connection_id: upstream.connection_id }),
    code,
    ...(thrown instanceof UpstreamError && {
      kind: thrown.kind,
      ...(thrown.status !== undefined && { status: thrown.status }),
    }),
    ...(isOwn && { error: message.replace(/\?[^\s"'<>]*/g, (query) => query.length > 1 ? "?…" : query) }),
  };
}

// Explains the runtime's connection errors.

/** Why there was no complete response. */
type ConnectFailureKind =
  | "refused" // Connection refused
  | "unresolved" // Unknown host name
  | "unreachable" // No response in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // Not HTTP, or TLS with a server that speaks plain HTTP
  | "interrupted" // Closed before or during the response
  | "blocked" // A bad port of the Fetch standard, https://fetch.spec.whatwg.org/#port-blocking
  | "failed"; // Anything else

// The runtime throws a TypeError for all of them. Only its message, or that of its cause, differs (Deno 2.6 and 2.9).
const REASONS: [RegExp, ConnectFailureKind, string][] = [
  [/refused/i, "refused", "connection refused"],
  [/dns error|lookup|resolve/i, "unresolved", "unknown host name"],
  [/certificate|UnknownIssuer|NotValidForName/i, "certificate", "its TLS certificate isn't trusted"],
  [/InvalidContentType|corrupt message|tls|handshake|\bssl\b/i, "protocol", "it doesn't speak HTTPS"],
  [/invalid HTTP|parsed|parse error/i, "protocol", "it doesn't speak HTTP"],
  [/closed before message|reset|broken pipe/i, "interrupted", "the connection was closed before a response"],
  [/reading a body/i, "interrupted", "the response was cut off"],
  [/are blocked/i, "blocked", "HTTP clients block this port"],
  [/timed out|due to timeout|unreachable|no route/i, "unreachable", "no response from this address"],
];

/**
 * Explains an error of `fetch` or of reading a response body.
 *
 * @returns `reason` completes the sentence `Can't reach "…": `.
 */
export function explainConnectError(thrown: unknown): { kind: ConnectFailureKind; reason: string } {
  const text = joinMessages(thrown);
  const found = REASONS.find(([pattern]) => pattern.test(text));
  return found ? { kind: found[1], reason: found[2] } : { kind: "failed", reason: "the request failed" };
}

/**
 * Joins the messages of an error and its causes. Removes URLs, because a host named "reset" must not match a pattern.
 */
function joinMessages(thrown: unknown): string {
  let text = "";
  let current = thrown;
  for (let depth = 0; current instanceof Error && depth < 4; depth++) {
    text += ` ${current.message}`;
    current = current.cause;
  }
  return text.replace(/https?:\/\/\S+/g, "");
}

/** How long a server may take, in milliseconds. */
export interface CallTimeouts {
  /** Until the machine accepts the TCP connection. */
  connectMs: number;
  /** Until the first byte of the response body. A long prompt on a slow machine takes minutes. */
  firstByteMs: number;
  /** Between two bytes of the response body. SSE comments count as bytes. */
  idleMs: number;
}

// Only usage and the end mark can follow the finish reason, so a server that leaves the connection open must not delay
// the reply.
const ENDING_MS = 10_000;
/** How often the timer checks a silent stream within its limit. */
const CHECKS_PER_LIMIT = 50;
/** Maximum for setTimeout, 2^31 - 1 ms. A longer delay would fire immediately. */
const MAX_TIMER_MS = 2_147_483_647;
/** The abort reason of finished calls. Shared, because creating an exception with its stack costs more than ending the call. */
const ENDED = new Error("The call has ended");

/**
 * Enforces the time limits of one call.
 *
 * Receiving a byte doesn't read the clock. A timer checks periodically whether bytes have arrived, so a silent
 * connection is detected up to 1/50 of the idle limit late.
 */
export class CallTimer {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #server: string;
  readonly #firstByteMs: number;
  readonly #idleMs: number;
  #limitMs: number;
  /** When the timer last saw activity. */
  #silentSince = performance.now();
  #isWaiting = true;
  /** True if there was activity since the timer's last check. */
  #wasActive = false;
  #phase: "first_byte" | "idle" | "ending" = "first_byte";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failure: AppError | undefined;

  /** @param server Name of the server in errors: `the model at "http://127.0.0.1:8080"`. */
  constructor(timeouts: CallTimeouts, server: string, caller?: AbortSignal) {
    this.#caller = caller;
    this.#server = server;
    this.#limitMs = this.#firstByteMs = timeouts.firstByteMs;
    this.#idleMs = timeouts.idleMs;
    if (caller?.aborted) this.#onCallerAbort();
    else {
      caller?.addEventListener("abort", this.#onCallerAbort, { once: true });
      this.#schedule(this.#limitMs);
    }
  }

  /** Aborts when the caller aborts, when a limit is exceeded, and on `end`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Call before each read. The reader's own time doesn't count as silence of the server. */
  startReading(): void {
    this.#isWaiting = true;
    if (this.#phase !== "first_byte") this.#wasActive = true;
  }

  /** Call when bytes have arrived. */
  markActive(): void {
    this.#isWaiting = false;
    if (this.#phase === "first_byte") this.#startPhase("idle", this.#idleMs);
  }

  /** Call when the server has only reported its progress: the first byte of the reply may take as long again. */
  restart(): void {
    this.#startPhase("first_byte", this.#firstByteMs);
  }

  /** Call when the finish reason has arrived: what follows is short. */
  startEnding(): void {
    if (this.#phase !== "ending") this.#startPhase("ending", Math.min(this.#idleMs, ENDING_MS));
  }

  /** Aborts the call with an error. Only the first error counts. */
  fail(failure: AppError): void {
    this.#failure ??= failure;
    this.#controller.abort(failure);
  }

  /**
   * Returns why the call was aborted: Parlor's own error or the caller's reason. Returns `undefined` if it wasn't
   * aborted.
   */
  findAbortReason(): { reason: unknown } | undefined {
    if (this.#failure) return { reason: this.#failure };
    if (this.#caller?.aborted) return { reason: this.#caller.reason };
    return undefined;
  }

  /** Releases the timer and the caller's signal. The call itself continues, or has finished. */
  release(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#onCallerAbort);
  }

  /** Releases the timer and aborts the call if it is still running. */
  end(): void {
    this.release();
    this.#controller.abort(ENDED);
  }

  readonly #onCallerAbort = (): void => this.#controller.abort(this.#caller?.reason);

  #startPhase(phase: "first_byte" | "idle" | "ending", limitMs: number): void {
    this.#phase = phase;
    this.#limitMs = limitMs;
    this.#silentSince = performance.now();
    this.#wasActive = false;
    this.#schedule(phase === "first_byte" ? limitMs : limitMs / CHECKS_PER_LIMIT);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#check, Math.min(delayMs, MAX_TIMER_MS));
  }

  readonly #check = (): void => {
    const now = performance.now();
    if (this.#wasActive || !this.#isWaiting) {
      this.#wasActive = false;
      this.#silentSince = now;
    }
    const leftMs = this.#limitMs - (now - this.#silentSince);
    // Timers may fire a fraction of a millisecond early.
    if (leftMs > 1) {
      return this.#schedule(this.#phase === "first_byte" ? leftMs : Math.min(leftMs, this.#limitMs / CHECKS_PER_LIMIT));
    }
    const limit = formatDuration(this.#limitMs);
    const message = this.#phase === "first_byte"
      ? `No response from ${this.#server} after ${limit}`
      : `The response from ${this.#server} stopped: no data for ${limit}`;
    this.fail(new UpstreamError("timeout", message));
  };
}

/** Formats a duration for an error message: `"250 ms"`, `"30 s"`, `"15 min"`. */
export function formatDuration(ms: number): string {
  if (ms >= 300_000 && ms % 60_000 === 0) return `${ms / 60_000} min`;
  return ms >= 1000 ? `${Math.round(ms / 100) / 10} s` : `${Math.round(ms)} ms`;
}
