/** Errors of calls to the owner's servers (model, speech or image server), and explanations of connection errors. */
import { AppError, traceOf } from "../errors.ts";

/** Why a call failed. */
export type UpstreamErrorKind =
  | "refused" // connection refused
  | "unresolved" // unknown host name
  | "unreachable" // no response in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // not HTTP, or TLS where the server speaks plain HTTP
  | "blocked" // a bad port of the Fetch standard
  | "timeout" // connected, then silent for too long
  | "redirect" // redirects to another origin, in a loop, or without a location
  | "web_page" // HTML instead of an API response
  | "bad_answer" // a response of unknown shape
  | "auth" // key missing or refused
  | "credit" // the account has no credit
  | "not_found" // wrong model or wrong path
  | "overflow" // the prompt is longer than the context
  | "rate" // too many requests
  | "starting" // the model is still loading
  | "overloaded" // the server is busy
  | "interrupted" // the response was cut off
  | "empty" // a response without content
  | "failed"; // anything else: with a status the server reported it, without one there was no response

/** Optional facts about an UpstreamError. */
export interface UpstreamErrorOptions {
  /** HTTP status of the response, if there was one. */
  status?: number;
  retryAfterSeconds?: number;
  /** The server's own message. */
  reported?: string;
  cause?: unknown;
}

/** A failed call to a server: `upstream_timeout` if it was too slow, otherwise `upstream_error`. */
export class UpstreamError extends AppError {
  readonly kind: UpstreamErrorKind;
  readonly status?: number;
  /** The server's own message, without the name of the server. */
  readonly reported?: string;

  constructor(kind: UpstreamErrorKind, message: string, options: UpstreamErrorOptions = {}) {
    const { status, retryAfterSeconds, reported, cause } = options;
    const isSlow = kind === "timeout" || kind === "unreachable";
    super(isSlow ? "upstream_timeout" : "upstream_error", message, { retryAfterSeconds, cause });
    this.name = "UpstreamError";
    this.kind = kind;
    this.status = status;
    this.reported = reported;
  }
}

/** Kinds of errors whose message is ours alone. Others may quote the server, and a server may quote the prompt. */
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
  "empty",
]);

/**
 * Returns what the log says of an error: what identifies it, and its message unless that may contain content. Queries of URLs
 * are left out.
 */
export function errorFields(thrown: unknown): Record<string, unknown> {
  if (!(thrown instanceof AppError)) return { error: traceOf(thrown) };
  const { code, message, upstream } = thrown;
  if (code === "internal") return { code, error: traceOf(thrown) };
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

/** Explains the runtime's connection errors. */

/** Why there was no complete response. */
type ConnectFailureKind =
  | "refused" // connection refused
  | "unresolved" // unknown host name
  | "unreachable" // no response in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // not HTTP, or TLS where the server speaks plain HTTP
  | "interrupted" // closed before or during the response
  | "blocked" // a bad port of the Fetch standard, https://fetch.spec.whatwg.org/#port-blocking
  | "failed"; // anything else

// The runtime throws a TypeError for all of them; only its message or its cause's tells them apart (Deno 2.6 and 2.9).
const REASONS: [RegExp, ConnectFailureKind, string][] = [
  [/refused/i, "refused", "connection refused"],
  [/dns error|lookup|resolve/i, "unresolved", "unknown host name"],
  [/certificate|UnknownIssuer|NotValidForName/i, "certificate", "its TLS certificate isn't trusted"],
  [/InvalidContentType|corrupt message|tls|handshake|\bssl\b/i, "protocol", "it doesn't speak HTTPS"],
  [/invalid HTTP|parsed|parse error/i, "protocol", "it doesn't speak HTTP"],
  [/closed before message|reset|broken pipe/i, "interrupted", "the connection was closed before a response"],
  [/reading a body/i, "interrupted", "the response was cut off"],
  [/are blocked/i, "blocked", "HTTP clients block this port"],
  [/timed out|unreachable|no route/i, "unreachable", "no response from this address"],
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

/** Joins the messages of an error and its causes. URLs are removed: a host named "reset" must not match a pattern. */
function joinMessages(thrown: unknown): string {
  let text = "";
  let current = thrown;
  for (let depth = 0; current instanceof Error && depth < 4; depth++) {
    text += ` ${current.message}`;
    current = current.cause;
  }
  return text.replace(/https?:\/\/\S+/g, "");
}
